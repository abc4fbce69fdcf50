"""What a pool's nodes print and what happens to it, numbered, so that a reader goes on where it was."""

from __future__ import annotations

import threading
import time
from collections import deque

from attrs import frozen

from skyward.console.wording import clean, tell
from skyward.model.events.event import Log, SkywardEvent
from skyward.plain import redacted

__all__ = ["KEPT", "Lines", "Page"]

KEPT = 20_000
"""Lines that are kept of a pool; older ones are dropped."""

LONGEST = 2_000
"""Characters of a line; what is more is cut off."""


@frozen(kw_only=True)
class Page:
    """
    Hold lines in their order.

    Args:
        lines: The lines.
        next: The number of the line after them.
        dropped: How many were asked for and are not kept any more.
    """

    lines: tuple[str, ...]
    next: int
    dropped: int


class Lines:
    """
    Keep the last lines of a pool.

    >>> lines = Lines()
    >>> lines.add("one"); lines.add("two")
    >>> lines.page(after=1, most=10, wait=0.0)
    Page(lines=('two',), next=2, dropped=0)
    """

    def __init__(self, kept: int = KEPT) -> None:
        self._lines: deque[str] = deque(maxlen=kept)
        self._count = 0
        self._closed = False
        self._changed = threading.Condition()

    def add(self, line: str) -> None:
        """
        Add a line.

        Args:
            line: Its text; passwords in addresses are hidden.
        """
        with self._changed:
            self._lines.append(redacted(clean(line))[:LONGEST])
            self._count += 1
            self._changed.notify_all()

    def receive(self, event: SkywardEvent) -> None:
        """
        Add the line of an event, if it is worth one.

        Args:
            event: Of the pool.
        """
        if isinstance(event, Log):
            self.add(f"node {event.node}: {event.line}")
        elif (line := tell(event)) is not None:
            self.add(f"skyward: {'' if line.node is None else f'node {line.node}: '}{line.text}")

    def close(self) -> None:
        """Stop all readers from waiting: the pool is over."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def page(self, *, after: int, most: int, wait: float) -> Page:
        """
        Return the lines after some number.

        Args:
            after: How many lines the reader has; less than 0 counts from the end.
            most: How many to return at most.
            wait: Seconds to wait for one, where there is none yet.
        """
        deadline = time.monotonic() + wait
        with self._changed:
            first = max(0, self._count + after) if after < 0 else after
            while self._count <= first and not self._closed and (rest := deadline - time.monotonic()) > 0:
                self._changed.wait(rest)
            oldest = self._count - len(self._lines)
            begin = min(max(first, oldest), self._count)
            kept = [*self._lines][begin - oldest :][:most]
            return Page(lines=tuple(kept), next=begin + len(kept), dropped=max(0, begin - first))
