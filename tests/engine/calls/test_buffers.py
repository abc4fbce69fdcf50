"""What is sent again is recognised and named, and what is new is neither hashed nor kept."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from skyward.engine.calls import buffers as room
from skyward.engine.calls.buffers import Buffers
from skyward.link import payload_making, segment as segments, written
from skyward.link.payload import Payload, load
from skyward.link.payload_making import Keep, dump, packed, pickled
from skyward.link.payload_parts import Place
from skyward.link.recycling import Recycling
from tests.descriptors import memory_descriptors

SIZE = 2 << 20
RANDOM = np.random.default_rng(0)


@pytest.fixture(params=[True, False], ids=["watched", "compared"])
def watched(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Where the kernel watches memory of any size, and where it watches none."""
    if request.param:
        if written._process.kernel() is None:
            pytest.skip("This kernel watches no memory.")
        monkeypatch.setattr(room, "WORTH_IT", 0)
        monkeypatch.setattr(written, "WORTH_IT", 0)
    else:
        monkeypatch.setattr(room, "watch", lambda address, size: None)
    return bool(request.param)


def some(size: int = SIZE) -> np.ndarray:
    """Make an array like no other."""
    return RANDOM.integers(0, 256, size, np.uint8)


def content(kept: Keep, size: int) -> bytes:
    """Give what nodes would have under a name."""
    return bytes(kept.segment.map()[:size])


def _place(buffers: Buffers, value: Any) -> int:
    return dump(value, buffers.keep).parts[-1].place


def test_array_that_is_sent_again_is_kept() -> None:
    """The first time costs no copy but the one that is sent."""
    buffers, array = Buffers(), some()
    assert [_place(buffers, array) for _ in range(3)] == [Place.SEGMENT, Place.STORED, Place.STORED]


