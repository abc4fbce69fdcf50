"""
Shared memory that is written again when nobody looks at it any more.

Fresh pages cost more than the copy into them: the kernel clears each one first.
A segment's reader holds a shared lock on the descriptor it got, through every hand it passes; the kernel lets go of
it with the last copy and the last mapping, however their owners end.
The writer takes a segment again only if it gets the lock for itself.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
import threading
from typing import NamedTuple

WORTH_IT = 8 << 20
"""Segments from this size on, in bytes, are kept for another time."""

KEPT_BYTES = 512 << 20
"""How much of them a process keeps."""


class _Kept(NamedTuple):
    fd: int
    capacity: int


class Recycling:
    """Keep the writable ends of segments that this process has made."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: list[_Kept] = []

    def take(self, size: int) -> int | None:
        """Give the writable end of a segment that nobody reads and that so many bytes fit into; the caller's now."""
        with self._lock:
            for kept in self._kept:
                if size <= kept.capacity <= 2 * size and _is_free(kept.fd):
                    self._kept.remove(kept)
                    return kept.fd
        return None

    def lend(self, fd: int) -> int:
        """Keep a segment's writable end, taken over, and give a descriptor for its readers."""
        reader = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC)
        fcntl.flock(reader, fcntl.LOCK_SH)
        with self._lock:
            self._kept.append(_Kept(fd, os.fstat(fd).st_size))
            while sum(kept.capacity for kept in self._kept) > KEPT_BYTES and len(self._kept) > 1:
                os.close(self._kept.pop(0).fd)
        return reader

    def clear(self) -> None:
        """Let go of everything that is kept; what is being read stays readable."""
        with self._lock:
            while self._kept:
                os.close(self._kept.pop().fd)

    def forget_after_fork(self) -> None:
        """Leave the segments to the parent: in a forked child their locks mean nothing."""
        self._lock = threading.Lock()
        kept, self._kept = self._kept, []
        for each in kept:
            os.close(each.fd)


def _is_free(fd: int) -> bool:
    with contextlib.suppress(OSError):
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(fd, fcntl.LOCK_UN)
        return True
    return False


recycling = Recycling()
os.register_at_fork(after_in_child=recycling.forget_after_fork)

AVAILABLE = sys.platform == "linux"
"""Whether this system has what it takes: descriptors that can be opened anew, and locks that travel with them."""
