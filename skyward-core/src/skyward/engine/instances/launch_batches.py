"""Batch launches: nodes that need instances at about the same time are one request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from skyward.errors import OfferError, SkywardError
from skyward.plan.pool.lifecycle import PoolState, orders
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
    """

    def __init__(
        self,
        options: Options,
        state: Callable[[], PoolState],
        error: Callable[[], SkywardError | None],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        launch: Callable[[tuple[int, ...]], Coroutine[Any, Any, None]],
    ) -> None:
        self._options = options
        self._state = state
        self._error = error
        self._spawn = spawn
        self._launch = launch
        self._nodes: list[int] = []

    def add(self, nodes: tuple[int, ...]) -> None:
        """Launch instances for some nodes, with all others that are added by then."""
        if not self._nodes:
            self._spawn(self._send())
        self._nodes += nodes

    async def _send(self) -> None:
        if self._state().usable:
            # Links break one by one; a pool that is being opened orders all that it wants at once.
            await asyncio.sleep(TOGETHER)
        nodes, self._nodes = self._nodes, []
        for failures, group in orders(self._state(), nodes).items():
            self._spawn(self._ask(group, failures))

    async def _ask(self, nodes: tuple[int, ...], failures: int) -> None:
        refused = isinstance(self._error(), OfferError)
        await asyncio.sleep(launch_pause(failures, self._options.provision_retry_delay, refused=refused))
        await self._launch(nodes)
