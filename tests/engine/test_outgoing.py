"""Functions are pickled again only when what they capture changed."""

from __future__ import annotations

import threading

import pytest

import skyward as sky
from skyward.engine.buffers import Buffers
from skyward.engine.outgoing import Captures


def test_function_is_pickled_again_only_when_what_it_captures_changed() -> None:
    """The same capture is the same object."""
    captures, offset = Captures(Buffers()), 1

    def shifted(x: int) -> int:
        return x + offset

    function = sky.function(shifted)
    first = captures.capture(function, "shifted")
    assert captures.capture(function, "shifted") is first
    offset = 2
    assert captures.capture(function, "shifted").digest != first.digest


def test_function_that_cannot_be_pickled_is_told_by_its_variable() -> None:
    """In the caller's line."""
    lock = threading.Lock()
    with pytest.raises(sky.SerializationError, match="`lock`"):
        Captures(Buffers()).capture(sky.function(lambda: lock), "locked")


LARGE = 65 << 20
"""More than is named the first time that it is sent."""


def _far() -> Buffers:
    buffers = Buffers()
    buffers.go_far()
    return buffers


def test_what_several_machines_get_is_named_by_its_content() -> None:
    """Memory that holds nothing else is not copied, and the next time it has the same name."""
    buffers, array = _far(), np.ones(LARGE, np.uint8)
    before = dump(array, buffers.keep)
    assert Place.SEGMENT == before.parts[-1].place
    payload = buffers.apart(before)
    assert (Place.STORED, LARGE, digest_of(memoryview(array))) == payload.parts[-1]
    assert payload.segment is None
    assert [before.segment] == list(payload.stored)
    assert payload.parts[-1] == dump(array, buffers.keep).parts[-1]
    assert np.array_equal(array, load(payload))


def test_what_is_small_beside_it_travels_as_before() -> None:
    """Each part arrives at its place."""
    buffers = _far()
    value = [np.full(size, number, np.uint8) for number, size in enumerate((LARGE, 100_000, LARGE + 7, 200_000, 10))]
    payload = buffers.apart(dump(value, buffers.keep))
    places = [part.place for part in payload.parts]
    assert [Place.STORED, Place.SEGMENT, Place.STORED, Place.SEGMENT] == [
        place for place in places if place != Place.INLINE
    ]
    assert all(np.array_equal(one, other) for one, other in zip(value, load(payload), strict=True))


@pytest.mark.parametrize("value", [1, np.zeros(100_000, np.uint8), [np.zeros(300_000, np.uint8)] * 2])
def test_what_has_no_large_part_stays_as_it_is(value: Any) -> None:
    """Also what would be named on its way to another machine, where none leaves this one."""
    buffers = _far()
    before = dump(value, buffers.keep)
    assert before.parts == buffers.apart(before).parts
    here = dump(np.ones(SIZE, np.uint8), Buffers().keep)
    assert here is Buffers().apart(here)
