"""What is compressed follows the line: simulated on a virtual clock, with the real outbox and real bytes."""

from __future__ import annotations

import json
import random
from collections import deque
from collections.abc import Callable

import pytest
from hypothesis import given, settings, strategies as st

from skyward.link.cells import CHUNK
from skyward.link.outbox import Outbox

MIB = 1 << 20
_ROOM = 256 << 10


def _text(size: int) -> bytes:
    random_ = random.Random(1)
    words = [f"{random_.getrandbits(24):x}" for _ in range(1000)]
    rows: list[bytes] = []
    length = 0
    while length < size:
        row = {"id": random_.getrandbits(40), "text": " ".join(random_.choices(words, k=8)), "active": True}
        rows.append(json.dumps(row).encode())
        length += len(rows[-1])
    return b"".join(rows)[:size]


# A period that is longer than what compression looks back at is made in a sixteenth of the time.
TEXT = 16 * _text(MIB)
NOISE = random.Random(2).randbytes(16 * MIB)
CONTENTS = {"text": TEXT[: 4 * MIB], "noise": NOISE[: 4 * MIB], "both": TEXT[:MIB] + NOISE[:MIB] + bytes(2 * MIB)}


class Line:
    """
    Carry what an outbox gives at some rate, and have it acknowledged.

    Args:
        rate: Gives bytes a second, by how many were carried.
        latency: Seconds from one end to the other.
        able: Whether the other end reads what is compressed.
        packing: Seconds that compressing a chunk takes.
    """

    def __init__(
        self, rate: Callable[[int], float], latency: float = 0.01, *, able: bool = True, packing: float = 0.0003
    ) -> None:
        self._rate = rate
        self._latency = latency
        self._packing = packing
        self._compresses = False
        self.outbox = Outbox(self._tick)
        self.outbox.packer.able = able
        self.now = 0.0
        self.carried = 0
        self._free = 0.0
        self._acknowledged = 0
        self._acks: deque[float] = deque()

    def _tick(self) -> float:
        # It is asked when compressing begins, and when it ends.
        self._compresses = not self._compresses
        if not self._compresses:
            self.now += self._packing
        return self.now

    def carry(self, *contents: bytes) -> float:
        """Send contents one after the other, each when the one before is there, and give the seconds it took."""
        began = self.now
        for content in contents:
            self.outbox.add(b"frame", [memoryview(content)])
            while not self.outbox.idle:
                self._write()
                self.now = max(self.now, self._acks.popleft())
                self._acknowledged += 1
                self.outbox.acknowledged(self._acknowledged, self.now)
        return self.now - began

    def _write(self) -> None:
        while (self._free - self.now) * self._rate(self.carried) < _ROOM:
            before = len(self.outbox._sent)
            if not self.outbox.next(1, self.now):
                return
            for cell in list(self.outbox._sent)[before:]:
                self._free = max(self._free, self.now) + cell.size / self._rate(self.carried)
                self.carried += cell.size
                self._acks.append(self._free + 2 * self._latency)


def _steady(mbit: float) -> Callable[[int], float]:
    return lambda carried: mbit * 125e3


def test_text_takes_a_third_of_a_slow_line() -> None:
    """In bytes and in time."""
    line = Line(_steady(20))
    seconds = line.carry(TEXT)
    assert line.carried <= 0.36 * len(TEXT)
    assert seconds <= 0.38 * len(TEXT) / 2.5e6


def test_noise_goes_as_it_is() -> None:
    """At the cost of some samples."""
    line = Line(_steady(20))
    seconds = line.carry(NOISE)
    assert line.carried <= 1.001 * len(NOISE)
    assert seconds <= 1.02 * len(NOISE) / 2.5e6


@pytest.mark.parametrize("latency", [0.0001, 0.002])
def test_a_quick_line_carries_text_as_it_is(latency: float) -> None:
    """But for what it takes to see that it is quick."""
    line = Line(_steady(2400), latency)
    line.carry(TEXT, TEXT)
    assert line.carried >= 0.9 * 2 * len(TEXT)


def test_a_long_line_is_helped_while_little_may_be_under_way() -> None:
    """It is as slow as what may be, however quick it could be."""
    plain, line = Line(_steady(2400), 0.05, able=False), Line(_steady(2400), 0.05)
    assert line.carry(TEXT, TEXT) <= 0.5 * plain.carry(TEXT, TEXT)


def test_arguments_on_a_quick_line_are_not_compressed() -> None:
    """A few hundred kilobytes go there and back before the line is full; that is no slow line."""
    line = Line(_steady(2400), 0.0005)
    sizes = range(200_000, 800_000, 10_000)
    line.carry(*[TEXT[:size] for size in sizes])
    assert line.carried >= 0.95 * sum(sizes)


def test_a_line_that_loses_its_rate_is_helped() -> None:
    """A tenth of it in the middle, from where on less is sent."""
    half = len(TEXT) // 2
    line = Line(lambda carried: 80e6 if carried < half else 2e6)
    line.carry(NOISE[:half] + TEXT[half:])
    assert half + 0.3 * half <= line.carried <= half + 0.5 * half


def test_a_line_that_becomes_quick_is_left_alone() -> None:
    """Ten times quicker and more, from where on bytes go as they are."""
    quarter = len(TEXT) // 4
    line = Line(lambda carried: 2.5e6 if carried < quarter else 400e6, 0.0005)
    line.carry(TEXT, TEXT)
    as_it_was = 2 * len(TEXT) - quarter / 0.36
    assert line.carried >= quarter + 0.8 * as_it_was


def test_small_arguments_are_compressed_once_the_line_is_known() -> None:
    """Each of them is judged by itself."""
    line = Line(_steady(20))
    line.carry(TEXT[:MIB])
    before = line.carried
    line.carry(*[TEXT[at : at + 2 * CHUNK] for at in range(0, 4 * MIB, 2 * CHUNK)])
    assert line.carried - before <= 0.4 * 4 * MIB


@settings(max_examples=25, deadline=None)
@given(
    st.floats(2, 4000),
    st.floats(0.0001, 0.1),
    st.sampled_from(sorted(CONTENTS)),
    st.sampled_from([0.00005, 0.0003, 0.001]),
)
def test_it_is_never_slower(mbit: float, latency: float, name: str, packing: float) -> None:
    """
    Whatever the line, the content and the machine; but for what it takes to know them, and a way there and back.

    A slow machine takes a millisecond a chunk, and some thirty chunks are tried before the line is known.
    """
    content = CONTENTS[name]
    plain = Line(_steady(mbit), latency, able=False).carry(content, content)
    line = Line(_steady(mbit), latency, packing=packing)
    assert line.carry(content, content) <= 1.05 * plain + 0.04 + 2 * latency
