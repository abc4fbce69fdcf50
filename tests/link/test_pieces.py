"""Pieces are read like the whole."""

from __future__ import annotations

import io
import pickle

from hypothesis import given, strategies as st

from skyward.link.pieces import Pieces


@given(st.lists(st.binary(max_size=20)), st.lists(st.tuples(st.sampled_from("rli"), st.integers(0, 30))))
def test_pieces_are_read_like_the_whole(pieces: list[bytes], steps: list[tuple[str, int]]) -> None:
    """Whatever is asked for, wherever it was cut."""
    whole, cut = io.BytesIO(b"".join(pieces)), Pieces(pieces)
    for how, size in steps:
        if how == "r":
            assert cut.read(size) == whole.read(size)
        elif how == "l":
            assert cut.readline() == whole.readline()
        else:
            one, other = bytearray(size), bytearray(size)
            assert cut.readinto(one) == whole.readinto(other)
            assert one == other
        assert cut.tell() == whole.tell()


@given(st.integers(0, 300_000), st.integers(1, 1000))
def test_a_pickle_in_pieces_is_unpickled(size: int, count: int) -> None:
    """Also where a large object is cut."""
    value = [{"a": b"x" * size, "b": "y" * size}, list(range(100))]
    whole = pickle.dumps(value, 5)
    step = -(-len(whole) // count)
    pieces = [whole[at : at + step] for at in range(0, len(whole), step)]
    assert pickle.Unpickler(Pieces(pieces)).load() == value
