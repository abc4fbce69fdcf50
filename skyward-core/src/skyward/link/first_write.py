"""
The first write to a file in memory, by two threads at once where it is large.

Most of it is the kernel's search for fresh pages. Huge ones are asked for first, and both threads copy into them.
Where there are none, the kernel lets one writer in at a time. A second one gets past by mapping the file and having
pages filled as the handler of its page faults would (`UFFDIO_COPY`, userfaultfd(2)): one thread writes from the front
on, the other one fills from the end back, and where they meet the file is full.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import struct
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence

from skyward.link.huge_pages import HUGE, make_huge, mapped_for_huge_pages
from skyward.link.userfault import API, READ_WRITE, UFFDIO_REGISTER, open_userfault

WORTH_IT = 16 << 20
"""Parts from this size on, in bytes, are written by two threads; below, to begin one takes longer than it saves."""

_LEAST = HUGE
_SHARE = 4
_PAGE = mmap.PAGESIZE
_IOV_MAX = 512

# include/uapi/linux/userfaultfd.h
_MISSING_SHARED = 1 << 5
_MODE_MISSING = 1
_UFFDIO_COPY = READ_WRITE | 40 << 16 | API << 8 | 0x03
_COPY = struct.Struct("4Qq")
_NOT_AWAITED = 1


class Unwritten:
    """
    Share out a range that is not written yet, between one that begins at its front and one that begins at its end.

    Each takes a part of what is left, so that the slower one keeps the other waiting for a small piece only.

    Args:
        start: Where the range begins.
        end: Where it ends; both at whole pages.
        unit: Of how many bytes there are always several in a part, except the last one.

    >>> unwritten = Unwritten(0, 16 << 20)
    >>> [unwritten.at_the_front(), unwritten.at_the_end()] == [(0, 4 << 20), (13 << 20, 16 << 20)]
    True
    """

    def __init__(self, start: int, end: int, unit: int = _PAGE) -> None:
        self._lock = threading.Lock()
        self._start, self._end = start, end
        self._unit = unit

    def at_the_front(self) -> tuple[int, int] | None:
        """Take what comes next at the front; None if nothing is left."""
        with self._lock:
            start, self._start = self._start, self._start + self._piece()
            return (start, self._start) if start < self._start else None

    def at_the_end(self) -> tuple[int, int] | None:
        """Take what comes next at the end; None if nothing is left."""
        with self._lock:
            end, self._end = self._end, self._end - self._piece()
            return (self._end, end) if self._end < end else None

    def untake(self, end: int) -> None:
        """Return, unwritten, what was taken last at the end."""
        with self._lock:
            self._end = end

    def stop(self) -> int:
        """Leave nothing to be taken; returns where it would have begun."""
        with self._lock:
            self._end = self._start
            return self._start

    def _piece(self) -> int:
        left = self._end - self._start
        return min(left, max(_LEAST, left // _SHARE // self._unit * self._unit))


def write_first(fd: int, parts: Sequence[memoryview]) -> None:
    """
    Write parts to an empty file in memory, one behind the other.

    Args:
        fd: The file.
        parts: What it gets; they may change as soon as this returns.

    Raises:
        OSError: If the machine has no room for it.
    """
    largest = max(range(len(parts)), key=lambda index: len(parts[index])) if parts else 0
    if not parts or len(parts[largest]) < WORTH_IT or not _LINUX:
        write_all(fd, parts, 0)
        return
    before = sum(map(len, parts[:largest]))
    part = parts[largest]
    start, end = -(-before // _PAGE) * _PAGE, (before + len(part)) // _PAGE * _PAGE
    write_all(fd, [*parts[:largest], part[: start - before]], 0)
    write_all(fd, [part[end - before :], *parts[largest + 1 :]], end)
    os.ftruncate(fd, max(end, os.fstat(fd).st_size))
    huge = _into_huge_pages(fd, part[start - before :], start, end)
    if huge < end:
        _from_both_ends(fd, part[huge - before : end - before], huge, end)


def write_all(fd: int, parts: Sequence[memoryview], at: int) -> None:
    """
    Write parts from a place on.

    Raises:
        OSError: If the machine has no room for them.
    """
    for first in range(0, len(parts), _IOV_MAX):
        at = _write_some(fd, list(parts[first : first + _IOV_MAX]), at)


def _write_some(fd: int, parts: list[memoryview], at: int) -> int:
    while parts:
        written = os.pwritev(fd, parts, at)
        at += written
        while parts and written >= len(parts[0]):
            written -= len(parts.pop(0))
        if written:
            parts[0] = parts[0][written:]
    return at


def _into_huge_pages(fd: int, part: memoryview, start: int, end: int) -> int:
    """Write a part from one place in a file on, as long as the kernel has huge pages; returns where it is to go on."""
    first, last = -(-start // HUGE) * HUGE, end // HUGE * HUGE
    refused: list[tuple[int, int]] = []
    # The first one by itself, so that nothing else is tried where there are none.
    unwritten = Unwritten(first + HUGE, last, HUGE)

    def write_some(pieces: Iterable[tuple[int, int]]) -> None:
        for piece in pieces:
            if not _into_huge_page(fd, part[piece[0] - start : piece[1] - start], piece, address + piece[0] - first):
                refused.append(piece)
                unwritten.stop()

    try:
        with mapped_for_huge_pages(fd, first, last) as address:
            write_some([(first, first + HUGE)])
            with _second_thread(lambda: write_some(_taken(unwritten)), unwritten):
                write_some(_taken(unwritten))
    except OSError:
        return start
    write_all(fd, [part[: first - start]], start)
    for piece in refused:
        write_all(fd, [part[piece[0] - start : piece[1] - start]], piece[0])
    return unwritten.stop()


def _into_huge_page(fd: int, part: memoryview, piece: tuple[int, int], address: int) -> bool:
    from skyward.link.address import copy_to

    with contextlib.suppress(OSError):
        if make_huge(fd, *piece, address):
            copy_to(part, address)
            return True
    return False


def _from_both_ends(fd: int, part: memoryview, start: int, end: int) -> None:
    """Write a part to the whole pages from one place in a file to another."""
    unwritten = Unwritten(start, end)
    with _second_thread(lambda: _fill(fd, part, start, unwritten), unwritten):
        for first, last in _taken(unwritten):
            write_all(fd, [part[first - start : last - start]], first)
    for first, last in _taken(unwritten):  # what the other one did not write
        write_all(fd, [part[first - start : last - start]], first)


@contextlib.contextmanager
def _second_thread(target: Callable[[], None], unwritten: Unwritten) -> Iterator[None]:
    """Run a second thread beside the block, and wait for it; where the block fails it has nothing more to take."""
    other = threading.Thread(target=target, name="skyward-first-write", daemon=True)
    # None at the end of the interpreter.
    with contextlib.suppress(RuntimeError):
        if _SEVERAL_PROCESSORS:
            other.start()
    try:
        yield
    except BaseException:
        unwritten.stop()
        raise
    finally:
        if other.ident is not None:
            other.join()


def _taken(unwritten: Unwritten) -> Iterator[tuple[int, int]]:
    while taken := unwritten.at_the_front():
        yield taken


def _fill(fd: int, part: memoryview, start: int, unwritten: Unwritten) -> None:
    """Fill pages from the end back, as long as the kernel does it."""
    from skyward.link.address import address_of

    with contextlib.suppress(OSError), _mapped(fd, start, len(part)) as (userfault, target):
        source = address_of(part)
        while taken := unwritten.at_the_end():
            first, last = taken[0] - start, taken[1] - start
            order = bytearray(_COPY.pack(target + first, source + first, last - first, _NOT_AWAITED, 0))
            try:
                fcntl.ioctl(userfault, _UFFDIO_COPY, order)
            except OSError:
                unwritten.untake(taken[1])
                return


@contextlib.contextmanager
def _mapped(fd: int, start: int, size: int) -> Iterator[tuple[int, int]]:
    """Map pages of a file so that they can be filled; yields a userfault descriptor and where they lie."""
    from skyward.link.address import address_of

    userfault = open_userfault(_MISSING_SHARED)
    try:
        with mmap.mmap(fd, size, offset=start) as mapped:
            with memoryview(mapped) as view:
                target = address_of(view)
            fcntl.ioctl(userfault, UFFDIO_REGISTER, bytearray(struct.pack("4Q", target, size, _MODE_MISSING, 0)))
            yield userfault, target
    finally:
        os.close(userfault)


def _several_processors() -> bool:
    affinity = getattr(os, "sched_getaffinity", None)
    return affinity is not None and len(affinity(0)) > 1


_SEVERAL_PROCESSORS = _several_processors()
"""Whether a second thread may gain something here."""

_LINUX = sys.platform == "linux"
