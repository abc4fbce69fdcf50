"""Whether compressing pays, for what there is to send and the line that it takes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping

from skyward.link.line_rate import LineRate
from skyward.link.packed import HUFFMAN, LEVELS, WIDTHS, deflate, pack, shuffled

FAST = 50e6
"""Bytes a second from which nothing is compressed: a quicker line takes less time than both ends' processors do."""

LEAST_FRAMES = 1 << 10
"""Bytes of small frames in one cell from which they may be compressed."""

MOST_FRAMES = 320 << 10
"""Bytes of frames in one cell up to which they may be: all that a payload puts into a frame, and what is around it."""

SAMPLE = 8 << 10
"""Bytes of a piece by which the rest is judged."""

APART = 1 << 20
"""Bytes of one buffer after which it is judged again."""

GAIN = 0.95
"""Share of the time without compressing that is to be undercut."""

_CLEARLY = 0.99
"""Share of what plain text would leave that numbers are to undercut, to be taken for some."""

_SAMPLING = 0.03
"""Share of the line's time that samples may take."""

_COSTS = {HUFFMAN: 1 / 180e6, 1: 1 / 120e6, 5: 1 / 60e6}
"""Seconds to compress a byte of text on a processor of 2020; what others take is measured as a multiple of it."""

_RECENT = 16
"""How many pieces measure this machine: the quickest of them, as any of the others may have waited for it."""

_PER_CALL = 40e-6
"""Seconds to begin at both ends, whatever the size."""


def choose(rate: float, shares: Mapping[int, float], costs: Mapping[int, float]) -> int | None:
    """
    Return the level at which compressing pays; None if none does.

    Compressing and sending are counted one after the other, though they overlap: what is chosen is never slower.

    Args:
        rate: Bytes a second on the line.
        shares: What each level leaves of a byte.
        costs: Seconds that each level takes for a byte.

    >>> text = {1: 0.36, 5: 0.315}
    >>> [choose(mbit * 125e3, text, {1: 7e-9, 5: 16e-9}) for mbit in (5, 20, 100, 1000)]
    [5, 5, 1, None]
    """
    if not shares or rate > FAST:
        return None
    seconds = {level: costs[level] + share / rate for level, share in shares.items()}
    best = min(seconds, key=lambda level: seconds[level])
    return best if seconds[best] <= GAIN / rate else None


def shares_of(sample: bytes | memoryview) -> tuple[int, dict[int, float]]:
    """
    Return how to compress what a sample is of: the width of its numbers, and what each level leaves of a byte.

    Nothing is left out for a sample that does not become smaller.

    >>> shares_of(bytes(range(256)) * 4)[0]
    1
    >>> shares_of(b"".join(i.to_bytes(8, "little") for i in range(1000)))[0]
    8
    """
    size = len(sample)
    found = {width: len(deflate(shuffled(sample, width), 1)) / size for width in WIDTHS}
    # What is no array of numbers stays as it is, unless it gains clearly.
    width = min(WIDTHS, key=lambda width: found[width] * (_CLEARLY if width == 1 else 1.0))
    apart = shuffled(sample, width)
    shares = {level: found[width] if level == 1 else len(deflate(apart, level)) / size for level in LEVELS}
    return width, shares if min(shares.values()) <= GAIN else {}


class Content:
    """What is known of one buffer that is being sent."""

    __slots__ = ("seen", "shares", "width")

    def __init__(self) -> None:
        self.seen: int | None = None
        self.shares: dict[int, float] = {}
        self.width = 1

    def learn(self, level: int, share: float) -> None:
        """
        Record what a level left of a piece: a sample knows less, and is as far off for the others.

        Args:
            level: The level.
            share: What it left of a byte.
        """
        off = (1 + share / self.shares[level]) / 2
        self.shares = {other: before * off for other, before in self.shares.items()}


class Packer:
    """
    Compress what is worth it.

    Args:
        line: How quick the line is.
        clock: Returns seconds, by which compressing is timed.
    """

    def __init__(self, line: LineRate, clock: Callable[[], float] = time.perf_counter) -> None:
        self._line = line
        self._clock = clock
        self._slowness = deque([1.0], maxlen=_RECENT)
        self._earned = 0.0
        self._sample_cost = 0.0
        self._frames_share = 0.5
        self.able = False

    def piece(self, content: Content, piece: memoryview) -> bytes | None:
        """
        Compress the next piece of a buffer; None if it is to be sent as it is.

        Args:
            content: What is known of the buffer.
            piece: The piece.
        """
        rate = self._line.rate
        if not self.able or rate is None or rate > FAST:
            return None
        self._earned = min(self._earned + len(piece) / rate, 1.0)
        if content.seen is None or content.seen >= APART:
            self._look(content, piece)
        if content.seen is not None:
            content.seen += len(piece)
        if not content.shares:
            return None
        slowness = min(self._slowness)
        level = choose(rate, content.shares, {level: cost * slowness for level, cost in _COSTS.items()})
        if level is None:
            return None
        began = self._clock()
        packed = pack(piece, level, content.width)
        seconds = self._clock() - began
        self._line.packing += seconds
        self._slowness.append(seconds / len(piece) / _COSTS[level])
        share = len(packed) / len(piece)
        content.learn(level, share)
        return packed if share <= GAIN else None

    def frames(self, frames: bytes) -> bytes | None:
        """
        Compress small frames; None if they are to be sent as they are.

        Args:
            frames: All those of one cell.
        """
        rate = self._line.rate
        if not self.able or rate is None or rate > FAST or not LEAST_FRAMES <= len(frames) <= MOST_FRAMES:
            return None
        saved = (1 - self._frames_share) * len(frames) / rate
        if saved < 2 * (_PER_CALL + len(frames) * _COSTS[1]):
            # What comes later may be of another kind.
            self._frames_share += (0.5 - self._frames_share) / 64
            return None
        began = self._clock()
        packed = pack(frames, 1)
        self._line.packing += self._clock() - began
        share = len(packed) / len(frames)
        self._frames_share += (share - self._frames_share) / 4
        return packed if share <= GAIN else None

    def _look(self, content: Content, piece: memoryview) -> None:
        """Take a sample, unless samples take too much of the line's time."""
        if self._earned * _SAMPLING < self._sample_cost:
            return
        began = self._clock()
        at = max(0, (len(piece) - SAMPLE) // 2) & -max(WIDTHS)
        content.width, content.shares = shares_of(piece[at : at + SAMPLE])
        seconds = self._clock() - began
        content.seen = 0
        self._line.packing += seconds
        self._earned = 0.0
        self._sample_cost = seconds
