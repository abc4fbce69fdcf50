"""Keep an elastic pool as large as its work asks for."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from skyward.plan.pool.scaling import PoolLoad, resized, scale

if TYPE_CHECKING:
    from skyward.engine.instances.provisioning import Provisioning
    from skyward.engine.pool.event_loop import EngineLoop
    from skyward.model.spec.nodes import Nodes, NodeSpec
    from skyward.model.spec.options import Options

_ELASTIC_TICK = 1.0


class Elastic(Protocol):
    """What of an open pool its size depends on."""

    engine: EngineLoop
    provisioning: Provisioning
    name: str

    @property
    def closing(self) -> bool:
        """Return whether it is being closed."""

    @property
    def desired(self) -> int:
        """Return how many nodes are wanted."""

    @property
    def ready_nodes(self) -> int:
        """Count the nodes that take calls."""

    @property
    def queued(self) -> int:
        """Count the calls that wait."""

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
        self._changed_at = pool.engine.loop.time()
        self._ticking = False
        # Nodes that were asked for are on their way; those that wait for them are not idle.
        self._gathering = True
        self.bounds = bounds
        # The bounds as the user's threads see them: the loop may have yet to take the latest.
        self._asked = bounds
        self._asking = threading.Lock()

    @property
    def most(self) -> int:
        """Count the nodes that are wanted, or that the pool may grow to."""
        return max(self._pool.desired, self.bounds.max or 0)

    def resize(self, size: NodeSpec) -> None:
        """
        Change the number of nodes, or its bounds; from any thread, returns at once.

        Raises:
            ConfigError: If it is no number of nodes, or one that the bounds exclude.
        """
        with self._asking:
            self._asked = resized(self._asked, size, self._pool.name)
            self._pool.engine.post(self._take, self._asked)

    def _take(self, bounds: Nodes) -> None:
        self.bounds = bounds
        self._gathering = True
        self._to(bounds.desired)
        self.start()

    def start(self) -> None:
        """Begin to autoscale, if the bounds allow another size."""
        if self.bounds.max is not None and not self._ticking:
            self._ticking = True
            self._later()

    def _later(self) -> None:
        interval = min(self._options.reconcile_tick_interval, _ELASTIC_TICK)
        self._pool.engine.loop.call_later(interval, self._tick)

    def _tick(self) -> None:
        if self._pool.closing or self.bounds.max is None:
            self._ticking = False
            return
        now = self._pool.engine.loop.time()
        self._gathering = self._gathering and self._pool.ready_nodes < self._pool.desired
        idle = () if self._gathering else self._pool.idle_nodes()
        self._idle_since = {node: self._idle_since.get(node, now) for node in idle}
        load = PoolLoad(
            queued=self._pool.queued,
            slots_per_node=self._pool.provisioning.slots_per_node,
            idle_seconds=tuple(now - since for since in self._idle_since.values()),
            since_change=now - self._changed_at,
        )
        desired = scale(
            self._pool.desired,
            self.bounds,
            load,
            cooldown=self._options.autoscale_cooldown,
            idle_timeout=self._options.autoscale_idle_timeout,
        )
        if desired != self._pool.desired:
            self._to(desired)
        self._later()

    def _to(self, desired: int) -> None:
        self._changed_at = self._pool.engine.loop.time()
        self._pool.change_size(desired)
