"""Batch launches: nodes that need instances at about the same time are one request."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from skyward.errors import OfferError, SkywardError
from skyward.plan.pool.lifecycle import PoolState, orders, unasked
from skyward.plan.pool.retry_policy import launch_pause

if TYPE_CHECKING:
    from skyward.model.spec.options import Options


TOGETHER = 0.05
"""Seconds for which a pool that works gathers the nodes that need machines: those lost at once are one request."""


class Orders:
    """
    Batch the nodes that need instances: many that are lost at once are one launch; lives in the engine's loop.

    Args:
        options: How long to wait after starts that failed.
        state: Gives the pool as it is now.
        error: Gives why the last start failed; None while none has.
        spawn: Runs a coroutine that the pool waits for before it is closed.
        launch: Asks for the machines of some nodes.
        delayed: Called with nodes, how often they failed in a row, the seconds until they are tried again, and why.
    """

    def __init__(
        self,
        options: Options,
        state: Callable[[], PoolState],
        error: Callable[[], SkywardError | None],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        launch: Callable[[tuple[int, ...]], Coroutine[Any, Any, None]],
        delayed: Callable[[tuple[int, ...], int, float, SkywardError | None], None],
    ) -> None:
        self._options = options
        self._state = state
        self._error = error
        self._spawn = spawn
        self._launch = launch
        self._delayed = delayed
        self._nodes: list[int] = []
        self._left = asyncio.Event()

    def add(self, nodes: tuple[int, ...]) -> None:
        """Launch instances for some nodes, with all others that are added by then."""
        if not self._nodes:
            self._spawn(self._send())
        self._nodes += nodes

    def leave(self) -> None:
        """End the pauses, because the pool is left and wants no machines any more."""
        self._left.set()

    async def _send(self) -> None:
        if self._state().usable:
            # Links break one by one; a pool that is being opened orders all that it wants at once.
            await asyncio.sleep(TOGETHER)
        nodes, self._nodes = self._nodes, []
        for failures, group in orders(self._state(), nodes).items():
            self._spawn(self._ask(group, failures))

    async def _ask(self, nodes: tuple[int, ...], failures: int) -> None:
        refused, proven = isinstance(self._error(), OfferError), self._state().proven
        pause = launch_pause(
            failures, self._options.provision_retry_delay, refused=refused, proven=proven, draw=random.random()
        )
        if pause and proven:
            self._delayed(nodes, failures, pause, self._error())
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._left.wait(), pause)
        # Meanwhile some may not be wanted any more, or the pool is left.
        if wanted := unasked(self._state(), nodes):
            await self._launch(wanted)
