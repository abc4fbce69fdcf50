"""Keys as bytes: equal ones are equal, and others are not."""

from __future__ import annotations

import enum
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import attrs
import pytest
from hypothesis import given, strategies as st

from skyward.collections.key_encoding import decode_key, encode_key
from skyward.collections.value_encoding import Values

VALUES = Values()

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.binary(max_size=5)
    | st.sampled_from([0, 1, 0.0, 1.0, -0.0, 2**70, 2.0**70, True, False, "1", b"1"])
)
KEYS = st.recursive(SCALARS, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=5)


class Place(NamedTuple):
    x: int
    y: int


class Level(enum.IntEnum):
    LOW = 1


class Colour(enum.StrEnum):
    RED = "red"


@attrs.frozen
class Point:
    name: str
    other: str


def encoded(key: Any) -> bytes:
    return encode_key(key, VALUES.pack_key)


@given(KEYS, KEYS)
def test_keys_are_equal_as_in_python(one: Any, other: Any) -> None:
    """Two keys have the same bytes if and only if they are equal."""
    assert (one == other) == (encoded(one) == encoded(other))


@given(KEYS)
def test_a_key_is_read_as_what_equals_it(key: Any) -> None:
    """Decoding gives an equal key."""
    assert key == decode_key(encoded(key), VALUES.open)


@pytest.mark.parametrize(
    ("key", "plain"),
    [
        (Place(1, 2), (1, 2)),
        (Level.LOW, 1),
        (Colour.RED, "red"),
        (Decimal("1.0"), 1),
        (Decimal("0.5"), 0.5),
        (Fraction(1, 2), 0.5),
        (1 + 0j, 1.0),
        (float("inf"), float("inf")),
        ("\ud800", "\ud800"),
        (2**9999, 2**9999),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_equals_a_plain_value_is_its_key(key: Any, plain: Any) -> None:
    """A value of another type finds what was stored under an equal plain one, which is what is read."""
    assert encoded(plain) == encoded(key)
    found = decode_key(encoded(key), VALUES.open)
    assert (plain, type(plain)) == (found, type(found)) or plain == found


def test_other_keys_are_equal_when_their_pickles_are() -> None:
    """Equal objects are found although their parts are other objects."""
    text = "ab"
    same = Point(text, text)
    apart = Point("".join(list(text)), "".join(list(text)))
    assert encoded(same) == encoded(apart)
    assert same == decode_key(encoded(apart), VALUES.open)
    assert encoded(Point("a", "b")) != encoded(same)


def test_numbers_beyond_floats_are_pickled() -> None:
    """A fraction that no float equals is a key of its own."""
    third = Fraction(1, 3)
    assert third == decode_key(encoded(third), VALUES.open)
    assert encoded(third) != encoded(1 / 3)


def test_a_key_is_hashable() -> None:
    """A list is refused as Python refuses it."""
    with pytest.raises(TypeError, match="unhashable"):
        encoded([1])
