"""Results on a node's disk are read as they were written, or not at all."""

from __future__ import annotations

import os
import random
import zlib

import pytest
from hypothesis import given, strategies as st

from skyward.errors import ProtocolError
from skyward.link.frames import Kind, encode
from skyward.link.messages import CALL, RESULT, Status
from skyward.link.payload import decode, views
from skyward.link.payload_making import pack
from skyward.link.segment import anonymous_file
from skyward.link.stored import StoredParser, head, tail


def _record(call: int, large: int) -> bytes:
    payload = pack([b"pickle", bytes([call % 251]) * large])
    body = RESULT.pack(call, Status.OK, 1.0, 0.0) + payload.encode()
    frame = encode(Kind.RESULT, body, lane=2, fds=len(payload.fds))
    buffers = bytes(payload.segment.map()) if payload.segment is not None else b""
    return head(frame, len(buffers)) + frame + buffers + tail(zlib.crc32(buffers, zlib.crc32(frame)))


@given(
    st.lists(st.tuples(st.integers(0, 2**60), st.sampled_from([0, 300, 400_000])), max_size=4), st.integers(0, 2**32)
)
def test_records_are_read_however_they_are_cut(results: list[tuple[int, int]], seed: int) -> None:
    """Small results and large ones, one behind the other."""
    data = b"".join(_record(call, large) for call, large in results)
    parser, found, at = StoredParser(1 << 20), [], 0
    random_ = random.Random(seed)
    while at < len(data):
        size = random_.choice([1, 7, 100, 100_000, 1 << 20])
        found += parser.feed(data[at : at + size])
        at += size
    assert [CALL.unpack_from(stored.frame.body)[0] for stored in found] == [call for call, _ in results]
    assert [bool(stored.buffers) for stored in found] == [large == 400_000 for _, large in results]
    assert all(len(stored.buffers) == stored.frame.fds for stored in found)


@given(st.lists(st.booleans(), max_size=5), st.integers(0, 2**32))
def test_results_that_are_not_wanted_are_passed_over(wanted: list[bool], seed: int) -> None:
    """They are held by no more than a piece at a time, and those behind them are whole."""
    data = b"".join(_record(call, 400_000) + _record(100 + call, 300) for call in range(len(wanted)))
    parser, found, at = StoredParser(1 << 20, lambda frame: wanted[CALL.unpack_from(frame.body)[0]]), [], 0
    random_ = random.Random(seed)
    while at < len(data):
        size = random_.choice([7, 1000, 70_000])
        found += parser.feed(data[at : at + size])
        at += size
        if not any(wanted):
            assert len(parser._data) < 71_000
    calls = [CALL.unpack_from(stored.frame.body)[0] for stored in found]
    assert calls == [one for call, its in enumerate(wanted) for one in ([call] if its else []) + [100 + call]]


@given(st.integers(0, 2**32))
def test_damaged_records_are_refused(seed: int) -> None:
    """Whatever bit is wrong, nothing else is read in its place."""
    random_ = random.Random(seed)
    record = bytearray(_record(7, 300))
    record[random_.randrange(len(record))] ^= 1 << random_.randrange(8)
    try:
        found = StoredParser(1 << 20).feed(bytes(record))
    except ProtocolError:
        return
    # A length that is wrong lets it wait for bytes that never come.
    assert found == []


@given(st.binary(max_size=200), st.integers(0, 64), st.binary(max_size=50))
def test_senseless_results_are_refused(body: bytes, fds: int, buffers: bytes) -> None:
    """Although their checksum is right: nothing but `ProtocolError` comes of them."""
    frame = encode(Kind.RESULT, body, fds=fds)
    record = head(frame, len(buffers)) + frame + buffers + tail(zlib.crc32(buffers, zlib.crc32(frame)))
    try:
        (stored,) = StoredParser(1 << 20).feed(record)
    except ProtocolError:
        return
    assert (stored.frame.body, b"".join(stored.buffers)) == (body, buffers)


def test_record_that_is_too_large_is_refused() -> None:
    """Before its bytes are taken."""
    with pytest.raises(ProtocolError, match="no results"):
        StoredParser(1000).feed(_record(7, 400_000)[:100])


def test_payload_is_what_it_was() -> None:
    """Its buffers too, once they are in memory again."""
    (stored,) = StoredParser(1 << 20).feed(_record(9, 400_000))
    fds = tuple(anonymous_file() for _ in stored.buffers)
    for fd, buffer in zip(fds, stored.buffers, strict=True):
        os.write(fd, buffer)
    payload = decode(stored.frame.body, RESULT.size, fds)
    pickle, buffer = views(payload)
    assert (bytes(pickle), bytes(buffer)) == (b"pickle", bytes([9]) * 400_000)
