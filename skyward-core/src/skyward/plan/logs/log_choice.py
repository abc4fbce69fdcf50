"""Which lines of a stored log are wanted: by node, by call, by time."""

from __future__ import annotations

import re
from datetime import datetime

from attrs import frozen

from skyward.errors import UsageError
from skyward.plan.logs.log_format import Record

__all__ = ["LogChoice", "moment"]

_AGO = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|min|h|d|w)")
_UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}


@frozen(kw_only=True)
class LogChoice:
    """
    Say which lines of a log are wanted.

    Args:
        node: Only what concerns this node.
        task: Only what concerns this call.
        since: Only what happened from then on, in seconds since 1970.
    """

    node: int | None = None
    task: str | None = None
    since: float | None = None

    def wants(self, found: Record) -> bool:
        """
        Return whether a line is wanted; rows of calls are looked through one by one.

        >>> LogChoice(node=1).wants({"n": 1, "t": 5.0, "k": "line", "node": 0, "text": "hi"})
        False
        """
        if self.since is not None and found["t"] < self.since:
            return False
        if found["k"] == "calls":
            return any(self._of(str(row[0]), row[3]) for row in found["rows"])
        return self._of(found.get("task"), found.get("node"))

    def _of(self, task: object, node: object) -> bool:
        return (self.node is None or node == self.node) and (self.task is None or str(task) == self.task)


def moment(words: str, now: float) -> float:
    """
    Return the moment that words mean, in seconds since 1970.

    Args:
        words: A length of time before now, such as `10m`, `2h` or `30s`, or a date and time in ISO 8601, by this
            computer's time zone unless it says another one.
        now: The time, in seconds since 1970.

    Raises:
        UsageError: If it is neither.

    >>> moment("10m", 1000.0), moment("1970-01-01T00:00:10+00:00", 0.0)
    (400.0, 10.0)
    """
    if found := _AGO.fullmatch(words.strip()):
        return now - float(found[1]) * _UNITS[found[2]]
    try:
        return datetime.fromisoformat(words.strip()).timestamp()
    except (ValueError, OverflowError, OSError) as error:
        raise UsageError(
            f"A time is a number and s, m, h, d or w, or a date as in 2026-03-01T12:00, not {words!r}.",
            hint="Write 10m for the last ten minutes.",
        ) from error
