"""Segments are written again only when nothing looks at them."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator

import pytest

from skyward.link import segment as segments
from skyward.link.recycling import KEPT_BYTES, WORTH_IT, Recycling, Writable
from skyward.link.segment import Arriving, Segment, aligned, write_segment
from tests.descriptors import memory_descriptors

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux opens shared memory anew")


@pytest.fixture
def recycling() -> Iterator[Recycling]:
    recycling = Recycling()
    yield recycling
    recycling.clear()


def _file(size: int) -> Writable:
    fd = os.memfd_create("test", os.MFD_CLOEXEC)
    os.ftruncate(fd, size)
    return Writable(fd)


def test_segment_is_taken_again_when_its_reader_is_gone(recycling: Recycling) -> None:
    """The last reader's end frees it."""
    reader = recycling.lend(_file(WORTH_IT))
    assert recycling.take(WORTH_IT) is None
    os.close(reader)
    taken = recycling.take(WORTH_IT)
    assert taken is not None
    taken.close()


def test_what_was_lent_is_lent_again(recycling: Recycling) -> None:
    """After its reader's end too; it is no segment to write to meanwhile."""
    reader = recycling.lend(_file(WORTH_IT))
    lent = recycling.lent(reader)
    os.close(reader)
    assert lent is not None
    again = recycling.lend_again(lent)
    assert again is not None
    assert recycling.take(WORTH_IT) is None
    os.close(again)


def test_what_is_forgotten_is_not_written_again(recycling: Recycling) -> None:
    """Its reader still reads it."""
    reader = recycling.lend(_file(WORTH_IT))
    recycling.forget(reader)
    assert recycling.lent(reader) is None
    assert os.fstat(reader).st_size == WORTH_IT
    os.close(reader)
    assert recycling.take(WORTH_IT) is None


def test_what_was_taken_since_is_not_lent_again(recycling: Recycling) -> None:
    """Nor after it was written and lent to others, nor when it is kept no longer."""
    reader = recycling.lend(_file(WORTH_IT))
    lent = recycling.lent(reader)
    os.close(reader)
    taken = recycling.take(WORTH_IT)
    assert lent is not None
    assert taken is not None
    assert recycling.lend_again(lent) is None
    os.close(recycling.lend(taken))
    assert recycling.lend_again(lent) is None
    recycling.clear()
    assert recycling.lend_again(lent) is None


def test_copy_of_a_descriptor_holds_the_segment(recycling: Recycling) -> None:
    """The lock travels with every copy, as through a socket."""
    reader = recycling.lend(_file(WORTH_IT))
    copy = os.dup(reader)
    os.close(reader)
    assert recycling.take(WORTH_IT) is None
    os.close(copy)


def test_mapping_holds_the_segment_after_its_descriptor_is_closed(recycling: Recycling) -> None:
    """What the user still has is never written over."""
    segment = Segment(recycling.lend(_file(WORTH_IT)), WORTH_IT)
    view = segment.map()
    segment.close()
    assert recycling.take(WORTH_IT) is None
    view.release()
    del view
    taken = recycling.take(WORTH_IT)
    assert taken is not None
    taken.close()


def test_reader_cannot_write_to_the_file(recycling: Recycling) -> None:
    """A reader's descriptor is for reading."""
    reader = recycling.lend(_file(WORTH_IT))
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.write(reader, b"x")
    os.close(reader)


def test_segment_that_is_much_too_large_is_not_taken(recycling: Recycling) -> None:
    """At most half of a segment is wasted."""
    os.close(recycling.lend(_file(4 * WORTH_IT)))
    assert recycling.take(WORTH_IT) is None


def test_no_more_than_the_limit_is_kept(recycling: Recycling) -> None:
    """The oldest go first."""
    for _ in range(3):
        os.close(recycling.lend(_file(KEPT_BYTES // 2)))
    taken = [recycling.take(KEPT_BYTES // 2) for _ in range(3)]
    assert [written is not None for written in taken] == [True, True, False]
    for written in taken:
        if written is not None:
            written.close()


def test_segment_beyond_the_limit_is_not_kept(recycling: Recycling) -> None:
    """Nor does it take the place of what is kept."""
    os.close(recycling.lend(_file(WORTH_IT)))
    os.close(recycling.lend(_file(KEPT_BYTES + 1)))
    assert recycling.take(KEPT_BYTES + 1) is None


def test_a_share_of_the_memory_bounds_what_is_kept(recycling: Recycling) -> None:
    """On a small machine; a large one does not raise the limit."""
    recycling.bound(WORTH_IT)
    for _ in range(2):
        os.close(recycling.lend(_file(WORTH_IT)))
    assert [recycling.take(WORTH_IT) is None for _ in range(2)] == [False, True]
    recycling.bound(1 << 40)
    os.close(recycling.lend(_file(KEPT_BYTES + 1)))
    assert recycling.take(KEPT_BYTES + 1) is None


def test_values_written_one_after_the_other_do_not_mix() -> None:
    """Two large segments that are both in use have two memories; a later one may take the first's."""
    first, second = write_segment([[b"a" * WORTH_IT]]), write_segment([[b"b" * WORTH_IT]])
    one, other = first.map(), second.map()
    assert (bytes(one[:1]), bytes(other[:1])) == (b"a", b"b")
    first.close()
    del one
    third = write_segment([[b"c" * WORTH_IT]])
    assert (bytes(other[:1]), bytes(third.map()[:1])) == (b"b", b"c")


def test_segment_is_written_whole_when_it_is_taken_again() -> None:
    """Pieces of any size, each at its place."""
    for turn in range(4):
        pieces = [bytes([turn + place]) * (place * 3_000_001 + 5) for place in range(5)]
        segment = write_segment([[piece] for piece in pieces])
        view, at = segment.map(), 0
        for piece in pieces:
            assert view[at : at + len(piece)] == piece
            at += aligned(len(piece))
        segment.close()
        del view


def _arrived(size: int, seed: int, piece: int = 70_001) -> Segment:
    """Have a segment arrive in pieces, each at its place, in any order."""
    content = memoryview(random.Random(seed).randbytes(size))
    arriving = Arriving(size)
    places = list(range(0, size, piece))
    random.Random(seed).shuffle(places)
    for at in places:
        arriving.write(at, content[at : at + piece])
    segment = Segment(arriving.finish(), size)
    assert segment.map() == content
    return segment


@pytest.mark.parametrize("size", [1, 70_001, WORTH_IT - 1, WORTH_IT, WORTH_IT + 12345])
def test_segment_that_arrives_in_pieces_is_whole(size: int) -> None:
    """Also where it takes the memory of one that nothing reads any more."""
    for seed in range(3):
        _arrived(size, seed).close()


def test_memory_of_one_that_arrived_is_used_again(recycling: Recycling, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not before its last reader is gone."""
    monkeypatch.setattr(segments, "recycling", recycling)
    first = _arrived(WORTH_IT, 1)
    second = _arrived(WORTH_IT, 2)
    memory = os.fstat(first.fd).st_ino
    assert os.fstat(second.fd).st_ino != memory
    first.close()
    third = _arrived(WORTH_IT, 3)
    assert os.fstat(third.fd).st_ino == memory


@pytest.mark.parametrize("size", [10, WORTH_IT])
def test_segment_that_is_given_up_leaves_no_descriptor(size: int) -> None:
    """As when the link ends in the middle; twice is no matter."""
    _arrived(size, 1).close()
    before = memory_descriptors()
    for _ in range(3):
        arriving = Arriving(size)
        arriving.write(0, memoryview(b"x"))
        arriving.close()
        arriving.close()
    assert memory_descriptors() <= before
