"""A node between two clients: one has left, and the next one is not there yet."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from typing import Any

from skyward.link.frames import HEADER, Kind, Parser
from skyward.link.messages import CALL
from skyward.link.wire import Wire
from skyward.node.agent.line_flow import SpooledLines
from skyward.node.data.result_store import ResultStore

__all__ = ["Succession"]

_LOOK = 1.0
"""Seconds between two looks whether a node that was left has anything to do."""


class Succession:
    """
    Keep what one client is not there for any more, and give it to the next.

    Args:
        loop: The agent's loop.
        directory: The node's, where the watchdog finds a file once there is nothing to do.
        link: The way to the client.
        results: The results that the client may not have.
        lines: What processes print.
        in_flight: Lists the calls that processes have.
        answer: Takes each answer.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        directory: str,
        link: Wire,
        results: ResultStore,
        lines: SpooledLines,
        in_flight: Callable[[], list[int]],
        answer: Callable[[dict[str, Any]], None],
    ) -> None:
        self._loop = loop
        self._idle_file = os.path.join(directory, "idle")
        self._link = link
        self._results = results
        self._lines = lines
        self._in_flight = in_flight
        self._answer = answer
        self._looking: asyncio.TimerHandle | None = None

    def ask(self, question: dict[str, Any]) -> bool:
        """
        Answer a client that leaves the node to another one (`park`), or has come instead of one.

        `park` is the seconds for which the node is to wait once its last call has ended; null for all of its lease.
        The next client asks which calls the node has (`calls`), and then for what was kept (`resume`).

        Args:
            question: The question, with its `number`, which its answer repeats.

        Returns:
            Whether it was one of these.
        """
        number = question.get("number")
        if "park" in question:
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
            # Those that failed with their process are with the link, as they are nowhere else.
            failed = [CALL.unpack_from(frame, HEADER.size)[0] for frame in self._failed()]
            ended = [*self._results.calls, *failed]
            self._answer({"number": number, "running": self._in_flight(), "ended": ended})
        else:
            return False
        return True

    def _failed(self) -> list[bytes]:
        return [frame for frame, _, _ in self._link.kept or () if Parser().feed(frame)[0].kind == Kind.RESULT]

    def close(self) -> None:
        """Look no more."""
        if self._looking is not None:
            self._looking.cancel()

    def _look(self, idle: float, since: float) -> None:
        """Leave the node to its watchdog once nothing has been under way for so long."""
        now = self._loop.time()
        if self._in_flight():
            since = now
        elif now - since >= idle:
            with contextlib.suppress(OSError), open(self._idle_file, "wb"):
                return
        self._looking = self._loop.call_later(_LOOK, self._look, idle, since)