def test_unchanged_array_is_neither_copied_nor_read(watched: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel says that nothing was written; the ends that share a page with other memory are compared."""
    buffers, array = Buffers(), some()
    kept = [buffers.keep(memoryview(array)) for _ in range(2)][1]
    assert kept is not None
    compared: list[int] = []
    before = room.equal
    monkeypatch.setattr(room, "equal", lambda one, other: compared.append(len(one)) or before(one, other))
    monkeypatch.setattr(room, "write_segment", None)
    monkeypatch.setattr(room, "digest_of", None)
    assert all(buffers.keep(memoryview(array)) is kept for _ in range(10))
    assert sum(compared) < 100_000 if watched else sum(compared) == 10 * SIZE


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_what_is_kept_is_what_was_sent(data: st.DataObject) -> None:
    """Whatever was written in between, by whatever part of the array it is sent, far or near."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "WORTH_IT", 0)
        patch.setattr(written, "WORTH_IT", 0)
        buffers = Buffers()
        if data.draw(st.booleans()):
            buffers.go_far()
        array = np.zeros(3 << 20, np.uint8)
        steps = st.sampled_from(["send", "send", "send", "write", "sampled", "fill", "read", "part", "copy"])
        for step in data.draw(st.lists(steps, max_size=25)):
            part = array
            if step == "write":
                array[data.draw(st.integers(0, array.size - 1))] += 1
                continue
            if step == "sampled":
                array[0] += 1
                continue
            if step == "fill":
                array[:] = data.draw(st.integers(0, 3))
                continue
            if step == "read":
                with open("/dev/urandom", "rb", buffering=0) as source:
                    source.readinto(memoryview(array)[1 << 20 : (1 << 20) + 100])
                continue
            if step == "part":
                part = array[data.draw(st.sampled_from([1, 4096, 1 << 20])) :]
            if step == "copy":
                part = array.copy()
            kept = buffers.keep(memoryview(part))
            assert kept is None or content(kept, part.size) == part.tobytes()
        buffers.clear()


def test_array_that_changes_each_time_is_given_up_on(watched: bool) -> None:
    """Each first write to a watched page costs a fault, which only pays if the next calls find it unchanged."""
    buffers, array = Buffers(), some()
    for number in range(12):
        for _ in range(2):
            kept = buffers.keep(memoryview(array))
            assert kept is None or content(kept, SIZE) == array.tobytes()
        array[SIZE // 3] = number
    assert not any(place.watch for place in buffers._places.values())


def test_array_that_leaves_the_machine_is_sent_once() -> None:
    """As long as nothing in it changes, or what it is changed to was sent."""
    buffers, array = Buffers(), some()
    buffers.go_far()
    first, second = buffers.keep(memoryview(array)), buffers.keep(memoryview(array))
    assert first is not None
    assert second is not None
    assert first.digest == second.digest
    array[5] += 1
    third = buffers.keep(memoryview(array))
    assert third is not None
    assert third.digest != first.digest
    other = buffers.keep(memoryview(array.copy()))
    assert other is not None
    assert other.digest == third.digest


@pytest.mark.parametrize("far", [False, True])
def test_bytes_are_known_by_their_content(far: bool) -> None:
    """Whatever object they are."""
    buffers, content = Buffers(), os.urandom(SIZE)
    if far:
        buffers.go_far()
    kept = [buffers.keep(memoryview(bytes(bytearray(content)))) for _ in range(3)]
    assert (kept[0] is None) is not far
    assert kept[1] is not None
    assert kept[2] is not None
    assert kept[1].digest == kept[2].digest


def test_new_array_in_the_place_of_an_old_one_is_not_kept() -> None:
    """Arrays made in a loop often have the same address; keeping each would fill the memory."""
    buffers = Buffers()
    assert {_place(buffers, np.full(SIZE, number, np.uint8)) for number in range(10)} == {Place.SEGMENT}


def test_arrays_that_look_alike_are_told_apart(watched: bool) -> None:
    """Zeros with one number among them: the samples are the same, and each is another."""
    buffers = Buffers()
    for number in range(20):
        array = np.zeros(SIZE, np.uint8)
        array[1000 * number + 500] = 1
        kept = buffers.keep(memoryview(array))
        assert kept is None or content(kept, SIZE) == array.tobytes()
    assert buffers.held <= 2 * SIZE


@pytest.mark.parametrize(
    "array",
    [
        np.asfortranarray(np.random.default_rng(0).random((1024, 512))),
        np.random.default_rng(1).random((1024, 1024))[256:],
        np.random.default_rng(2).random((1024, 1024)).T[:, 256:],
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
    """A loop that sends one part after the other keeps none of them."""
    buffers, array = Buffers(), some(10 * SIZE).reshape(10, SIZE)
    assert {_place(buffers, array[number]) for number in range(10)} == {Place.SEGMENT}


def test_array_with_the_same_content_has_the_same_name() -> None:
    """Whatever object it is."""
    buffers = Buffers()
    names = {dump(np.arange(SIZE), buffers.keep).parts[-1].digest for _ in range(4)}
    assert len(names - {b""}) == 1


def test_an_array_that_came_from_a_node_is_kept_without_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in a segment already."""
    buffers, array = Buffers(), load(dump(some()))
    buffers.keep(memoryview(array))
    monkeypatch.setattr(room, "write_segment", None)
    kept = buffers.keep(memoryview(array))
    assert kept is not None
    assert content(kept, SIZE) == array.tobytes()


LARGE = 8 << 20
"""Copies of this size are lent again."""


def _sent(buffers: Buffers, value: Any) -> Payload:
    """Send a value as an argument is sent."""
    made = pickled((value,))
    payload = packed(made, buffers.keep)
    buffers.sent(made.buffers, payload)
    return payload


@pytest.fixture
def lending(watched: bool, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recycling]:
    """Copies that nothing else wrote, where the kernel watches memory."""
    if not watched:
        pytest.skip("Without a watch a copy is compared with what came again, and not known to be the same.")
    mine = Recycling()
    monkeypatch.setattr(room, "recycling", mine)
    monkeypatch.setattr(segments, "recycling", mine)
    yield mine
    mine.clear()


def test_the_copy_that_was_sent_first_is_the_one_that_is_kept(
    lending: Recycling, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though its call has ended: an array that many calls use is copied once."""
    buffers, array = Buffers(), some(LARGE)
    assert _sent(buffers, array).parts[-1].place == Place.SEGMENT
    monkeypatch.setattr(payload_making, "write_segment", None)
    monkeypatch.setattr(room, "write_segment", None)
    again = [_sent(buffers, array) for _ in range(3)]
    assert {payload.parts[-1].place for payload in again} == {Place.STORED}
    assert len({payload.parts[-1].digest for payload in again}) == 1
    assert np.array_equal(load(again[0]), array)
    assert buffers.held == LARGE


@pytest.mark.parametrize("at", [0, 12_345, LARGE // 2, LARGE - 1])
def test_a_copy_of_what_changed_since_is_not_kept(lending: Recycling, at: int) -> None:
    """Wherever it changed, and whatever stands beside it."""
    buffers, array = Buffers(), some(LARGE)
    _sent(buffers, array)
    array[at] ^= 1
    for _ in range(3):
        assert np.array_equal(load(_sent(buffers, array)), array)


def test_a_copy_that_was_written_over_is_not_kept(lending: Recycling) -> None:
    """Its memory was taken for another argument in between."""
    buffers, array, other = Buffers(), some(LARGE), some(LARGE)
    _sent(buffers, array)
    _sent(buffers, other)
    assert len(lending._kept) == 1
    for value in (array, other, array, other):
        assert np.array_equal(load(_sent(buffers, value)), value)


def test_what_has_a_name_already_gets_no_other(lending: Recycling) -> None:
    """It was named on its way to several machines, which would be sent it once more under another name."""
    buffers, array = Buffers(), some(LARGE)
    buffers.go_far()
    made = pickled((array,))
    # As one that is too large to be kept at once.
    payload = packed(made, None)
    place = room._place_of(made.buffers[0])
    buffers._remember(place, room._WatchedPlace(b"", room.watch(*place), 0))
    buffers.sent(made.buffers, payload)
    [name] = [part.digest for part in buffers.apart(payload).parts if part.place == Place.STORED]
    kept = buffers.keep(memoryview(array))
    assert kept is not None
    assert kept.digest == name


def test_a_copy_that_is_one_part_of_a_segment_is_not_kept(lending: Recycling) -> None:
    """All of it would be held for that part, or what is before it be taken for it."""
    buffers, arrays = Buffers(), [some(LARGE) for _ in range(3)]
    for _ in range(3):
        assert all(map(np.array_equal, load(_sent(buffers, arrays)), arrays))


def test_what_is_kept_is_bounded_by_its_bytes() -> None:
    """What was not used for longest goes first, and is sent again when it comes again."""
    buffers = Buffers(limit=5 * SIZE // 2)
    buffers.go_far()
    one, two, three = some(), some(), some()
    names = [kept.digest for array in (one, two, one, three, one, two) if (kept := buffers.keep(memoryview(array)))]
    assert names[0] == names[2] == names[4]
    assert names[5] != names[1]
    assert buffers.held == 2 * SIZE


def test_a_share_of_the_memory_is_kept() -> None:
    """Where no limit is given."""
    buffers = Buffers()
    for _ in range(2):
        array = np.zeros(SIZE, np.uint8)
        buffers.keep(memoryview(array))
    assert buffers._limit == room.share_of_memory()


def test_clear_gives_all_memory_back(watched: bool) -> None:
    """Descriptors and watches too."""
    gc.collect()
    before = memory_descriptors()
    buffers, arrays = Buffers(), [some() for _ in range(3)]
    for _ in range(3):
        for array in arrays:
            buffers.keep(memoryview(array))
    watches = [place.watch for place in buffers._places.values() if place.watch]
    assert bool(watches) == watched
    assert all(watch.intact() for watch in watches)
    buffers.clear()
    gc.collect()
    assert memory_descriptors() == before
    assert not any(watch.intact() for watch in watches)
    assert buffers.held == 0
    assert buffers.keep(memoryview(arrays[0])) is None


# What several machines get.

BEYOND = 65 << 20
"""More than is kept the first time that it leaves this machine."""


def _far() -> Buffers:
    buffers = Buffers()
    buffers.go_far()
    return buffers


def test_what_several_machines_get_is_kept_at_once() -> None:
    """Memory that holds nothing else is not copied, and the next time it has the same name."""
    buffers, array = _far(), np.ones(BEYOND, np.uint8)
    before = dump(array, buffers.keep)
    assert before.parts[-1].place == Place.SEGMENT
    payload = buffers.apart(before)
    assert (payload.parts[-1].place, payload.parts[-1].size, payload.segment) == (Place.STORED, BEYOND, None)
    [stored] = payload.stored
    assert before.segment is not None
    assert os.fstat(before.segment.fd).st_ino == os.fstat(stored.fd).st_ino
    assert payload.parts[-1] == dump(array, buffers.keep).parts[-1]
    assert np.array_equal(array, load(payload))


def test_what_is_small_beside_it_travels_as_before() -> None:
    """Each part arrives at its place."""
    buffers = _far()
    value = [np.full(size, number, np.uint8) for number, size in enumerate((BEYOND, 100_000, BEYOND + 7, 200_000, 10))]
    payload = buffers.apart(dump(value, buffers.keep))
    places = [part.place for part in payload.parts if part.place != Place.INLINE]
    assert places == [Place.STORED, Place.SEGMENT, Place.STORED, Place.SEGMENT]
    assert all(np.array_equal(one, other) for one, other in zip(value, load(payload), strict=True))


@pytest.mark.parametrize("size", [1, 100_000, 300_000])
def test_what_has_no_large_part_stays_as_it_is(size: int) -> None:
    """Also what would be kept on its way to another machine, where none leaves this one."""
    buffers = _far()
    before = dump(np.zeros(size, np.uint8), buffers.keep)
    assert before.parts == buffers.apart(before).parts
    here = dump(np.ones(2 << 20, np.uint8), Buffers().keep)
    assert here is Buffers().apart(here)
