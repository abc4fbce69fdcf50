"""How long the end of a pool waits for handlers that are behind, and when it warns of that."""

from __future__ import annotations

from typing import Self

from attrs import evolve, frozen

__all__ = ["STUCK_S", "WARN_AFTER_S", "WARN_EVERY_S", "Left", "FlushDeadline"]

STUCK_S = 10.0
"""Seconds that one call of a handler may take once its pool is left; then it is given up."""

WARN_AFTER_S = 2.0
"""Seconds of waiting before the first warning."""

WARN_EVERY_S = 5.0
"""Seconds from one warning to the next."""


@frozen(kw_only=True)
class Left:
    """
    Say what handlers have not taken yet.

    Args:
        lines: Log lines.
        others: Events of all other kinds.
        handler: What runs now, or ran last, by name.

    >>> print(Left(lines=35945, others=1, handler="save"))
    35,945 log lines and 1 other event
    >>> print(Left(lines=0, others=12, handler="save"))
    12 events
    """

    lines: int
    others: int
    handler: str

    def __str__(self) -> str:
        lines = f"{self.lines:,} log line{'' if self.lines == 1 else 's'}"
        others = f"{self.others:,} {'other ' if self.lines else ''}event{'' if self.others == 1 else 's'}"
        return " and ".join(text for text, count in ((lines, self.lines), (others, self.others)) if count) or "nothing"


@frozen(kw_only=True)
class FlushDeadline:
    """
    Decide how to continue while handlers are behind; all times are of one clock, in seconds.

    They are waited for as long as their calls end, each within `STUCK_S`.

    Args:
        handled: Calls of handlers that had ended when it was last looked.
        moved_at: When one was last seen to have ended.
        warn_at: When the next warning is due.
        until: When the wait is over in any case; None as long as it takes.

    >>> patience = FlushDeadline.at(0.0, handled=5)
    >>> patience.seen(9.0, handled=5).ended(9.0), patience.seen(10.0, handled=5).ended(10.0)
    (False, True)
    >>> patience.seen(9.0, handled=6).ended(18.0)
    False
    """

    handled: int
    moved_at: float
    warn_at: float
    until: float | None = None

    @classmethod
    def at(cls, now: float, *, handled: int, within: float | None = None) -> Self:
        """
        Begin to wait.

        Args:
            now: The time.
            handled: Calls of handlers that have ended.
            within: Seconds after which the wait is over in any case; None as long as it takes.
        """
        until = None if within is None else now + within
        return cls(handled=handled, moved_at=now, warn_at=now + WARN_AFTER_S, until=until)

    def seen(self, now: float, *, handled: int) -> Self:
        """Record how many calls have ended."""
        return self if handled == self.handled else evolve(self, handled=handled, moved_at=now)

    def ended(self, now: float) -> bool:
        """Return whether the wait is over."""
        return now >= self.moved_at + STUCK_S or (self.until is not None and now >= self.until)

    def warns(self, now: float) -> bool:
        """Return whether a warning is due."""
        return now >= self.warn_at

    def warned(self, now: float) -> Self:
        """Record that there was one."""
        return evolve(self, warn_at=now + WARN_EVERY_S)

    def wait_s(self, now: float) -> float:
        """Return for how long there is nothing to decide, unless the handlers are done before."""
        until = min(self.warn_at, self.moved_at + STUCK_S, *(() if self.until is None else (self.until,)))
        return max(0.0, until - now)
