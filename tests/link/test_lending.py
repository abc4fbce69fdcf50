"""A segment is handed on when what it holds is passed on as it came."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from skyward.link import lending as module
from skyward.link.lending import REMEMBERED, WORTH_IT
from skyward.link.payload import Payload, decode, load
from skyward.link.payload_making import dump
from skyward.link.recycling import recycling
from skyward.link.segment import Segment
from tests.descriptors import memory_descriptors

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells which pages were written to")

LARGE = 4 * WORTH_IT


@pytest.fixture(autouse=True)
def _fresh_memory() -> None:
    """Take memory of the right size: what is used again may be twice as large, and half of it is not handed on."""
    recycling.clear()


def _sent(payload: Payload) -> Payload:
    """Take a payload through its bytes and descriptors, as a socket does."""
    return decode(payload.encode(), 0, [os.dup(fd) for fd in payload.fds])


def _received(value: Any) -> Any:
    return load(_sent(dump(value)))


def _memory(payload: Payload) -> tuple[int, int]:
    """Name the shared memory that a payload is in."""
    assert payload.segment is not None
    held = os.fstat(payload.segment.fd)
    return held.st_dev, held.st_ino


def _array(size: int = LARGE) -> Any:
    return np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)


def _is_lent(came: Payload, gone: Payload) -> bool:
    return _memory(came) == _memory(gone)


@pytest.mark.parametrize(
    "passed_on",
    [
        pytest.param(lambda array: array, id="as it came"),
        pytest.param(lambda array: {"a": [array]}, id="inside something else"),
        pytest.param(lambda array: array.reshape(4, -1), id="in another shape"),
        pytest.param(lambda array: array.view(np.uint16), id="as another type"),
        pytest.param(memoryview, id="as a view of memory"),
        pytest.param(lambda array: array[: LARGE * 3 // 4], id="most of it"),
    ],
)
def test_unchanged_array_is_not_copied(passed_on: Callable[[Any], Any]) -> None:
    """The process that gets it sees what was there."""
    came = _sent(dump(_array()))
    array = load(came)
    assert array.sum() > 0
    gone = dump(passed_on(array))
    assert _is_lent(came, gone)
    found = load(_sent(gone))
    found = found["a"][0] if isinstance(found, dict) else found
    assert bytes(found) == bytes(passed_on(array) if not isinstance(passed_on(array), dict) else array)


@pytest.mark.parametrize("at", [0, 1, LARGE // 2, LARGE - 1])
def test_changed_array_is_copied(at: int) -> None:
    """One byte is enough."""
    came = _sent(dump(_array()))
    array = load(came)
    array[at] ^= 255
    gone = dump(array)
    assert not _is_lent(came, gone)
    assert np.array_equal(load(_sent(gone)), array)


def test_array_that_was_only_read_is_not_copied() -> None:
    """Reading maps pages and changes none."""
    came = _sent(dump(_array()))
    array = load(came)
    assert int(array.astype(np.uint64).sum()) > 0
    assert _is_lent(came, dump(array))


def test_what_is_changed_later_is_not_seen_by_the_receiver() -> None:
    """What is handed on is what was there when it was."""
    array = _received(_array())
    gone = _sent(dump(array))
    before = array.copy()
    array[:] = 0
    assert np.array_equal(load(gone), before)


def test_receiver_may_write_to_what_was_handed_on() -> None:
    """It is the receiver's own."""
    array = _received(_array())
    found = load(_sent(dump(array)))
    found[:] = 0
    assert np.array_equal(array, _array())


def test_several_arrays_of_one_call_are_handed_on_together() -> None:
    """In the order in which they came, or copied in another one."""
    came = _sent(dump((_array(LARGE), _array(LARGE + 1000), _array(LARGE + 7))))
    one, two, three = load(came)
    assert _is_lent(came, dump([one, two, three]))
    assert _is_lent(came, dump([one, two]))
    for other in ([two, one, three], [two, three], [one, three]):
        gone = dump(other)
        assert not _is_lent(came, gone)
        assert all(map(np.array_equal, load(_sent(gone)), other))


