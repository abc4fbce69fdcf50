"""Keys of object stores that end while a pool runs: asked for again in time, and sent to all that use them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from skyward.errors import SkywardError

__all__ = ["AGAIN", "RENEW_BEFORE", "KeyRenewal"]

_log = logging.getLogger(__name__)

RENEW_BEFORE = 300.0
"""Seconds before the end of keys at which new ones are asked for."""

AGAIN = 15.0
"""Seconds after which that is repeated where there are none yet."""

Orders = Sequence[dict[str, Any]]


class KeyRenewal:
    """
    Renew the keys of a pool's volumes; lives in the engine's loop.

    Args:
        ask: Returns the volumes with the keys as they are now.
        send: Sends them to all that use them.
    """

    def __init__(self, ask: Callable[[], Awaitable[Orders]], send: Callable[[Orders], Awaitable[None]]) -> None:
        self._ask = ask
        self._send = send
        self._task: asyncio.Task[None] | None = None

    def begin(self, orders: Orders) -> None:
        """
        Begin to renew keys, if any of them ends; harmless if that was begun.

        Args:
            orders: The volumes with the keys that are used.
        """
        ends = _ends(orders)
        if ends is not None and self._task is None:
            self._task = asyncio.ensure_future(self._renew(ends))

    def close(self) -> None:
        """Stop to renew."""
        if self._task is not None:
            self._task.cancel()

    async def _renew(self, ends: float) -> None:
        warned = False
        while True:
            await asyncio.sleep(max(AGAIN, ends - RENEW_BEFORE - time.time()))
            try:
                orders = await self._ask()
            except SkywardError as error:
                _log.warning("Keys of volumes could not be renewed: %s", error)
                continue
            later = _ends(orders)
            if later is None or later > ends:
                await self._send(orders)
            if later is None:
                return
            if later <= ends < time.time() and not warned:
                warned = True
                _log.error("Keys of volumes have ended, and no others are given: reading and writing there fails.")
            ends = later


def _ends(orders: Orders) -> float | None:
    """Return when the first of the keys ends; None if none does."""
    known = [order["expires_at"] for order in orders if order["expires_at"] is not None]
    return min(known, default=None)
