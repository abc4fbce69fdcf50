"""How many nodes an elastic pool should have now, and what becomes of its bounds when it is resized."""

from __future__ import annotations

import math

from attrs import frozen

from skyward.errors import ConfigError
from skyward.model.spec.nodes import Nodes, NodeSpec, nodes


@frozen(kw_only=True)
class PoolLoad:
    """
    What is to be done, and which nodes are idle.

    Args:
        queued: Calls that wait for a slot.
        slots_per_node: Calls that a node runs at once.
        idle_seconds: For each ready node without work, for how long it has had none.
        since_change: Seconds since the number of nodes was last changed.
    """

    queued: int
    slots_per_node: int
    idle_seconds: tuple[float, ...] = ()
    since_change: float = math.inf


def scale(desired: int, bounds: Nodes, load: PoolLoad, *, cooldown: float, idle_timeout: float) -> int:
    """
    Decide on the number of nodes.

    More nodes are asked for as soon as calls wait, at most twice as many at once; idle ones go after a while.

    Args:
        desired: How many are wanted now.
        bounds: Between which the number may be.
        load: What is to be done.
        cooldown: Seconds between two changes.
        idle_timeout: Seconds without work after which a node goes.

    >>> scale(2, Nodes(2, max=8), PoolLoad(queued=20, slots_per_node=1), cooldown=30, idle_timeout=60)
    4
    >>> idle = PoolLoad(queued=0, slots_per_node=1, idle_seconds=(90.0,))
    >>> scale(4, Nodes(2, max=8), idle, cooldown=30, idle_timeout=60)
    3
    """
    if bounds.max is None or load.since_change < cooldown:
        return desired
    floor = bounds.min or bounds.desired
    if load.queued:
        needed = desired + math.ceil(load.queued / load.slots_per_node)
        return max(desired, min(needed, desired * 2, bounds.max))
    idle = sum(seconds >= idle_timeout for seconds in load.idle_seconds)
    return max(floor, desired - idle) if idle else desired


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
