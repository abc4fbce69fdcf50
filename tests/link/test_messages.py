"""Log lines come out as they went in, and anything else is refused."""

from __future__ import annotations

import contextlib

from hypothesis import given, strategies as st

from skyward.errors import ProtocolError
from skyward.link.messages import LogLine, decode_lines, encode_lines

_lines = st.builds(LogLine, st.integers(0, 2**64 - 1), st.text(max_size=50).filter(lambda text: text.isprintable()))


@given(st.sampled_from([1, 2]), st.lists(_lines, max_size=20))
def test_lines_come_out_as_they_went_in(stream: int, lines: list[LogLine]) -> None:
    """With their stream and calls."""
    assert decode_lines(encode_lines(stream, lines)) == (stream, lines)


@given(st.binary(max_size=200))
def test_hostile_bytes_are_a_protocol_error_or_lines(body: bytes) -> None:
    """Never anything else."""
    with contextlib.suppress(ProtocolError):
        decode_lines(body)
