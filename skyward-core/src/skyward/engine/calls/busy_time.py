"""How long a machine works: the time in which calls run on it."""

from __future__ import annotations


class Work:
    """
    Count the calls that run on a machine, and the time in which there are any.

    Args:
        place: The machine's number among those of its pool.
    """

    __slots__ = ("calls", "place", "seconds", "since")

    def __init__(self, place: int) -> None:
        self.place = place
        self.calls = 0
        self.since = 0.0
        self.seconds = 0.0

    def until(self, now: float) -> float:
        """Return the seconds in which any call ran."""
        return self.seconds + (now - self.since if self.calls else 0.0)

    def end(self, now: float) -> None:
        """Count none of those that run any more."""
        self.seconds, self.calls = self.until(now), 0
