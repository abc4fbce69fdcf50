"""Plain values are pickled by Python's own pickler, to the same bytes; all others are left to ours."""

from __future__ import annotations

import pickle
from array import array
from collections import OrderedDict
from enum import IntEnum
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, strategies as st

from skyward.link.payload import load
from skyward.link.payload_making import dump, pickled
from skyward.link.plain_pickle import pickled_atom, pickled_plainly


class Pair(NamedTuple):
    one: int
    other: int


class Colour(IntEnum):
    RED = 1


class Text(str):
    pass


ATOMS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
PLAIN = st.recursive(
    ATOMS | st.binary().map(bytearray) | st.sets(st.integers()) | st.frozensets(st.text()),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
)
OTHERS: list[Any] = [
    np.zeros(3), Pair(1, 2), Colour.RED, Text("a"), Fraction(1, 2), OrderedDict(), array("b", b"1"), 1j, len, int,
    lambda: 7, pickle.PickleBuffer(b"abc"), ValueError("no"), memoryview(b"abc"),
]  # fmt: skip


@given(PLAIN)
def test_the_stream_is_the_same(value: Any) -> None:
    """Whatever reads it."""
    assert pickled_plainly(value) == b"".join(pickled((value,)).streams[0])


@given(ATOMS)
def test_an_atom_survives(value: Any) -> None:
    """With its type."""
    found = load(dump(value))
    assert (found, type(found)) == (value, type(value))
    assert pickled_atom(value) is not None


@pytest.mark.parametrize("value", OTHERS, ids=lambda value: type(value).__name__)
def test_what_may_need_more_is_left(value: Any) -> None:
    """Alone, and wherever it stands."""
    assert pickled_plainly(value) is None
    assert pickled_plainly({"a": [1, (value,)]}) is None
    assert pickled_atom(value) is None


def test_what_is_large_is_left() -> None:
    """It may be kept at nodes."""
    for value in (bytes(1 << 17), "a" * (1 << 17), [0.5] * (1 << 14)):
        assert pickled_plainly(value) is None
        assert pickled_atom(value) is None
    assert pickled_atom(1 << (1 << 21)) is None


def test_what_refers_to_itself_survives() -> None:
    """And what is nested too deeply is left, with the error that it is."""
    loop: list[Any] = []
    loop.append(loop)
    stream = pickled_plainly(loop)
    assert stream is not None
    found = pickle.loads(stream)
    assert found[0] is found
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert pickled_plainly(deep) is None
