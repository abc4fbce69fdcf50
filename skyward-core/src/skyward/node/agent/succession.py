"""A node between two clients: one has left, and the next one is not there yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skyward.link.wire import Wire
from skyward.node.agent.line_flow import SpooledLines
from skyward.node.data.result_store import ResultStore

__all__ = ["Succession"]


class Succession:
    """
    Keep what one client is not there for any more, and give it to the next.

    Args:
        link: The way to the client.
        results: The results that the client may not have.
        lines: What processes print.
        in_flight: Lists the calls that processes have.
        answer: Takes each answer.
    """

    def __init__(
        self,
        link: Wire,
        results: ResultStore,
        lines: SpooledLines,
        in_flight: Callable[[], list[int]],
        answer: Callable[[dict[str, Any]], None],
    ) -> None:
        self._link = link
        self._results = results
        self._lines = lines
        self._in_flight = in_flight
        self._answer = answer

    def ask(self, question: dict[str, Any]) -> bool:
        """
        Answer a client that leaves the node to another one (`park`), or has come instead of one.

        It asks which calls the node has (`calls`), and for what was kept (`resume`), once it can take that.

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
        elif "resume" in question:
            self._answer({"number": number})
            self._link.unpark()
            self._results.send_again()
            self._lines.succeeded()
        elif "calls" in question:
            self._answer({"number": number, "running": self._in_flight(), "ended": self._results.calls})
        else:
            return False
        return True
