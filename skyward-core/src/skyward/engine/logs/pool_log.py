"""What a pool says to its stored log, whether it has one or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from skyward.engine.calls.answer import Answer
    from skyward.engine.calls.call import Call
    from skyward.link.messages import LogLine
    from skyward.model.events.event import SkywardEvent

__all__ = ["NOT_STORED", "PoolLog"]


class PoolLog(Protocol):
    """Take what happens in a pool; quick, and any thread may call it."""

    def event(self, event: SkywardEvent) -> None:
        """Take an event."""

    def lines(self, node: int, stream: int, lines: list[LogLine]) -> None:
        """Take what a worker wrote, to standard output (1) or standard error (2)."""

    def began(self, call: Call, node: int) -> None:
        """Take that an attempt of a call began."""

    def ended(self, call: Call, answer: Answer, *, again: bool) -> None:
        """Take how an attempt of a call ended."""


class _NotStored:
    """Take everything, and keep nothing."""

    def event(self, event: SkywardEvent) -> None:
        """Pass it over."""

    def lines(self, node: int, stream: int, lines: list[LogLine]) -> None:
        """Pass them over."""

    def began(self, call: Call, node: int) -> None:
        """Pass it over."""

    def ended(self, call: Call, answer: Answer, *, again: bool) -> None:
        """Pass it over."""


NOT_STORED: PoolLog = _NotStored()
"""The log of a pool that stores none."""
