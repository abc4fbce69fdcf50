"""
Buffers that came in a segment and are passed on as they came: the segment is passed on, and nothing is copied.

That is what becomes of a result that the caller passes to the next call, and of an argument that a function returns.
Whether they were written to the kernel knows: a page of a copy-on-write mapping is the file's until it is written to.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Sequence
from mmap import PAGESIZE, mmap
from typing import Any, NamedTuple

from skyward.link.segment import Segment, aligned

WORTH_IT = 1 << 20
"""Segments from this size on, in bytes, are passed on; copying a smaller one costs no more than asking the kernel."""

REMEMBERED = 64
"""How many mappings a process remembers; each takes one more descriptor as long as it is in use."""

_PAGEMAP = "/proc/self/pagemap"
_ENTRY = 8
# The highest byte of an entry: bits 63 and 62 say that a page is in memory or swapped out, bit 61 that it is a file's
# (Linux, Documentation/admin-guide/mm/pagemap.rst).
_CHANGED = frozenset(byte for byte in range(256) if byte & 0xC0 and not byte & 0x20)


class _Mapped(NamedTuple):
    mapping: weakref.ref[mmap]
    fd: int
    close: weakref.finalize[Any, mmap]


class Lending:
    """Remember which segments this process has mapped, each as long as its mapping is in use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._mapped: list[_Mapped] = []

    def remember(self, mapping: mmap, segment: Segment) -> None:
        """
        Record a segment that is mapped.

        Args:
            mapping: The mapping: copy-on-write, and from the segment's beginning.
            segment: What is mapped; it stays the caller's.
        """
        if len(mapping) < WORTH_IT:
            return
        fd = os.dup(segment.fd)
        close = weakref.finalize(mapping, os.close, fd)
        close.atexit = False
        with self._lock:
            alive = [mapped for mapped in self._mapped if mapped.close.alive]
            self._mapped = [*alive, _Mapped(weakref.ref(mapping), fd, close)]
            forgotten, self._mapped = self._mapped[:-REMEMBERED], self._mapped[-REMEMBERED:]
        for mapped in forgotten:
            mapped.close()

    def find(self, buffers: Sequence[memoryview]) -> Segment | None:
        """
        Return the segment that holds these buffers, if one does: from its beginning on, and none of them changed.

        Args:
            buffers: What a new segment would hold otherwise.

        Returns:
            None also if they are less than half of it: all of it would be kept alive for them.
        """
        if not self._mapped or sum(map(len, buffers)) < WORTH_IT:
            return None
        place = _place(buffers)
        if place is None:
            return None
        start, size = place
        with self._lock:
            for mapped in self._mapped:
                mapping = mapped.mapping()
                if mapping is None or _address(memoryview(mapping)) != start:
                    continue
                if size > len(mapping) or 2 * size < os.fstat(mapped.fd).st_size or not _is_unchanged(start, size):
                    return None
                return Segment(os.dup(mapped.fd), size)
        return None

    def forget_after_fork(self) -> None:
        """Begin again in a forked child: the lock may be that of a thread which it does not have."""
        self._lock = threading.Lock()


def _place(buffers: Sequence[memoryview]) -> tuple[int, int] | None:
    """Return where in memory buffers begin and how many bytes they take, if they lie there as in a segment."""
    start, at = _address(buffers[0]), 0
    for buffer in buffers:
        if _address(buffer) != start + at:
            return None
        at += aligned(len(buffer))
    return start, at


def _address(buffer: memoryview) -> int:
    # Imported late: ctypes is not loaded where nothing large is sent.
    from skyward.link.address import address_of

    return address_of(buffer)


def _is_unchanged(start: int, size: int) -> bool:
    """Return whether the kernel says that this memory was not written to since it was mapped."""
    first, last = start // PAGESIZE, (start + size - 1) // PAGESIZE
    wanted = (last - first + 1) * _ENTRY
    try:
        with open(_PAGEMAP, "rb", buffering=0) as pagemap:
            entries = os.pread(pagemap.fileno(), wanted, first * _ENTRY)
    except OSError:
        return False
    return len(entries) == wanted and _CHANGED.isdisjoint(entries[_ENTRY - 1 :: _ENTRY])


lending = Lending()
os.register_at_fork(after_in_child=lending.forget_after_fork)
