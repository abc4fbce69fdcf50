"""What is sent again is named by its content; what is new is not hashed."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import skyward as sky
from skyward.engine.outgoing import Buffers, Captures
from skyward.link.payload import Place, dump

SIZE = 2 << 20


def _place(buffers: Buffers, value: Any) -> int:
    return dump(value, buffers.keep).parts[-1].place


def test_array_that_is_sent_again_is_kept() -> None:
    """The first time costs no hashing."""
    buffers, array = Buffers(), np.zeros(SIZE, np.uint8)
    assert [_place(buffers, array) for _ in range(3)] == [Place.SEGMENT, Place.STORED, Place.STORED]


def test_array_that_leaves_the_machine_is_sent_once() -> None:
    """As long as nothing in it changes, and it is that array."""
    buffers, array = Buffers(), np.zeros(SIZE, np.uint8)
    buffers.go_far()
    first, second = buffers.keep(memoryview(array)), buffers.keep(memoryview(array))
    assert first is not None
    assert second is not None
    assert first.digest == second.digest
    array[5] = 1
    third = buffers.keep(memoryview(array))
    assert third is not None
    assert third.digest != first.digest
    other = buffers.keep(memoryview(array.copy()))
    assert other is not None
    assert other.digest != third.digest


def test_bytes_that_leave_the_machine_are_known_by_their_content() -> None:
    """Nothing else can tell whether they were sent."""
    buffers = Buffers()
    buffers.go_far()
    kept = [buffers.keep(memoryview(bytes(SIZE))) for _ in range(2)]
    assert kept[0] is not None
    assert kept[1] is not None
    assert kept[0].digest == kept[1].digest


def test_new_array_in_the_place_of_an_old_one_is_not_kept() -> None:
    """Arrays made in a loop often have the same address; keeping each would fill the memory."""
    buffers = Buffers()
    assert {_place(buffers, np.full(SIZE, number, np.uint8)) for number in range(10)} == {Place.SEGMENT}


@pytest.mark.parametrize(
    "array",
    [
        np.asfortranarray(np.random.default_rng(0).random((1024, 512))),
        np.zeros((1024, 1024))[256:],
        np.zeros((1024, 1024)).T[:, 256:],
    ],
    ids=["column by column", "a part", "a part, transposed"],
)
@pytest.mark.parametrize("far", [False, True])
def test_array_that_numpy_pickles_through_a_view_is_recognised(array: Any, far: bool) -> None:
    """The view is another object each time; what it shows is the same."""
    buffers = Buffers()
    if far:
        buffers.go_far()
    digests = [dump(array, buffers.keep).parts[-1].digest for _ in range(3)]
    assert far == bool(digests[0])
    assert digests[1]
    assert digests[1] == digests[2]


def test_parts_of_one_array_are_each_new() -> None:
    """A loop that sends one part after the other hashes and keeps none of them."""
    buffers, array = Buffers(), np.zeros((10, SIZE), np.uint8)
    assert {_place(buffers, array[number]) for number in range(10)} == {Place.SEGMENT}


def test_array_with_the_same_content_has_the_same_digest() -> None:
    """Whatever object it is."""
    buffers = Buffers()
    digests = set()
    for _ in range(2):
        array = np.arange(SIZE)
        dump(array, buffers.keep)
        digests.add(dump(array, buffers.keep).parts[-1].digest)
    assert len(digests) == 1


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
