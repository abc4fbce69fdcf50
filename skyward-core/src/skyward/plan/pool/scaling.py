"""How many nodes an elastic pool should have now, and what becomes of its bounds when it is resized."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from attrs import field, frozen

from skyward.errors import ConfigError
from skyward.model.spec.nodes import Nodes, NodeSpec, nodes
from skyward.plan.pool.workload import Workload

FREE_SHARE: Final = 0.5
"""The share of its boot time for which a node is to have work where it is not billed."""

SAME_WAIT: Final = 1.0
"""Seconds of work that are left to the nodes that there are, however quickly another one boots."""


@frozen(kw_only=True)
class PoolLoad:
    """
    What is to be done, by which nodes, and what one more would take.

    Args:
        work: What waits and what runs.
        slots_per_node: Calls that a node runs at once.
        ready: Nodes that take calls.
        late: Nodes that are wanted, and failed to start so often that nothing waits for them.
        boot: Seconds from asking for a node until it takes calls.
        billed_at_least: Seconds that a machine is billed for at least.
        hourly_rate: What a node costs, in USD an hour; 0 where nothing is billed.
        idle_seconds: For each ready node without work that may go, for how long it has had none.
        quiet: Seconds since a call waited the last time.
        since_growth: Seconds since the pool grew the last time.
        hold: Whether the size is not to be changed: a job runs whose ranks form one, or no more can be had.
    """

    work: Workload = field(factory=Workload)
    slots_per_node: int = 1
    ready: int = 0
    late: int = 0
    boot: float = 60.0
    billed_at_least: float = 0.0
    hourly_rate: float = 0.0
    idle_seconds: tuple[float, ...] = ()
    quiet: float = 0.0
    since_growth: float = math.inf
    hold: bool = False


def scale(desired: int, bounds: Nodes, load: PoolLoad, *, cooldown: float, idle_timeout: float) -> int:
    """
    Decide on the number of nodes.

    It grows as soon as that pays, without a cooldown: nodes on their way count as if they were there.
    It shrinks by nodes that have been idle for long enough, and by those that cannot be had while nothing waits.

    Args:
        desired: How many are wanted now.
        bounds: Between which the number may be.
        load: What is to be done.
        cooldown: Seconds after it grew in which it does not shrink.
        idle_timeout: Seconds without work after which a node goes.

    >>> busy = Workload(queued=20, queued_seconds=2000.0, running=2, remaining=(50.0,))
    >>> scale(2, Nodes(2, max=8), PoolLoad(work=busy, ready=2), cooldown=30, idle_timeout=60)
    8
    >>> scale(4, Nodes(2, max=8), PoolLoad(ready=4, idle_seconds=(90.0,)), cooldown=30, idle_timeout=60)
    3
    """
    if load.hold or not bounds.elastic:
        return desired
    if load.work.queued:
        return max(desired, min(bounds.ceiling, wanted(desired, load)))
    if load.since_growth < cooldown:
        return desired
    going = sum(seconds >= idle_timeout for seconds in load.idle_seconds)
    if load.quiet >= idle_timeout:
        going += load.late
    return max(bounds.floor, desired - going) if going else desired


def wanted(desired: int, load: PoolLoad) -> int:
    """
    Return for how many nodes there is work enough.

    What is left of the queue when a node that is asked for now takes calls is to keep it busy for as long as it boots,
    or is billed for: so at least about half of what it costs is for work.

    Args:
        desired: How many are wanted now.
        load: What is to be done, with at least one call that waits.

    >>> wanted(1, PoolLoad(work=Workload(queued=1, queued_seconds=5.0, running=1, remaining=(5.0,)), ready=1))
    1
    >>> wanted(1, PoolLoad(work=Workload(queued=1, queued_seconds=5.0, running=1, remaining=(7200.0,)), ready=1))
    2
    """
    slots, coming = load.slots_per_node, max(0, desired - load.ready - load.late)
    there = load.ready + coming
    if not there:
        # What it is worth is seen once it is there.
        coming = there = 1
    worth = worth_of(load)
    # Slot-seconds that running calls keep from the queue, until the node is there and while it works.
    held_before = _mean(min(left, load.boot) for left in load.work.remaining) * load.work.running
    held_after = _mean(min(max(0.0, left - load.boot), worth) for left in load.work.remaining) * load.work.running
    # Nodes on their way come halfway on average.
    served_before = max(0.0, slots * load.boot * (load.ready + coming / 2) - held_before)
    served_after = max(0.0, slots * worth * there - held_after)
    left = load.work.queued_seconds - served_before - served_after
    more = 0 if left <= 0 else min(math.ceil(left / (slots * worth)), math.ceil(load.work.queued / slots))
    return max(desired, there + more)


def worth_of(load: PoolLoad) -> float:
    """
    Return for how many seconds a node is to have work that is asked for.

    Args:
        load: What is known of the next node.

    >>> worth_of(PoolLoad(boot=60.0, billed_at_least=600.0, hourly_rate=2.0)), worth_of(PoolLoad(boot=60.0))
    (600.0, 30.0)
    """
    if load.hourly_rate:
        return max(load.boot, load.billed_at_least, SAME_WAIT)
    return max(load.boot * FREE_SHARE, SAME_WAIT)


def _mean(seconds: Iterable[float]) -> float:
    values = tuple(seconds)
    return sum(values) / len(values) if values else 0.0


def resized(bounds: Nodes, size: NodeSpec, pool: str) -> Nodes:
    """
    Return the bounds of a pool that is resized: a number keeps an elastic pool elastic, all else replaces its bounds.

    Args:
        bounds: What they are.
        size: What is asked for, as for `nodes=`.
        pool: The pool's name, for the error.

    Raises:
        ConfigError: If it is no number of nodes, or a number that the bounds exclude.

    >>> resized(Nodes(2, max=8), 5, "train")
    Nodes(desired=5, min=2, max=8)
    >>> resized(Nodes(2, max=8), Nodes(5), "train")
    Nodes(desired=5, min=None, max=None)
    """
    asked = nodes(size)
    pair = asked.max is not None
    if isinstance(size, Nodes) or pair or not bounds.elastic:
        return asked
    least, most = bounds.floor, bounds.ceiling
    if not least <= asked.desired <= most:
        wider = f"min={min(least, asked.desired)}, max={max(most, asked.desired)}"
        raise ConfigError(
            f"The pool is elastic, with {least} to {most} nodes; it cannot be resized to {asked.desired}.",
            pool=pool,
            hint=f"Write pool.resize(sky.Nodes({asked.desired}, {wider})) for wider bounds, "
            f"or pool.resize(sky.Nodes({asked.desired})) for a fixed size.",
        )
    return Nodes(asked.desired, min=least, max=most)
