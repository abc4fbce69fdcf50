"""
Shared memory that is written again when nothing maps it any more.

Fresh pages cost more than the copy into them: the kernel clears each one first.
A segment's reader holds a shared lock on the descriptor it got, through every hand it passes; the kernel releases
it with the last copy and the last mapping, however their owners end.
The writer takes a segment again only if it gets the lock for itself, and keeps it mapped from then on: copying
into pages that are mapped already takes less than half the time of any write.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import sys
import threading
from collections.abc import Sequence
from typing import NamedTuple

WORTH_IT = 8 << 20
"""Segments from this size on, in bytes, are kept for another time."""

KEPT_BYTES = 512 << 20
"""How much of them a process keeps at most; larger ones are never kept, as their memory would be missing elsewhere."""


_SMALL = 1 << 20
"""Parts below this size, in bytes, are copied while other threads wait: to let those run costs as much as 60 KiB."""


class Writable:
    """
    Hold the writable end of a segment.

    Args:
        fd: The descriptor, closed with it.
    """

    __slots__ = ("_mapped", "capacity", "fd", "turn")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.capacity = 0
        self.turn = 0
        """How often it was taken to be written again."""
        self._mapped: mmap.mmap | None = None

    def write(self, parts: Sequence[memoryview]) -> None:
        """Write parts from the beginning on; they must fit."""
        if self._mapped is None:
            populate = getattr(mmap, "MAP_POPULATE", 0)
            self._mapped = mmap.mmap(self.fd, self.capacity, flags=mmap.MAP_SHARED | populate)
        from skyward.link.address import copy

        at = 0
        with memoryview(self._mapped) as target:
            for part in parts:
                size = len(part)
                if size < _SMALL:
                    target[at : at + size] = part
                else:
                    copy(part, target[at:])
                at += size

    def write_at(self, at: int, piece: memoryview) -> None:
        """Write one piece of many at its place; pages are mapped as they are written to, so that none takes long."""
        if self._mapped is None:
            self._mapped = mmap.mmap(self.fd, self.capacity)
        self._mapped[at : at + len(piece)] = piece

    def close(self) -> None:
        """Close it."""
        if self._mapped is not None:
            self._mapped.close()
        os.close(self.fd)


class Lent(NamedTuple):
    """What was lent at one time: by which writable end, and in which of its turns."""

    written: Writable
    turn: int


class Recycling:
    """Keep the writable ends of segments that this process has made."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: list[Writable] = []
        self._most = KEPT_BYTES

    def bound(self, share: int) -> None:
        """Keep no more than a share of the machine's memory, in bytes."""
        self._most = min(KEPT_BYTES, share)

    def take(self, size: int) -> Writable | None:
        """Return the writable end of a segment that is not read and that so many bytes fit into; the caller's now."""
        with self._lock:
            for kept in self._kept:
                if size <= kept.capacity <= 2 * size and _is_free(kept.fd):
                    self._kept.remove(kept)
                    kept.turn += 1
                    return kept
        return None

    def lend(self, written: Writable) -> int:
        """Keep a segment's writable end, taken over, and return a descriptor for its readers."""
        reader = _reader(written.fd)
        written.capacity = os.fstat(written.fd).st_size
        with self._lock:
            self._kept.append(written)
            while sum(kept.capacity for kept in self._kept) > self._most:
                self._kept.pop(0).close()
        return reader

    def lent(self, reader: int) -> Lent | None:
        """Return what a reader reads, so that it can be lent again after that reader's end; None if it is not kept."""
        read = os.fstat(reader)
        with self._lock:
            for kept in self._kept:
                if os.path.samestat(read, os.fstat(kept.fd)):
                    return Lent(kept, kept.turn)
        return None

    def forget(self, reader: int) -> None:
        """Keep what a reader reads no longer: its memory is free with that reader."""
        read = os.fstat(reader)
        with self._lock:
            for kept in self._kept:
                if os.path.samestat(read, os.fstat(kept.fd)):
                    self._kept.remove(kept)
                    kept.close()
                    return

    def lend_again(self, lent: Lent) -> int | None:
        """Return a descriptor for another reader of what was lent; None if it was taken since, or is kept no longer."""
        with self._lock:
            if lent.written in self._kept and lent.written.turn == lent.turn:
                return _reader(lent.written.fd)
        return None

    def clear(self) -> None:
        """Release everything that is kept; what is being read stays readable."""
        with self._lock:
            while self._kept:
                self._kept.pop().close()

    def forget_after_fork(self) -> None:
        """Drop the segments in a forked child, where their locks mean nothing; the parent keeps them."""
        self._lock = threading.Lock()
        kept, self._kept = self._kept, []
        for each in kept:
            each.close()


def _reader(written: int) -> int:
    reader = os.open(f"/proc/self/fd/{written}", os.O_RDONLY | os.O_CLOEXEC)
    fcntl.flock(reader, fcntl.LOCK_SH)
    return reader


def _is_free(fd: int) -> bool:
    with contextlib.suppress(OSError):
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(fd, fcntl.LOCK_UN)
        return True
    return False


recycling = Recycling()
os.register_at_fork(after_in_child=recycling.forget_after_fork)

AVAILABLE = sys.platform == "linux"
"""Whether this system has what it takes: descriptors that can be opened again, and locks that travel with them."""
