"""Frames come out as they went in, and anything else is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from skyward.errors import ProtocolError
from skyward.link.frames import HEADER, MAX_BODY, Frame, Kind, Parser, decode_json, encode, encode_json

_frames = st.builds(
    Frame,
    st.sampled_from([int(kind) for kind in Kind]),
    st.integers(0, 65535),
    st.just(0),
    st.binary(max_size=300),
) | st.builds(
    Frame,
    st.sampled_from([int(Kind.TASK), int(Kind.RESULT), int(Kind.BLOB)]),
    st.integers(0, 65535),
    st.integers(1, 8),
    st.binary(max_size=300),
)


@given(st.lists(_frames, max_size=12), st.data())
def test_frames_survive_any_cut(frames: list[Frame], data: st.DataObject) -> None:
    """However the bytes are split on their way."""
    whole = b"".join(encode(frame.kind, frame.body, lane=frame.lane, fds=frame.fds) for frame in frames)
    parser, found = Parser(), []
    while whole:
        cut = data.draw(st.integers(1, len(whole)))
        found += parser.feed(whole[:cut])
        whole = whole[cut:]
    assert found == frames
    assert parser.pending == 0


@given(st.binary(max_size=400))
def test_hostile_bytes_are_a_protocol_error_or_wait_for_more(data: bytes) -> None:
    """Never anything else, and never more memory than came in."""
    parser = Parser()
    try:
        parser.feed(data)
    except ProtocolError:
        return
    assert parser.pending <= len(data)


def test_frame_that_is_too_large_is_refused_at_both_ends() -> None:
    """Before it is read."""
    with pytest.raises(ProtocolError, match="over the limit"):
        encode(Kind.TASK, bytes(MAX_BODY + 1))
    with pytest.raises(ProtocolError, match="no frame of Skyward's protocol"):
        Parser().feed(HEADER.pack(MAX_BODY + 1, Kind.TASK, 0, 0))


@pytest.mark.parametrize("body", [b"", b"[]", b"3", b"{", b"\xff", b"[" * 100_000])
def test_json_that_is_no_object_is_refused(body: bytes) -> None:
    """Also where it is nested without end."""
    with pytest.raises(ProtocolError):
        decode_json(body)


def test_json_comes_out_as_it_went_in() -> None:
    """Names and numbers."""
    assert decode_json(encode_json(Kind.READY, {"a": [1, None, "x"]})[8:]) == {"a": [1, None, "x"]}


@pytest.mark.parametrize("kind", [Kind.HELLO, Kind.LOG, Kind.CANCEL, Kind.READY])
def test_descriptors_with_a_kind_that_has_none_are_refused(kind: Kind) -> None:
    """Nothing would close them."""
    with pytest.raises(ProtocolError, match="1 descriptors"):
        Parser().feed(HEADER.pack(0, kind, 1, 0))
