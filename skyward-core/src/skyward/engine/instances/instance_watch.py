"""Look at a provider's list of a pool's machines, now and then: which run, which are gone, which have no node."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from skyward.engine.pool.event_loop import EngineLoop
from skyward.errors import PoolEndedError, ProvisionError
from skyward.plan.instances.list_comparison import Known, ListFindings, Orphan, compare

if TYPE_CHECKING:
    from skyward.engine.instances.provisioning import Provisioning
    from skyward.engine.nodes.node_shell import NodeShell
    from skyward.model.spec.options import Options

_log = logging.getLogger(__name__)

SOON = 1.0
"""Seconds between two looks while machines are on their way, at least."""

LATER = 5.0
"""The same at most; between them, a part of the time for which they have been on their way."""

RUNNING_WITHIN = 600.0
"""Seconds until a rented machine has to run, where no option says otherwise."""

_PART = 0.05


class InstanceWatch:
    """
    Watch the machines of one pool; lives in the engine's loop.

    Args:
        engine: The loop.
        provisioning: Lists them, and ends those that have no node.
        options: How long things may take.
        nodes: Gives the nodes that have machines.
        ended: Takes the error that says that another program ended the pool.
    """

    def __init__(
        self,
        engine: EngineLoop,
        provisioning: Provisioning,
        options: Options,
        nodes: Callable[[], Iterable[NodeShell]],
        *,
        ended: Callable[[PoolEndedError], None],
    ) -> None:
        self._engine = engine
        self._launching = provisioning.launching
        self._options = options
        self._nodes = nodes
        self._ended = ended
        self._known: dict[str, Known] = {}
        self._orphans: tuple[Orphan, ...] = ()
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._renewed = self._looked = engine.loop.time()
        self._spacing = SOON

    def look(self) -> None:
        """Look soon, but not at once, because there is a new machine; the first one begins the watch."""
        self._looked = self._engine.loop.time()
        self._woken.set()
        if self._task is None:
            self._task = self._engine.loop.create_task(self._run())

    def doubt(self) -> None:
        """Look soon, because a machine does not answer; who doubts on and on is heard less and less."""
        self._woken.set()

    def close(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        while True:
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
        """Return the seconds until the next look: in proportion, no machine that comes is found late."""
        pending = [shell.since for shell in self._nodes() if not shell.runs]
        if not pending:
            return self._options.reconcile_tick_interval
        return min(LATER, max(SOON, _PART * (self._engine.loop.time() - max(pending))))

    async def _tick(self) -> None:
        under_way = set(self._launching.under_way)
        listed = await self._launching.regions.listed()
        await self._launching.check_called_off(listed)
        under_way |= self._launching.under_way
        shells = {shell.instance.id: shell for shell in self._nodes() if not shell.leaving}
        known = [
            self._known.get(name, Known(id=name, since=shell.since, runs=shell.runs)) for name, shell in shells.items()
        ]
        found = compare(
            known,
            listed,
            orphans=self._orphans,
            held=self._launching.held,
            under_way=under_way,
            now=self._engine.loop.time(),
            patience=self._options.provision_timeout or RUNNING_WITHIN,
        )
        self._known = {machine.id: machine for machine in found.known}
        self._orphans = found.orphans
        self._tell(shells, found)
        self._launching.orphans.count(listed, [orphan.id for orphan in found.orphans])
        if found.unwanted:
            await self._launching.end_orphans(found.unwanted)
        await self._renew(tuple(shells))

    def _tell(self, shells: dict[str, NodeShell], found: ListFindings) -> None:
        for name, doing in found.busy:
            shells[name].on_busy(shells[name], doing)
        for instance in found.running:
            shells[instance.id].began(instance)
        for name, why in found.gone:
            shells[name].gone(why)
        for name in found.overdue:
            shell = shells[name]
            patience = self._options.provision_timeout or RUNNING_WITHIN
            shell.never(ProvisionError(f"{shell.where} did not run within {patience:g} s.", node=shell.index))

    async def _renew(self, ids: tuple[str, ...]) -> None:
        if ids and self._engine.loop.time() - self._renewed >= self._launching.life / 2:
            await self._launching.renew(ids)
            self._renewed = self._engine.loop.time()
