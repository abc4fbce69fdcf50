"""What a line carries: measured by what is acknowledged while there is more to send."""

from __future__ import annotations

from typing import NamedTuple

LEAST_INTERVAL = 0.001
"""Seconds over which a rate is measured at least; shorter ones are those of the machine's own processes."""

_MOST_RISE = 4.0
"""How much of a measured rate one measurement may make, because two acknowledgements may have waited for each other."""

_BUSY = 0.5
"""Share of the time spent on compressing from which that, and not the line, says how much is sent."""


class MeasuredRate(NamedTuple):
    """
    What was acknowledged over some time.

    Args:
        rate: Bytes a second on the line.
        content: Bytes a second that they were before they were compressed.
        starved: Whether there was nothing to send for a part of it.
        packing: Share of the time that was spent on compressing.
    """

    rate: float
    content: float
    starved: bool = False
    packing: float = 0.0


def followed(rate: float | None, measured: MeasuredRate) -> float | None:
    """
    Return the estimate of a line after one more measurement.

    A line that was not kept busy carries at least what was seen.
    Where compressing held it up, more is assumed until less is compressed, which shows how much there is.

    Args:
        rate: Bytes a second so far; None if nothing was measured.
        measured: The measurement.

    >>> followed(None, MeasuredRate(2.5e6, 2.5e6))
    2500000.0
    >>> followed(2.5e6, MeasuredRate(1e6, 1e6, starved=True))
    2500000.0
    """
    if measured.starved:
        return None if rate is None else max(rate, measured.rate)
    if rate is None:
        return measured.rate
    if measured.packing > _BUSY:
        return max(rate, measured.rate, min(1.25 * rate, 0.9 * measured.content))
    if measured.rate > rate:
        return min(measured.rate, _MOST_RISE * rate)
    return rate + (measured.rate - rate) / 4


class _Count(NamedTuple):
    """How much was acknowledged, at some time."""

    at: float
    delivered: int
    content: int
    packing: float


class Mark(NamedTuple):
    """
    What a cell remembers of the moment when it was sent.

    Args:
        content: Bytes that it carries, before they were compressed.
        since: What had been acknowledged; None if nothing was under way.
        starved: Whether there had been nothing to send.
    """

    content: int
    since: _Count | None
    starved: bool


class LineRate:
    """
    Measure a line.

    The time that a first acknowledgement takes is not counted: it is the line's length and not its rate.
    After "Delivery Rate Estimation" of TCP's BBR (draft-cheng-iccrg-delivery-rate-estimation), which counts it.
    """

    def __init__(self) -> None:
        self.rate: float | None = None
        self.packing = 0.0
        self._delivered = 0
        self._content = 0
        self._starved_until = 0
        self._first: _Count | None = None
        self._last: _Count | None = None

    def restart(self) -> None:
        """Measure again, on another connection; until then the rate is that of the one before."""
        self._first = self._last = None
        self._starved_until = self._delivered

    def starve(self, under_way: int) -> None:
        """
        Record that there is nothing to send.

        Args:
            under_way: Bytes that are not acknowledged.
        """
        self._starved_until = self._delivered + under_way

    def mark(self, content: int, under_way: int) -> Mark:
        """
        Begin to measure with a cell that is about to be sent.

        Args:
            content: Bytes that it carries, before they were compressed.
            under_way: Bytes that are not acknowledged.
        """
        if not under_way:
            self._first = self._last = None
        return Mark(content, self._last, self._delivered < self._starved_until)

    def delivered(self, size: int, content: int) -> None:
        """
        Count a cell that is acknowledged.

        Args:
            size: Its bytes on the line.
            content: Those that it carries.
        """
        self._delivered += size
        self._content += content

    def measure(self, mark: Mark, now: float, under_way: int) -> None:
        """
        Measure, after an acknowledgement.

        Args:
            mark: That of the last large cell that it is about.
            now: Seconds on a monotonic clock.
            under_way: Bytes that are not acknowledged yet; if there are none, the other end may have waited for more.
        """
        reached = _Count(now, self._delivered, self._content, self.packing)
        since = mark.since or self._first
        if under_way and since is not None and now - since.at >= LEAST_INTERVAL:
            seconds = now - since.at
            measured = MeasuredRate(
                (reached.delivered - since.delivered) / seconds,
                (reached.content - since.content) / seconds,
                mark.starved,
                (reached.packing - since.packing) / seconds,
            )
            self.rate = followed(self.rate, measured)
        self._last = reached
        self._first = self._first or reached
