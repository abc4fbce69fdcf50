"""
When a cloud that fails every launch is given up, rather than asked for one offer after the other.
"""

from __future__ import annotations

from attrs import frozen

__all__ = ["PATIENCE", "Failing", "hopeless", "noted"]

PATIENCE = 40.0
"""Seconds for which every launch has to fail until the offers that are left are not tried any more."""

_LEAST = 2


@frozen(kw_only=True)
class Failing:
    """
    Remember that launches fail, one after the other, without anything that the cloud says of machines or limits.

    Args:
        since: When the first of them was asked for, in seconds of a monotonic clock.
        count: How many there were.
    """

    since: float = 0.0
    count: int = 0

    def lasted(self, now: float) -> float:
        """Return for how many seconds launches have failed."""
        return now - self.since if self.count else 0.0


def noted(failing: Failing, began: float, *, answered: bool) -> Failing:
    """
    Record a launch.

    Args:
        failing: What was known before.
        began: When it was asked for, in seconds of a monotonic clock.
        answered: Whether it gave machines, or a reason why there are none.

    >>> noted(noted(Failing(), 5.0, answered=False), 14.0, answered=False)
    Failing(since=5.0, count=2)
    """
    if answered:
        return Failing()
    return Failing(since=failing.since if failing.count else began, count=failing.count + 1)


def hopeless(failing: Failing, now: float) -> bool:
    """
    Return whether a cloud fails whatever it is asked for: then it is asked once for each attempt, and no more.

    Args:
        failing: What is known.
        now: The time, in seconds of the same clock.

    >>> hopeless(Failing(since=5.0, count=4), now=20.0), hopeless(Failing(since=5.0, count=4), now=50.0)
    (False, True)
    """
    return failing.count >= _LEAST and failing.lasted(now) >= PATIENCE