@pytest.mark.parametrize("part", [slice(LARGE // 2, None), slice(64, None), slice(0, LARGE // 2 - 4096)])
def test_smaller_part_is_copied(part: slice) -> None:
    """All of it would stay in memory for a part; and one from elsewhere than the beginning cannot be handed on."""
    came = _sent(dump(_array()))
    array = load(came)
    gone = dump(array[part])
    assert not _is_lent(came, gone)
    assert np.array_equal(load(_sent(gone)), array[part])


def test_array_that_may_not_be_written_is_handed_on() -> None:
    """Where it is can be told all the same."""
    came = _sent(dump(_array()))
    array = load(came)
    array.flags.writeable = False
    assert _is_lent(came, dump(array))


def test_new_array_at_the_place_of_one_that_is_gone_is_copied() -> None:
    """The kernel gives the same addresses again."""
    came = _sent(dump(_array()))
    array = load(came)
    del array
    gc.collect()
    anew = np.zeros(LARGE, np.uint8)
    assert not load(_sent(dump(anew))).any()


def test_system_that_does_not_tell_has_it_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container without that file."""
    came = _sent(dump(_array()))
    array = load(came)
    monkeypatch.setattr(module, "_PAGEMAP", "/proc/self/no-such-file")
    gone = dump(array)
    assert not _is_lent(came, gone)
    assert np.array_equal(load(_sent(gone)), array)


def test_no_descriptor_is_left() -> None:
    """The last user lets go of all of them; what an earlier test had may go meanwhile."""
    gc.collect()
    before = memory_descriptors()
    array = _received(_array())
    payload = dump(array)
    del array, payload
    gc.collect()
    assert memory_descriptors() <= before


def test_many_mappings_cost_fewmemory_descriptors() -> None:
    """Python itself holds one a mapping; ours are bounded."""
    gc.collect()
    before = memory_descriptors()
    kept = [_received(_array(WORTH_IT)) for _ in range(REMEMBERED + 30)]
    assert memory_descriptors() <= before + len(kept) + REMEMBERED
    oldest, newest = dump(kept[0]), dump(kept[-1])
    assert np.array_equal(load(_sent(oldest)), kept[0])
    assert np.array_equal(load(_sent(newest)), kept[-1])
    del kept, oldest, newest
    gc.collect()
    assert memory_descriptors() <= before


def test_forked_child_hands_on_what_its_parent_mapped() -> None:
    """And sees its own changes only."""
    came = _sent(dump(_array()))
    array = load(came)
    child = os.fork()
    if not child:
        lent = _is_lent(came, dump(array))
        array[0] ^= 255
        os._exit(0 if lent and not _is_lent(came, dump(array)) else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert _is_lent(came, dump(array))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_what_arrives_is_what_was_there(data: st.DataObject) -> None:
    """Whatever was changed, and whichever part goes on, hop after hop."""
    array = _array(2 * WORTH_IT)
    came: Any = _received(array)
    for _ in range(data.draw(st.integers(1, 4))):
        if data.draw(st.booleans()):
            at = data.draw(st.integers(0, len(came) - 1))
            came[at] = array[at] = data.draw(st.integers(0, 255))
        size = len(came)
        cut = data.draw(st.sampled_from([slice(None), slice(0, max(1, size * 2 // 3)), slice(size // 10, None)]))
        array, came = array[cut].copy(), _received(came[cut])
        assert np.array_equal(array, came)


def test_lent_segment_is_of_the_size_that_is_lent() -> None:
    """As much of it crosses to another machine."""
    came = _sent(dump(_array()))
    array = load(came)
    gone = dump(array[: LARGE * 3 // 4])
    assert isinstance(gone.segment, Segment)
    assert gone.segment.size == LARGE * 3 // 4
