"""
How far a map or gather is, in words.
"""

from __future__ import annotations

from skyward.console.state import Bar
from skyward.console.wording import count, lasted

__all__ = ["BAR_STAYS_S", "how_far"]

BAR_STAYS_S = 2.0
"""Seconds for which bars that are complete stay, so that short ones are seen at all."""


def how_far(bar: Bar, now: float) -> str:
    """
    Return how far a bar is, and when it is complete.

    Args:
        bar: The bar.
        now: The time, in seconds since the epoch.

    >>> how_far(Bar(25, 100, since=0.0, at=10.0), 10.0)
    '25/100, 30.0 s left'
    """
    took = (bar.at if bar.complete else now) - bar.since
    rate = bar.done / took if took > 0 else 0.0
    if bar.total is None:
        return f"{count(bar.done)} done"
    done = f"{count(bar.done)}/{count(bar.total)}"
    if bar.complete:
        return f"{done} in {lasted(took)}"
    return f"{done}, {lasted((bar.total - bar.done) / rate)} left" if rate and took > 1 else done
