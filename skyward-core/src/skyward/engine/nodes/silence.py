"""Look for nodes that send nothing any more, and carry out what `plan.pool.suspicion` decides about them."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from skyward.model.instances.machine import LocalAddress
from skyward.plan.pool.suspicion import Sign, Suspicion, Verdict

if TYPE_CHECKING:
    from skyward.engine.calls.dispatch import Dispatch
    from skyward.engine.events.reporting import Reporting
    from skyward.engine.nodes.membership import Membership
    from skyward.engine.nodes.node_shell import NodeShell
    from skyward.engine.pool.event_loop import EngineLoop
    from skyward.model.spec.options import Options

_log = logging.getLogger(__name__)

WITHOUT_LEASE = 600.0
"""Seconds that a node without a lease may be cut off."""


class SilenceWatch:
    """
    Watch the ready nodes of a pool; lives in the engine's loop.

    Args:
        engine: The loop, by whose clock silence is measured.
        options: How long a node may be silent.
        dispatch: Where calls are.
        membership: Which nodes new calls are among.
        reporting: Takes which are suspected.
    """

    def __init__(
        self,
        engine: EngineLoop,
        options: Options,
        dispatch: Dispatch,
        membership: Membership,
        reporting: Reporting,
    ) -> None:
        self._loop = engine.loop
        self._dispatch = dispatch
        self._membership = membership
        self._reporting = reporting
        self._shells: set[NodeShell] = set()
        self._asking: dict[NodeShell, asyncio.Task[None]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._closed = options.suspect_timeout is None
        self._suspicion = Suspicion["NodeShell"](options.suspect_timeout or 1.0, options.lost_timeout)

    def watch(self, shell: NodeShell) -> None:
        """Watch a node from now on, until it leaves."""
        if not self._closed:
            self._shells.add(shell)
            if self._timer is None:
                self._look()

    def close(self) -> None:
        """Watch no more."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for task in self._asking.values():
            task.cancel()

    def _look(self) -> None:
        self._timer = self._loop.call_later(self._suspicion.interval, self._look)
        self._shells = {shell for shell in self._shells if not shell.leaving}
        signs = {shell: Sign(shell.heard, _patience(shell)) for shell in self._shells}
        for shell, verdict, silent in self._suspicion.look(signs, self._loop.time()):
            match verdict:
                case Verdict.SUSPECT:
                    self._suspect(shell, silent)
                case Verdict.EVACUATE:
                    self._dispatch.evacuate(shell.seat, f"it has been silent for {silent:.0f} s")
                case Verdict.TRUST:
                    self._trust(shell, silent)
                case Verdict.LOSE:
                    self._lose(shell, silent)
        self._dispatch.silent.overdue()

    def _suspect(self, shell: NodeShell, silent: float) -> None:
        _log.warning("node.suspected %s silent=%.1fs", shell.where, silent)
        self._dispatch.silent.suspect(shell.seat)
        if shell.seat == shell.index:
            self._membership.drop(shell.index)
        self._reporting.suspected(shell, silent, "no heartbeat; it gets no new calls")
        if shell not in self._asking:
            self._asking[shell] = task = self._loop.create_task(self._ask(shell))
            task.add_done_callback(lambda _: self._asking.pop(shell, None))

    async def _ask(self, shell: NodeShell) -> None:
        """Ask the machine of a silent node for anything, until it answers or the node is heard."""
        while shell.host is not None and shell in self._shells and self._suspicion.suspected(shell):
            if await shell.host.answers():
                self._suspicion.answers(shell)
                return
            await asyncio.sleep(self._suspicion.interval)

    def _trust(self, shell: NodeShell, silent: float) -> None:
        _log.info("node.recovered %s silent=%.1fs", shell.where, silent)
        if shell.seat == shell.index:
            self._membership.join(shell.index, shell.info)
        self._dispatch.trust(shell.seat)
        self._reporting.recovered(shell, silent)

    def _lose(self, shell: NodeShell, silent: float) -> None:
        shell.gone(f"nothing has come from it for {silent:.0f} s, not even a heartbeat", "silence")


def _patience(shell: NodeShell) -> float:
    """Return for how many seconds a node may be cut off: nothing cuts off one on this machine."""
    if isinstance(shell.instance.address, LocalAddress):
        return 0.0
    return shell.blueprint.cluster.spec.ttl or WITHOUT_LEASE
