"""Keep an elastic pool as large as its work asks for."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from skyward.errors import PoolClosedError
from skyward.plan.pool.retry_policy import replacement_pause
from skyward.plan.pool.scaling import PoolLoad, resized, scale

if TYPE_CHECKING:
    from skyward.engine.calls.dispatch import Dispatch
    from skyward.engine.instances.provisioning import Provisioning
    from skyward.engine.pool.event_loop import EngineLoop
    from skyward.model.spec.nodes import Nodes, NodeSpec
    from skyward.model.spec.options import Options
    from skyward.plan.pool.lifecycle import PoolState

_ELASTIC_TICK = 1.0

BOOT: Final = 60.0
"""Seconds that a machine of a cloud is expected to take until it is a node, before the first one was."""

BOOT_HERE: Final = 1.0
"""The same for nodes that are rented from no cloud."""

_SMOOTHING: Final = 0.3
"""The share of the latest boot in what the next one is expected to take."""

_HELD_AFTER: Final = 4
"""As how many failures a node counts that was given up for good: the pool does not grow for half a minute."""


class Elastic(Protocol):
    """What of an open pool its size depends on."""

    engine: EngineLoop
    dispatch: Dispatch
    provisioning: Provisioning
    name: str

    @property
    def state(self) -> PoolState:
        """Return what the pool is at this moment."""

    def idle_nodes(self) -> Sequence[int]:
        """List the nodes that run nothing."""

    def change_size(self, desired: int) -> None:
        """Change the number of nodes."""


class Sizing:
    """
    Compare, now and then, what a pool has with what it needs; lives in the engine's loop.

    Args:
        pool: The pool.
        bounds: Between which its number of nodes may be.
        options: How fast it may change.
    """

    def __init__(self, pool: Elastic, bounds: Nodes, options: Options) -> None:
        self._pool = pool
        self._options = options
        self._idle_since: dict[int, float] = {}
        self._grown_at = self._queued_at = pool.engine.loop.time()
        self._ticking = False
        # Nodes that were asked for are on their way; those that wait for them are not idle.
        self._gathering = True
        self._asked_at: dict[int, float] = {}
        self._boot: float | None = None
        # What was decided last, how often fewer could be had since, and until when no more are asked for.
        self._decided = bounds.initial
        self._refused = 0
        self._held_until = 0.0
        self.bounds = bounds
        # The bounds as the user's threads see them: the loop may have yet to take the latest.
        self._asked = bounds
        self._asking = threading.Lock()
        self._leaving = False

    @property
    def most(self) -> int:
        """Count the nodes that are wanted, or that the pool may grow to."""
        return max(self._pool.state.desired, self.bounds.ceiling if self.bounds.elastic else 0)

    def resize(self, size: NodeSpec) -> None:
        """
        Change the number of nodes, or its bounds; from any thread, returns at once.

        Raises:
            ConfigError: If it is no number of nodes, or one that the bounds exclude.
            PoolClosedError: If the pool is being left.
            SkywardError: What the pool was stopped for.
        """
        with self._asking:
            asked = resized(self._asked, size, self._pool.name)
            if (refusal := self._pool.dispatch.refusal) is not None:
                raise refusal
            if self._leaving:
                raise PoolClosedError(
                    f"The pool {self._pool.name!r} is being left, and is not resized any more.", pool=self._pool.name
                )
            self._asked = asked
            self._pool.engine.post(self._take, asked)

    def leave(self) -> None:
        """Refuse to be resized from now on; the pool still grows for the calls that are waited for."""
        with self._asking:
            self._leaving = True

    def woken(self) -> bool:
        """Start a pool that may drain to zero, and return whether it may; from any thread."""
        if self.bounds.floor:
            return False
        self._pool.engine.post(self.wake, self.bounds.desired)
        return True

    # In the engine's loop.

    def wake(self, least: int) -> bool:
        """Start nodes where there are none, as something needs them now; return whether the pool may drain to zero."""
        if not self._pool.state.desired and not self._over():
            self._gathering = True
            self._to(least)
        return not self.bounds.floor

    def asked(self, nodes: Iterable[int]) -> None:
        """Record that machines of nodes are asked for."""
        now = self._pool.engine.loop.time()
        self._asked_at.update(dict.fromkeys(nodes, now))

    def started(self, node: int) -> None:
        """Record that a node takes calls, and learn how long that took."""
        asked_at = self._asked_at.pop(node, None)
        if asked_at is None:
            return
        took = self._pool.engine.loop.time() - asked_at
        self._boot = took if self._boot is None else self._boot + _SMOOTHING * (took - self._boot)

    def start(self) -> None:
        """Begin to autoscale, if the bounds allow another size."""
        if self.bounds.elastic and not self._ticking:
            self._ticking = True
            self._later()

    def decide(self) -> int:
        """Return how many nodes there should be now."""
        return scale(
            self._pool.state.desired,
            self.bounds,
            self._load(),
            cooldown=self._options.autoscale_cooldown,
            idle_timeout=self._options.autoscale_idle_timeout,
        )

    def look(self) -> None:
        """Change the size to what it should be now."""
        if self._over() or not self.bounds.elastic:
            return
        desired = self.decide()
        if desired != self._pool.state.desired:
            self._to(desired)

    def _take(self, bounds: Nodes) -> None:
        if self._over():
            return
        if self._in_job() and bounds.desired != self._pool.state.desired:
            # The ranks of the job count on each other.
            self._pool.engine.loop.call_later(_ELASTIC_TICK, self._take_latest, bounds)
            return
        self.bounds = bounds
        self._gathering = True
        self._held_until = 0.0
        self._to(bounds.desired)
        self.start()

    def _take_latest(self, bounds: Nodes) -> None:
        if bounds is self._asked:
            self._take(bounds)

    def _later(self) -> None:
        interval = min(self._options.reconcile_tick_interval, _ELASTIC_TICK)
        self._pool.engine.loop.call_later(interval, self._tick)

    def _tick(self) -> None:
        if self._over() or not self.bounds.elastic:
            self._ticking = False
            return
        self.look()
        self._later()

    def _over(self) -> bool:
        """Return whether the pool takes no more calls: it is being closed, or has given up."""
        return self._pool.state.closing or self._pool.dispatch.refusal is not None

    def _load(self) -> PoolLoad:
        now, pool, state = self._pool.engine.loop.time(), self._pool, self._pool.state
        work, late = pool.dispatch.workload(), state.late
        if work.queued:
            self._queued_at = now
        self._gathering = self._gathering and state.ready_count < state.desired - late
        idle = () if work.queued or self._gathering else self._may_go()
        self._idle_since = {node: self._idle_since.get(node, now) for node in idle}
        facts = pool.provisioning.facts
        return PoolLoad(
            work=work,
            slots_per_node=pool.provisioning.slots_per_node,
            ready=state.ready_count,
            late=late,
            boot=self._boot if self._boot is not None else BOOT if facts.rents else BOOT_HERE,
            billed_at_least=max(facts.minimum_billed_s, facts.billing_granularity_s or 0.0),
            hourly_rate=pool.provisioning.hourly_rate,
            idle_seconds=tuple(now - since for since in self._idle_since.values()),
            quiet=now - self._queued_at,
            since_growth=now - self._grown_at,
            hold=self._in_job() or self._held(now),
        )

    def _may_go(self) -> Sequence[int]:
        """List the idle nodes that may go: the head with the last of them."""
        idle, ready = self._pool.idle_nodes(), self._pool.state.ready
        return idle if len(idle) == len(ready) else [node for node in idle if node != ready[0]]

    def _in_job(self) -> bool:
        """Return whether a broadcast is under way whose ranks form one job."""
        return self._pool.provisioning.collective and any(call.broadcast for call in self._pool.dispatch.calls)

    def _held(self, now: float) -> bool:
        """Return whether a node was given up lately, so that asking for one more would end in the same way."""
        desired = self._pool.state.desired
        if desired < self._decided:
            self._decided = desired
            self._refused += 1
            self._held_until = now + replacement_pause(_HELD_AFTER + self._refused, 0.5)
        elif self._refused and self._pool.state.ready_count >= desired and now >= self._held_until:
            self._refused = 0
        return now < self._held_until and self._pool.dispatch.queued > 0

    def _to(self, desired: int) -> None:
        if desired > self._pool.state.desired:
            self._grown_at = self._pool.engine.loop.time()
        self._decided = desired
        self._pool.change_size(desired)
