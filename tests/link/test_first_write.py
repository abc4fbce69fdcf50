"""A large first write is shared by two threads, and whole whatever the kernel lets the second one do."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given, strategies as st

from skyward.link import first_write
from skyward.link.first_write import WORTH_IT, Unwritten, write_first
from skyward.link.userfault import open_userfault

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has files in memory without a name")

PAGE = os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def fd() -> Iterator[int]:
    fd = os.memfd_create("test", os.MFD_CLOEXEC)
    yield fd
    os.close(fd)


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the kernel has no huge pages; `test_huge_pages.py` has those."""
    monkeypatch.setattr(first_write, "make_huge", lambda *_: False)


@given(st.integers(1, 1 << 12), st.lists(st.booleans()))
def test_a_range_is_shared_out_whole_and_once(pages: int, turns: list[bool]) -> None:
    """Whichever of the two is faster."""
    unwritten = Unwritten(PAGE, (pages + 1) * PAGE)
    taken = [unwritten.at_the_front() if front else unwritten.at_the_end() for front in turns]
    while (last := unwritten.at_the_front()) is not None:
        taken.append(last)
    pieces = sorted(piece for piece in taken if piece is not None)
    starts, ends = [start for start, _ in pieces], [end for _, end in pieces]
    assert [PAGE, *ends] == [*starts, (pages + 1) * PAGE]
    assert all(place % PAGE == 0 for place in ends)
    assert unwritten.at_the_end() is None


def test_what_is_not_written_at_the_end_is_taken_at_the_front() -> None:
    """So that one of them alone ends it."""
    unwritten = Unwritten(0, WORTH_IT)
    taken = unwritten.at_the_end()
    assert taken is not None
    unwritten.untake(taken[1])
    pieces = []
    while (piece := unwritten.at_the_front()) is not None:
        pieces.append(piece)
    assert pieces[-1][1] == WORTH_IT


@pytest.mark.parametrize("before", [0, 1, 64, PAGE, PAGE + 1], ids="{} bytes before it".format)
@pytest.mark.parametrize("size", [WORTH_IT - 1, WORTH_IT, WORTH_IT + PAGE - 1, 2 * WORTH_IT + 1], ids=str)
def test_parts_are_written_one_behind_the_other(fd: int, before: int, size: int) -> None:
    """The largest one by both threads."""
    parts = [os.urandom(before), os.urandom(size), os.urandom(70)]
    write_first(fd, [memoryview(part) for part in parts])
    assert os.pread(fd, before + size + 71, 0) == b"".join(parts)
    assert os.fstat(fd).st_size == before + size + 70


def test_the_second_thread_fills_pages_where_the_kernel_lets_it(fd: int) -> None:
    """All of them, if the first one takes none."""
    try:
        os.close(open_userfault(first_write._MISSING_SHARED))
    except OSError as error:
        pytest.skip(f"this kernel does not: {error}")
    content = os.urandom(WORTH_IT)
    os.ftruncate(fd, PAGE + WORTH_IT)
    unwritten = Unwritten(PAGE, PAGE + WORTH_IT)
    first_write._fill(fd, memoryview(content), PAGE, unwritten)
    assert unwritten.at_the_front() is None
    assert os.pread(fd, PAGE + WORTH_IT, 0) == bytes(PAGE) + content


def test_a_source_that_was_never_touched_is_zeros(fd: int) -> None:
    """Its pages are not there when the kernel copies them."""
    import mmap

    with mmap.mmap(-1, WORTH_IT) as empty, memoryview(empty) as view:
        write_first(fd, [view])
    assert os.pread(fd, WORTH_IT, 0) == bytes(WORTH_IT)


@pytest.mark.parametrize("call", ["_MISSING_SHARED", "_MODE_MISSING", "_UFFDIO_COPY"])
def test_where_the_kernel_refuses_one_thread_writes_all(fd: int, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever of its calls it is: what it is asked for here does not exist."""
    monkeypatch.setattr(first_write, call, 1 << 40 if call == "_MISSING_SHARED" else 0x7F << 24)
    content = os.urandom(WORTH_IT)
    write_first(fd, [memoryview(content)])
    assert os.pread(fd, WORTH_IT + 1, 0) == content


def test_a_write_that_fails_leaves_no_thread() -> None:
    """And says why."""
    reading, writing = os.pipe()
    os.close(writing)
    try:
        with pytest.raises(OSError, match=r"Bad file descriptor|Illegal seek"):
            write_first(reading, [memoryview(b"before"), memoryview(bytes(WORTH_IT))])
    finally:
        os.close(reading)
    assert not [thread for thread in threading.enumerate() if thread.name == "skyward-first-write"]
