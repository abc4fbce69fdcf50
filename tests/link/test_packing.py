"""Compressing is chosen by a sample, by the line and by what it costs; nothing is ever slower for it."""

from __future__ import annotations

import json
import random
from array import array

import pytest
from hypothesis import given, strategies as st

from skyward.link.cells import CHUNK
from skyward.link.line_rate import LineRate
from skyward.link.packed import LEVELS, unpack
from skyward.link.packing import APART, FAST, GAIN, LEAST_FRAMES, MOST_FRAMES, Content, Packer, choose, shares_of

TEXT = {0: 0.6, 1: 0.36, 5: 0.315}
WEIGHTS = {0: 0.89, 1: 0.89, 5: 0.88}
COSTS = {0: 5e-9, 1: 7e-9, 5: 15e-9}


@pytest.mark.parametrize(
    ("shares", "mbit", "expected"),
    [
        (TEXT, 1, 5),
        (TEXT, 20, 5),
        (TEXT, 100, 1),
        (TEXT, 300, 1),
        (TEXT, 1000, None),
        (WEIGHTS, 5, 5),
        (WEIGHTS, 20, 0),
        (WEIGHTS, 100, None),
        ({0: 0.99, 1: 0.98, 5: 0.98}, 5, None),
        ({}, 5, None),
    ],
)
def test_the_line_decides(shares: dict[int, float], mbit: float, expected: int | None) -> None:
    """Better on a slow one, quicker on a quicker one, not at all on a quick one or where little is gained."""
    assert expected == choose(mbit * 125e3, shares, COSTS)


@given(
    st.floats(1e3, 1e10),
    st.fixed_dictionaries({level: st.floats(0.001, 1.2) for level in LEVELS}),
    st.fixed_dictionaries({level: st.floats(1e-10, 1e-6) for level in LEVELS}),
)
def test_what_is_chosen_is_quicker(rate: float, shares: dict[int, float], costs: dict[int, float]) -> None:
    """Also where nothing overlaps; and what is not chosen would not have been, or the line is quick."""
    times = {level: costs[level] + shares[level] / rate for level in LEVELS}
    level = choose(rate, shares, costs)
    if level is None:
        assert rate > FAST or min(times.values()) > GAIN / rate
    else:
        assert times[level] == min(times.values()) <= GAIN / rate


def _text(size: int) -> bytes:
    random_ = random.Random(1)
    rows: list[str] = []
    while sum(map(len, rows[-1:])) * len(rows) < size * 1.2:
        rows.append(json.dumps({"id": random_.getrandbits(40), "name": f"user {random_.random()}", "active": True}))
    return "\n".join(rows).encode()[:size]


def _numbers(kind: str, size: int) -> bytes:
    random_ = random.Random(2)
    if kind == "f":
        return array("f", [random_.gauss(0, 1) for _ in range(size // 4)]).tobytes()
    return array(kind, [random_.randrange(50_000) for _ in range(size // array(kind).itemsize)]).tobytes()


NOISE = random.Random(3).randbytes(4 << 20)


@pytest.mark.parametrize(
    ("sample", "width", "most"),
    [
        (_text(8192), 1, 0.5),
        (_numbers("q", 8192), 8, 0.3),
        (_numbers("i", 8192), 4, 0.6),
        (_numbers("f", 8192), 4, 0.93),
        (bytes(8192), 1, 0.02),
        (b"x", 1, 9),
    ],
)
def test_a_sample_tells_what_numbers_there_are(sample: bytes, width: int, most: float) -> None:
    """By trying; text is no numbers."""
    found, shares = shares_of(sample)
    assert width == found
    assert min(shares.values(), default=0) <= most


def test_noise_is_worth_nothing() -> None:
    """Nor is what was compressed before."""
    assert {} == shares_of(NOISE[:8192])[1]


class Clock:
    """A clock on which every look takes as long."""

    def __init__(self, seconds: float) -> None:
        self.now = 0.0
        self._seconds = seconds

    def __call__(self) -> float:
        self.now += self._seconds
        return self.now


def _packer(mbit: float | None, seconds: float = 0.0002) -> Packer:
    line = LineRate()
    line.rate = None if mbit is None else mbit * 125e3
    packer = Packer(line, Clock(seconds))
    packer.able = True
    return packer


def _pieces(packer: Packer, data: bytes) -> list[bytes | None]:
    content, view = Content(), memoryview(data)
    return [packer.piece(content, view[at : at + CHUNK]) for at in range(0, len(data), CHUNK)]


def test_pieces_come_back() -> None:
    """All of them are compressed, and are what they were."""
    data = _text(APART * 2 + 100)
    packed = _pieces(_packer(20), data)
    assert None not in packed
    assert data == b"".join(unpack(piece or b"", CHUNK) for piece in packed)


@pytest.mark.parametrize(("mbit", "able"), [(None, True), (1000, True), (20, False)])
def test_nothing_is_tried_where_it_cannot_pay(mbit: float | None, able: bool) -> None:
    """The rate of the line is not known, or quick, or the other end could not read it."""
    packer = _packer(mbit)
    packer.able = able
    assert {None} == {*_pieces(packer, _text(APART)), packer.frames(_text(LEAST_FRAMES * 4))}
    assert 0 == packer._line.packing


@pytest.mark.parametrize("mbit", [5, 20, 100, 300])
def test_samples_of_noise_take_a_few_percent_of_the_line(mbit: float) -> None:
    """However many buffers there are, and however slow this machine is."""
    packer = _packer(mbit, 0.002)
    for at in range(0, len(NOISE), 2 * CHUNK):
        assert [None, None] == _pieces(packer, NOISE[at : at + 2 * CHUNK])
    assert packer._line.packing <= 0.03 * len(NOISE) / (mbit * 125e3) + 0.002


def test_each_megabyte_is_judged_anew() -> None:
    """A file of text has pictures in it, and text again."""
    packed = _pieces(_packer(20), _text(APART) + NOISE[:APART] + _text(APART))
    each = APART // CHUNK
    assert [None] * (each - 1) == packed[each + 1 : 2 * each]
    assert None not in packed[:each]
    assert None not in packed[2 * each + 1 :]


def test_slow_machine_compresses_less() -> None:
    """What it costs is measured."""
    text = _text(APART)
    assert None not in _pieces(_packer(100, 0.0002), text)
    # Before it has measured anything it may try as often as the others.
    assert [] == [piece for piece in _pieces(_packer(100, 0.02), text)[20:] if piece is not None]


def test_small_frames_are_compressed_where_it_pays() -> None:
    """A few kilobytes on a slow line; hundreds of bytes never, nor what is too large to wait for."""
    text = _text(1 << 20)
    packed = _packer(20).frames(text[:8000])
    assert packed is not None
    assert text[:8000] == unpack(packed, MOST_FRAMES)
    assert _packer(20).frames(text[: LEAST_FRAMES - 1]) is None
    assert _packer(20).frames(text[: MOST_FRAMES + 1]) is None
    assert _packer(300).frames(text[:2000]) is None


def test_small_frames_of_noise_are_left_alone_after_some() -> None:
    """They are tried again later."""
    packer = _packer(20)
    before = packer._line.packing
    assert {None} == {packer.frames(NOISE[at : at + 4000]) for at in range(0, 1_000_000, 4000)}
    assert 0 < packer._line.packing - before < 60 * 0.0002
