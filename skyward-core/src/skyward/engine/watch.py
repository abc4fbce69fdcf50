"""Look at a provider's list of a pool's machines, now and then: which run, which are gone, which nobody has."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from skyward.engine.loop import EngineLoop
from skyward.errors import ProvisionError
from skyward.plan.watching import Findings, Known, Stray, compare

if TYPE_CHECKING:
    from skyward.engine.node_shell import NodeShell
    from skyward.engine.provisioning import Provisioning
    from skyward.model.options import Options

_log = logging.getLogger(__name__)

SOON = 1.0
"""Seconds between two looks while machines are on their way, at first."""

LATER = 5.0
"""The same for machines that have been on their way for long."""

RUNNING_WITHIN = 600.0
"""Seconds until a rented machine has to run, where no option says otherwise."""

_SLOWER = 1.3


class Watch:
    """
    Watch the machines of one pool; lives in the engine's loop.

    Args:
        engine: The loop.
        provisioning: Lists them, and ends those that nobody has.
        options: How long things may take.
        nodes: Gives the nodes that have machines.
    """

    def __init__(
        self,
        engine: EngineLoop,
        provisioning: Provisioning,
        options: Options,
        nodes: Callable[[], Iterable[NodeShell]],
    ) -> None:
        self._engine = engine
        self._launching = provisioning.launching
        self._options = options
        self._nodes = nodes
        self._known: dict[str, Known] = {}
        self._strays: tuple[Stray, ...] = ()
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._renewed = time.monotonic()

    def look(self) -> None:
        """Look soon, because there is a new machine; the first one begins the watch."""
        self._woken.set()
        if self._task is None:
            self._task = self._engine.loop.create_task(self._run())

    def close(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        interval = SOON
        while True:
            pending = any(not shell.runs for shell in self._nodes())
            interval = min(LATER, interval * _SLOWER) if pending else self._options.reconcile_tick_interval
            self._woken.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), interval)
                # A machine that was just rented is not looked for at once, nor as seldom as those that run.
                interval = SOON
                if any(not shell.runs for shell in self._nodes()):
                    await asyncio.sleep(SOON)
            try:
                await self._tick()
            except Exception as error:
                _log.warning("instances.failed provider=%s: %s", self._launching.provider_name, error)

    async def _tick(self) -> None:
        under_way = set(self._launching.under_way)
        listed = await self._launching.regions.listed()
        under_way |= self._launching.under_way
        shells = {shell.instance.id: shell for shell in self._nodes() if not shell.leaving}
        known = [
            self._known.get(name, Known(id=name, since=shell.since, runs=shell.runs)) for name, shell in shells.items()
        ]
        found = compare(
            known,
            listed,
            strays=self._strays,
            held=self._launching.held,
            under_way=under_way,
            now=time.monotonic(),
            patience=self._options.provision_timeout or RUNNING_WITHIN,
        )
        self._known = {machine.id: machine for machine in found.known}
        self._strays = found.strays
        self._tell(shells, found)
        if found.unwanted:
            _log.warning("machines.unwanted ids=%s", ",".join(found.unwanted))
            await self._launching.regions.end_anywhere(found.unwanted)
        await self._renew(tuple(shells))

    def _tell(self, shells: dict[str, NodeShell], found: Findings) -> None:
        for instance in found.running:
            shells[instance.id].began(instance)
        for name, why in found.gone:
            shells[name].gone(why)
        for name in found.overdue:
            shell = shells[name]
            patience = self._options.provision_timeout or RUNNING_WITHIN
            shell.never(ProvisionError(f"{shell.where} did not run within {patience:g} s.", node=shell.index))

    async def _renew(self, ids: tuple[str, ...]) -> None:
        if ids and time.monotonic() - self._renewed >= self._launching.life / 2:
            await self._launching.renew(ids)
            self._renewed = time.monotonic()
