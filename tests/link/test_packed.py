"""Compressed pieces come back as they were, and what is none is refused before it takes memory."""

from __future__ import annotations

import random
import tracemalloc
import zlib
from struct import pack as packed

import pytest
from hypothesis import given, strategies as st

from skyward.errors import ProtocolError
from skyward.link.cells import CHUNK
from skyward.link.packed import LEVELS, WIDTHS, pack, unpack
from tests.seeds import seeds


def _raw(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


@given(st.binary(min_size=1, max_size=3000), st.sampled_from(LEVELS), st.sampled_from(WIDTHS))
def test_a_piece_comes_back(data: bytes, level: int, width: int) -> None:
    """Whatever it holds, also if it does not end with a whole number."""
    assert data == unpack(pack(memoryview(data), level, width), len(data))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("width", WIDTHS)
def test_the_largest_pieces_come_back(level: int, width: int) -> None:
    """Those that become hardly larger, and those that become next to nothing."""
    for data in (random.Random(1).randbytes(CHUNK), bytes(CHUNK), bytes(CHUNK - 1)):
        body = pack(data, level, width)
        assert data == unpack(body, CHUNK)
        assert CHUNK // 130 <= len(body) <= CHUNK + 200


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "is cut off"),
        (b"\1\0\0\0", "is cut off"),
        (packed("<BI", 1, 0) + _raw(b""), "states 0"),
        (packed("<BI", 3, 5) + _raw(b"12345"), "cannot be"),
        (packed("<BI", 0, 5) + _raw(b"12345"), "cannot be"),
        (packed("<BI", 1, CHUNK + 1) + _raw(bytes(CHUNK + 1)) + bytes(CHUNK), "cannot be"),
        (packed("<BI", 1, CHUNK) + _raw(bytes(CHUNK)), "cannot be"),
        (packed("<BI", 1, 4) + _raw(b"12345"), "does not hold the 4 bytes"),
        (packed("<BI", 1, 6) + _raw(b"12345"), "does not hold the 6 bytes"),
        (packed("<BI", 1, 5) + _raw(b"12345")[:-1], "does not hold the 5 bytes"),
        (packed("<BI", 1, 5) + b"\xff" * 9, "cannot be read"),
    ],
)
def test_what_is_no_piece_is_refused(body: bytes, message: str) -> None:
    """A size that is not that of the bytes, a width that there is not, a stream that does not end."""
    with pytest.raises(ProtocolError, match=message):
        unpack(body, CHUNK)


def test_a_bomb_takes_no_more_memory_than_a_piece() -> None:
    """However much it would become: it is read up to the size that it states."""
    bomb = packed("<BI", 1, CHUNK) + _raw(bytes(64 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError, match="does not hold"):
            unpack(bomb, CHUNK)
        assert tracemalloc.get_traced_memory()[1] < 4 * CHUNK
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("seed", seeds("compressed pieces", 12))
def test_damaged_pieces_are_refused_or_of_their_size(seed: int) -> None:
    """Nothing else is raised."""
    random_ = random.Random(seed)
    for _ in range(300):
        data = random_.choice([random_.randbytes(500), b"text and text " * 60, bytes(4000)])
        body = bytearray(pack(data, random_.choice(LEVELS), random_.choice(WIDTHS)))
        for _ in range(random_.randrange(1, 4)):
            body[random_.randrange(len(body))] = random_.randrange(256)
        try:
            assert len(unpack(body[: random_.choice([len(body), random_.randrange(len(body))])], 5000)) <= 5000
        except ProtocolError:
            continue
