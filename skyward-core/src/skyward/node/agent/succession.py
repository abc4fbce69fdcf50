"""A node between two clients: one has left, and the next one is not there yet."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from typing import Any

from skyward.node.agent.line_flow import SpooledLines
from skyward.node.agent.listening import AgentListener
from skyward.node.data.result_store import ResultStore

__all__ = ["Succession"]

ALONE = 60.0
"""Seconds without its client after which a node with a lease drops events: they are for one that is there."""

_LOOK = 1.0
"""Seconds between two looks whether a node that was left has anything to do."""


class Succession:
    """
    Keep what one client is not there for any more, and give it to the next.

    Args:
        loop: The agent's loop.
        directory: The node's, where the watchdog finds a file once there is nothing to do.
        door: Where the next client comes to.
        results: The results that the client may not have.
        lines: What processes print.
        in_flight: Lists the calls that processes have, and their lanes.
        answer: Takes each answer.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        directory: str,
        door: AgentListener,
        results: ResultStore,
        lines: SpooledLines,
        in_flight: Callable[[], list[tuple[int, int]]],
        answer: Callable[[dict[str, Any]], None],
    ) -> None:
        self._loop = loop
        self._idle_file = os.path.join(directory, "idle")
        self._lease_file = os.path.join(directory, "linger")
        assert door.wire is not None
        self._door, self._link = door, door.wire
        door.on_succeeded, door.on_away = self._succeeded, self._away
        self._results = results
        self._lines = lines
        self._in_flight = in_flight
        self._answer = answer
        self._looking: asyncio.TimerHandle | None = None
        self._alone: asyncio.TimerHandle | None = None

    def ask(self, question: dict[str, Any]) -> bool:
        """
        Answer a client that leaves the node to another one (`park`), or has come instead of one.

        `lease` is the seconds for which the node is to go on if this client dies; 0 for no longer than any other.
        `park` is the seconds for which the node is to wait once its last call has ended; null for all of its lease.
        The next client asks which calls the node has (`calls`), and then for what was kept (`resume`).

        Args:
            question: The question, with its `number`, which its answer repeats.

        Returns:
            Whether it was one of these.
        """
        number = question.get("number")
        if "lease" in question:
            self._answer({"number": number, "failed": self._lease(float(question["lease"]))})
        elif "park" in question:
            self._answer({"number": number})
            self._link.park()
            self._lines.park()
            if question["park"] is not None:
                self._look(float(question["park"]), self._loop.time())
        elif "resume" in question:
            self._answer({"number": number})
            self._link.unpark()
            self._results.send_again()
            self._lines.succeeded()
        elif "calls" in question:
            if self._looking is not None:
                # Whether or not it is there already: this client has claimed the node.
                self._looking.cancel()
            running = self._in_flight()
            known = {"running": [call for call, _ in running], "lanes": [lane for _, lane in running]}
            known |= {"ended": self._results.calls, "delivered": list(self._results.delivered)}
            self._answer({"number": number, **known})
        else:
            return False
        return True

    def admitted(self) -> None:
        """Record that a client is there."""
        self._lines.alone = False
        if self._alone is not None:
            self._alone.cancel()

    def close(self) -> None:
        """Look no more."""
        for timer in filter(None, (self._looking, self._alone)):
            timer.cancel()

    def _lease(self, seconds: float) -> str:
        """Write down for the watchdog how long the node goes on without a client, and return why that failed."""
        try:
            if seconds:
                hidden = f"{self._lease_file}.new"
                with open(os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                    file.write(f"{max(1, int(seconds))}\n")
                os.rename(hidden, self._lease_file)
            else:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self._lease_file)
        except OSError as error:
            return str(error)
        self._door.leased = bool(seconds)
        return ""

    def _succeeded(self) -> None:
        """Keep everything for a client that is about to take the node over, until it asks for it."""
        if not self._link.parked:
            self._link.park()
            self._lines.park()

    def _away(self) -> None:
        """Wait for the client to return; one that does not within a minute counts as dead, where another may come."""
        if self._door.leased and not self._link.parked:
            self._alone = self._loop.call_later(ALONE, self._left_alone)

    def _left_alone(self) -> None:
        """Drop what calls emit for a client that counts as dead, so that none of them waits for it."""
        if not self._link.connected and not self._link.parked:
            self._lines.alone = True
            self._lines.park()

    def _look(self, idle: float, since: float) -> None:
        """Leave the node to its watchdog once nothing has been under way for so long."""
        now = self._loop.time()
        if self._in_flight():
            since = now
        elif now - since >= idle:
            with contextlib.suppress(OSError), open(self._idle_file, "wb"):
                return
        self._looking = self._loop.call_later(_LOOK, self._look, idle, since)
