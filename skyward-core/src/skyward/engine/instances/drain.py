"""Drain nodes whose instances are about to be reclaimed: calls go on, none begins, others take their places."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from math import inf
from typing import TYPE_CHECKING, Any

from skyward.plan.instances.instance_events import Reclaimed
from skyward.plan.pool import lifecycle_events

if TYPE_CHECKING:
    from skyward.engine.calls.dispatch import Dispatch
    from skyward.engine.instances.pool_instances import PoolInstances
    from skyward.engine.nodes.node_shell import NodeShell

_log = logging.getLogger(__name__)

LOOK = 0.2
"""Seconds between two looks whether a node has anything left to do."""


class Drain:
    """
    Drain nodes; lives in the engine's loop.

    Args:
        dispatch: Where their calls are.
        instances: Takes which are about to be reclaimed.
        closing: Returns whether the pool is being left.
        release: Ends a node and terminates its instance.
        step: Takes what happens to the place of a node.
    """

    def __init__(
        self,
        dispatch: Dispatch,
        instances: PoolInstances,
        closing: Callable[[], bool],
        release: Callable[[NodeShell, str], Awaitable[None]],
        step: Callable[[lifecycle_events.Event], None],
    ) -> None:
        self._dispatch = dispatch
        self._instances = instances
        self._closing = closing
        self._release = release
        self._step = step
        # Below all places of the pool, so that a place is free at once.
        self._seats = itertools.count(-1, -1)
        self._why: dict[NodeShell, str] = {}
        self._gone = asyncio.Event()

    def begin(self, shell: NodeShell, notice: Mapping[str, Any]) -> Coroutine[Any, Any, None]:
        """
        Free a node's place, and return what waits until it is drained.

        A machine that is not rented may be all that there is: its place waits until it is free again.

        Args:
            shell: The node.
            notice: Why it goes (`reason`), how many seconds it has (`within`; as many as it needs without), and
                whether its machine is the user's own (`own`).
        """
        self._why[shell] = notice["reason"]
        self._instances.send(Reclaimed(shell.rented.key))
        shell.seat = next(self._seats)
        self._dispatch.set_aside(shell.index, shell.seat)
        own = bool(notice.get("own"))
        self._step(lifecycle_events.Drains(shell.index) if own else lifecycle_events.Leaves(shell.index))
        return self._drained(shell, notice.get("within"), own=own)

    def lost(self, shell: NodeShell, why: str) -> bool:
        """Record why a node was lost; return whether it was being drained."""
        if shell not in self._why:
            return False
        self._why[shell] = why
        self._gone.set()
        return True

    async def _drained(self, shell: NodeShell, within: float | None, *, own: bool) -> None:
        """Wait until a node has nothing left to do, its instance is gone or its time is over; end the instance."""
        now = asyncio.get_running_loop().time
        end = inf if within is None else now() + within
        while not (shell.leaving or self._closing() or self._dispatch.idle(shell.seat) or now() >= end):
            self._gone.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._gone.wait(), LOOK)
        why = self._why[shell]
        try:
            self._dispatch.remove(shell.seat, why)
        except Exception:
            # Whatever is wrong with the calls, the instance is terminated.
            _log.exception("node.remove_failed node=%s", shell.index)
        try:
            await self._release(shell, why)
        finally:
            del self._why[shell]
        if own:
            self._step(lifecycle_events.Vacated(shell.index))
