"""Calls on their way into the stored log: one by one as far as there is room, and counted beyond."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from attrs import define

from skyward.plan.logs.log_format import CANCELLED, FAILED, OK

__all__ = ["BURST", "LONG_S", "RATE", "StoredCalls", "Ended"]

RATE = 2000.0
"""Calls a second that have a row each, in the long run; the others are counted. As many failures have one, too."""

BURST = 5_000.0
"""Calls that may have theirs at once, after a time without any."""

LONG_S = 1.0
"""Seconds after which a call that runs has a line."""

Ended: TypeAlias = tuple[int, str, int, float, float, float, int, bool, str | None]
"""An attempt that ended: id, function, node, when it was submitted, began (0 if it did not) and ended, how, and the
failure: whether another attempt follows, and the error in one line."""


@define
class _Room:
    """Grant rows: so many at once, and so many a second."""

    left: float = BURST
    at: float | None = None

    def refill(self, now: float) -> None:
        self.left = min(BURST, self.left + (now - (self.at or now)) * RATE)
        self.at = now


class StoredCalls:
    """
    Gather calls until they are written.

    Args:
        bits: How many bits of an attempt's id name its task; those above count the attempts before it.

    >>> batch = StoredCalls(48)
    >>> batch.add([(5, "f", 0, 1.0, 1.5, 2.0, OK, False, None)], 2.0)
    >>> list(batch.take(2.5, 100.0, lambda text: text))
    [('calls', {'t': 100.0, 'fn': ['f'], 'rows': [(5, 1, 0, 0, 1500000, 500000, 500000, 0)]})]
    """

    def __init__(self, bits: int) -> None:
        self._bits = bits
        self._rooms = {OK: _Room(), FAILED: _Room()}
        self._rooms[CANCELLED] = self._rooms[OK]
        self._rows: list[Ended] = []
        self._failed: list[Ended] = []
        self._counted: dict[tuple[str, int], list[Any]] = {}
        self._long: dict[int, tuple[str, int, float]] = {}
        self._said: set[int] = set()

    def add(self, attempts: Iterable[Ended], now: float) -> None:
        """
        Take attempts that ended.

        Args:
            attempts: The attempts; their times are monotonic.
            now: The monotonic time.
        """
        for room in (self._rooms[OK], self._rooms[FAILED]):
            room.refill(now)
        rooms, rows, counted = self._rooms, self._rows, self._counted
        for ended in attempts:
            how = ended[6]
            room = rooms[how]
            # Without a call where there is room, for there may be tens of thousands a second.
            if room.left >= 1.0:
                room.left -= 1.0
                (self._failed if how == FAILED else rows).append(ended)
                continue
            counts = counted.get((ended[1], ended[2]))
            if counts is None:
                counts = counted[ended[1], ended[2]] = [[0, 0, 0], 0.0, ended[5]]
            counts[0][how] += 1
            counts[1] += ended[5] - ended[4] if ended[4] else 0.0

    def running(self, running: Mapping[int, tuple[str, int, float]], now: float) -> None:
        """
        Take what runs, of which whatever runs for long gets a line.

        Args:
            running: Function, node and beginning of each attempt, by its id.
            now: The monotonic time.
        """
        self._said.intersection_update(running)
        for number, (function, node, began) in running.items():
            if now - began >= LONG_S and number not in self._said and len(self._said) < BURST:
                self._said.add(number)
                self._long[number] = (function, node, began)

    def take(self, now: float, wall: float, clear: Callable[[str], str]) -> Iterator[tuple[str, dict[str, Any]]]:
        """
        Return the kind and the facts of each line that there is to write, with its time as `t`.

        Args:
            now: The monotonic time.
            wall: The same moment in seconds since 1970.
            clear: Clears a text of secrets.
        """
        long, self._long = self._long, {}
        for number, (function, node, began) in long.items():
            task, attempt = self._numbers(number)
            yield "running", {"t": wall - (now - began), "task": task, "attempt": attempt, "fn": function, "node": node}
        rows, self._rows = self._rows, []
        if rows:
            yield "calls", {"t": wall, **self._in_rows(rows, now)}
        failed, self._failed = self._failed, []
        for number, function, node, sent, began, ended, _, again, error in failed:
            task, attempt = self._numbers(number)
            yield (
                "failed",
                {
                    "t": wall,
                    "task": task,
                    "attempt": attempt,
                    "fn": function,
                    "node": node,
                    **dict(zip(("sent", "waited", "ran"), _times(now, sent, began, ended), strict=True)),
                    **({"again": True} if again else {}),
                    "error": clear(error or ""),
                },
            )
        counted, self._counted = self._counted, {}
        for (function, node), ((ok, bad, cancelled), seconds, since) in counted.items():
            yield (
                "counted",
                {
                    "t": wall,
                    "fn": function,
                    "node": node,
                    "ok": ok,
                    "failed": bad,
                    "cancelled": cancelled,
                    "seconds": round(seconds, 6),
                    "since": round(wall - (now - since), 3),
                },
            )

    def _in_rows(self, rows: list[Ended], now: float) -> dict[str, Any]:
        names: dict[str, int] = {}
        made = []
        for number, function, node, sent, began, ended, how, _, _ in rows:
            index = names.setdefault(function, len(names))
            made.append((*self._numbers(number), index, node, *_times(now, sent, began, ended), how))
        return {"fn": list(names), "rows": made}

    def _numbers(self, number: int) -> tuple[int, int]:
        """Return the task of an id, and which attempt it is."""
        return number & ((1 << self._bits) - 1), (number >> self._bits) + 1


def _times(now: float, sent: float, began: float, ended: float) -> tuple[int, int, int]:
    """Return in microseconds how long ago it was sent, how long it waited, and how long it ran."""
    sent = sent or began or ended
    begun = began or ended
    return round((now - sent) * 1e6), round((begun - sent) * 1e6), round((ended - begun) * 1e6)
