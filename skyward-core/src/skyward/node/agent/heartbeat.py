"""Heartbeats of the agent: the client counts a node that sends nothing as frozen or cut off."""

from __future__ import annotations

import asyncio

from skyward.link.channel import Link


class Heartbeat:
    """
    Have the link send something now and then; where anything else was sent meanwhile, that counts.

    Args:
        loop: The agent's loop, so that one that is blocked is silent.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._interval = 0.0
        self._client: Link | None = None
        self._timer: asyncio.TimerHandle | None = None

    def start(self, interval: float | None, client: Link | None) -> None:
        """
        Begin to send heartbeats.

        Args:
            interval: Seconds between two of them; None for none.
            client: Where they are sent.
        """
        if interval and client is not None:
            self._interval, self._client = interval, client
            self._timer = self._loop.call_later(interval, self._beat)

    def stop(self) -> None:
        """Send no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _beat(self) -> None:
        if self._client is not None and not self._client.closed:
            self._client.beat()
            self._timer = self._loop.call_later(self._interval, self._beat)
