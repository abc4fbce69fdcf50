"""A length of time in words, as tables and messages show it."""

from __future__ import annotations

__all__ = ["span"]


def span(seconds: float) -> str:
    """
    Return how long something lasts, in the largest unit that fits.

    Args:
        seconds: How long.

    >>> [span(seconds) for seconds in (5, 61, 7300, 200000)]
    ['5 s', '1 min', '2 h', '2 d']
    """
    for unit, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= unit:
            return f"{int(seconds // unit)} {name}"
    return f"{max(0, int(seconds))} s"
