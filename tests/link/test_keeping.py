"""Requests for what a client keeps are read as they were written, and nothing else is one."""

from __future__ import annotations

import os

import pytest

from skyward.errors import ProtocolError
from skyward.link.frames import Frame, Kind
from skyward.link.keeping import ADDRESS, PIECE, check_announced, decode_kept, encode_kept
from skyward.link.messages import CALL
from skyward.link.payload_making import pack
from skyward.link.segment import Segment, write_segment


@pytest.mark.parametrize("size", [0, 1, 256 << 10, PIECE])
def test_a_request_is_read_as_it_was_written(size: int) -> None:
    """With whatever bytes, in the frame or beside it."""
    data = os.urandom(size)
    body, payload = encode_kept(7, {"do": "write", "at": 3}, data)
    found = decode_kept(body, [os.dup(fd) for fd in payload.fds])
    assert (7, {"do": "write", "at": 3}, data) == (found.number, found.head, bytes(found.data))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        CALL.pack(1),
        CALL.pack(1) + pack([b"{}"]).encode(),
        CALL.pack(1) + pack([b"{}", b"", b""]).encode(),
        CALL.pack(1) + pack([b"[]", b""]).encode(),
        CALL.pack(1) + pack([b"no json", b""]).encode(),
        CALL.pack(1) + pack([b" " * 70_000, b""]).encode(),
    ],
    ids=["nothing", "no payload", "one part", "three parts", "no object", "no JSON", "long JSON"],
)
def test_what_is_no_request_is_refused(body: bytes) -> None:
    """By an error that ends the link."""
    with pytest.raises(ProtocolError):
        decode_kept(body, [])


def test_more_than_a_piece_is_refused() -> None:
    """When it is announced, and when it is there."""
    payload = pack([b"{}", bytes(3 << 20)])
    body = CALL.pack(1) + payload.encode()
    with pytest.raises(ProtocolError, match="are allowed"):
        check_announced(Frame(Kind.KEEP, 0, 1, body))
    with pytest.raises(ProtocolError, match="are allowed"):
        decode_kept(body, [os.dup(fd) for fd in payload.fds])


def test_a_piece_travels_in_a_segment_of_less_than_a_mebibyte() -> None:
    """Larger ones are remembered as what may be passed on, which this is not."""
    segment = write_segment([[b"{}"], [bytes(PIECE)]])
    assert isinstance(segment, Segment)
    assert segment.size < 1 << 20


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../a", "-a", "a b", "a\n", "a" * 201, "ä"])
def test_what_leads_elsewhere_is_no_address(name: str) -> None:
    """Folders are made of addresses."""
    assert ADDRESS.fullmatch(name) is None
