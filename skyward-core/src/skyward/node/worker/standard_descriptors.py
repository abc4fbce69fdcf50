"""
Descriptors 1 and 2 of this process, led elsewhere for a while and back.

C code, and processes that are started, write to them and know nothing of Python's streams.
What Python prints past a route goes to a copy meanwhile, which leads where the descriptor led before.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
import threading
from collections.abc import Callable, Iterator
from functools import cache

__all__ = ["DESCRIPTORS", "StandardDescriptors", "flush_c", "moved_up", "write_all"]

_ABOVE = 10
"""Copies have numbers from here: the low ones are the worker's sockets, and what programs choose themselves."""


class StandardDescriptors:
    """
    Direct descriptors to where others lead, and remember where they led before.

    >>> reading, writing = os.pipe()
    >>> away, target = os.pipe()
    >>> descriptors = StandardDescriptors()
    >>> descriptors.lead(writing, target)
    >>> os.write(writing, b"away"), os.read(away, 10)
    (4, b'away')
    >>> os.write(descriptors.unrouted(writing), b"as before"), os.read(reading, 20)
    (9, b'as before')
    >>> descriptors.lead(writing, None)
    >>> os.write(writing, b"back"), os.read(reading, 20)
    (4, b'back')
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin again in a child of a fork: what its parent's threads were doing is not its own."""
        self.changing = threading.RLock()
        self._led: dict[int, int] = {}
        self._copies: dict[int, int] = {}
        self._unrouted: dict[int, int] = {}

    def unrouted(self, fd: int) -> int:
        """Return the descriptor that leads to where one leads, or led before it was directed elsewhere."""
        return self._unrouted.get(fd, fd)

    def led(self, fd: int) -> int | None:
        """Return where a descriptor is directed now; None for where it led before."""
        return self._led.get(fd)

    def copy(self, fd: int) -> int:
        """
        Return a copy of a descriptor, the same number each time.

        It is never closed, because another thread may be about to write to it, and no program that is started has it.
        """
        copy = self._copies.get(fd)
        if copy is None:
            copy = self._copies[fd] = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _ABOVE)
        else:
            os.dup2(fd, copy, inheritable=False)
        return copy

    def lead(self, fd: int, target: int | None) -> None:
        """
        Direct a descriptor to where another one leads.

        Args:
            fd: The descriptor.
            target: The other; None for where it led before.

        Raises:
            OSError: If one of them is closed.
        """
        # An interrupt may come between any two of these steps; the next change makes up for those left out.
        with self.changing:
            if target == self._led.get(fd):
                return
            if target is None:
                os.dup2(self._unrouted[fd], fd)
                del self._led[fd]
                self._unrouted.pop(fd, None)
                return
            if fd not in self._unrouted:
                self._unrouted[fd] = self.copy(fd)
            os.dup2(target, fd)
            self._led[fd] = target

    @contextlib.contextmanager
    def as_before(self) -> Iterator[None]:
        """Direct all to where they led before for a block, in which a process is started that outlives the routes."""
        with self.changing:
            led = dict(self._led)
            try:
                for fd in led:
                    os.dup2(self._unrouted[fd], fd)
                yield
            finally:
                for fd, target in led.items():
                    os.dup2(target, fd)


DESCRIPTORS = StandardDescriptors()
"""Those of this process."""


def flush_c(fd: int) -> None:
    """
    Write out what C code has printed to a stream and its library holds back.

    Args:
        fd: 1 for stdout, 2 for stderr.
    """
    # Not all streams: another thread may sleep in one, such as in the reading of a pipe, and hold its lock.
    flush = _flush_of(fd)
    if flush is not None:
        flush()


@cache
def _flush_of(fd: int) -> Callable[[], object] | None:
    """Find the C library's stream for a descriptor; None where the library does not show it."""
    import ctypes

    name = {1: "stdout", 2: "stderr"}[fd]
    try:
        library = ctypes.CDLL(None)
        stream = ctypes.c_void_p.in_dll(library, f"__{name}p" if sys.platform == "darwin" else name)
    except (OSError, ValueError):
        return None
    flush = library.fflush
    # The variable, and not what it holds now: programs assign other streams to it.
    return lambda: flush(stream)


def write_all(fd: int, data: bytes) -> None:
    """
    Write all of the data, however much is taken at once.

    Args:
        fd: Where to.
        data: What.

    Raises:
        OSError: If nothing reads it, or the descriptor is closed.
    """
    while data:
        try:
            data = data[os.write(fd, data) :]
        except BlockingIOError:
            # A process that shares the pipe has made it non-blocking, for every process.
            import select

            select.select([], [fd], [])


def moved_up(fd: int) -> int:
    """
    Move a descriptor that was just opened above those that programs use by their numbers.

    Where a program has closed its stdout, what is opened next would get its number.

    Args:
        fd: The descriptor; it is closed.
    """
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _ABOVE)
    finally:
        os.close(fd)
