"""List a pool's instances at one cloud, now and then, and renew their expiry: the source of list events."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from skyward.engine.calls.settling import UNWINDING
from skyward.engine.pool.event_loop import EngineLoop
from skyward.errors import PoolEndedError

if TYPE_CHECKING:
    from skyward.engine.instances.pool_instances import PoolInstances
    from skyward.engine.instances.provisioning import Provisioning
    from skyward.model.spec.options import Options

_log = logging.getLogger(__name__)

SOON = 1.0
"""Seconds between two looks while instances boot, at least."""

LATER = 5.0
"""The same at most; between them, a part of the time for which they have been booting."""

_PART = 0.05


class InstanceWatch:
    """
    Watch the instances of one pool at one cloud; lives in the engine's loop.

    Args:
        engine: The loop.
        provisioning: Lists them, and terminates orphans.
        instances: Takes what is listed.
        options: How often to look.
        ended: Takes the error that says that another program ended the pool.
    """

    def __init__(
        self,
        engine: EngineLoop,
        provisioning: Provisioning,
        instances: PoolInstances,
        options: Options,
        *,
        ended: Callable[[PoolEndedError], None],
    ) -> None:
        self._engine = engine
        self._launching = provisioning.launching
        self._terminator = provisioning.terminator
        self._regions = provisioning.regions
        self._cloud = provisioning.pool_id
        self._instances = instances
        self._options = options
        self._ended = ended
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self._renewed = self._looked = engine.loop.time()
        self._spacing = SOON

    def look(self) -> None:
        """Look soon, but not at once, because there is a new instance; the first one begins the watch."""
        self._looked = self._engine.loop.time()
        self._woken.set()
        if self._task is None:
            self._task = self._engine.loop.create_task(self._run())

    def doubt(self) -> None:
        """Look soon, because an instance does not answer; doubts that go on have effect less and less often."""
        self._woken.set()

    async def close(self) -> None:
        """Look no more; return when a look that was under way has unwound, or after some seconds."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=UNWINDING)

    async def _run(self) -> None:
        # A look that fails at the moment at which it is cancelled raises its failure.
        while not self._closed:
            try:
                await asyncio.wait_for(self._woken.wait(), self._interval())
            except TimeoutError:
                self._spacing = SOON
            else:
                since = self._engine.loop.time() - self._looked
                await asyncio.sleep(min(self._spacing, self._interval()) - since)
                self._spacing = min(LATER, 2 * self._spacing)
            # A doubt while the list is on its way wants another one.
            self._woken.clear()
            try:
                await self._tick()
            except PoolEndedError as error:
                self._ended(error)
            except Exception as error:
                _log.warning("instances.failed provider=%s: %s", self._launching.provider_name, error)
            self._looked = self._engine.loop.time()

    def _interval(self) -> float:
        """Return the seconds until the next look: in proportion, no instance that boots is found late."""
        newest = self._instances.newest_boot(self._cloud)
        if newest is None:
            return self._options.reconcile_tick_interval
        return min(LATER, max(SOON, _PART * (self._engine.loop.time() - newest)))

    async def _tick(self) -> None:
        listed = await self._regions.listed()
        await self._launching.check_called_off(listed)
        await self._terminator.end_orphans(self._instances.listed(self._cloud, listed))
        await self._renew()

    async def _renew(self) -> None:
        ids = self._instances.in_use(self._cloud)
        if ids and self._engine.loop.time() - self._renewed >= self._launching.life / 2:
            await self._launching.renew(ids)
            self._renewed = self._engine.loop.time()
