"""Shared memory that holds one payload and travels as a descriptor."""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Sequence

from skyward.errors import ProtocolError
from skyward.link.descriptors import own
from skyward.link.first_write import write_all, write_first
from skyward.link.recycling import AVAILABLE, WORTH_IT, Writable, recycling

ALIGN = 64
"""Every buffer in a segment starts at a multiple of this many bytes, as vector instructions like it."""


def aligned(size: int) -> int:
    """
    Round a size up to the next place where a buffer may start.

    >>> aligned(65)
    128
    """
    return (size + ALIGN - 1) & ~(ALIGN - 1)


class Segment:
    """
    Own one descriptor of a shared-memory file, closed when the last user releases it.

    Args:
        fd: The descriptor; the segment closes it.
        size: Bytes in it.
    """

    __slots__ = ("__weakref__", "fd", "size")

    def __init__(self, fd: int, size: int) -> None:
        own((fd,))
        self.fd = fd
        self.size = size

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Close the descriptor; mappings of it live on."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def expect(self, size: int) -> None:
        """
        Record how many bytes are said to be in it.

        Raises:
            ProtocolError: If it holds fewer, or is no memory at all.
        """
        held = os.fstat(self.fd)
        if not stat.S_ISREG(held.st_mode) or held.st_size < size:
            raise ProtocolError(f"A segment is said to hold {size} bytes and holds {held.st_size}.")
        self.size = size

    def map(self) -> memoryview:
        """Map the whole segment copy-on-write: writing to it changes nothing elsewhere."""
        if not self.size:
            return memoryview(b"")
        return memoryview(mmap.mmap(self.fd, self.size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE))


def write_segment(buffers: Sequence[Sequence[bytes | memoryview]]) -> Segment:
    """
    Copy buffers into a new segment, each at an aligned place.

    Args:
        buffers: Each a sequence of pieces; they may change as soon as this returns.

    Raises:
        OSError: If the machine has no room for it.

    >>> bytes(write_segment([[b"ab", b"c"], [b"d"]]).map()[:3])
    b'abc'
    """
    views: list[memoryview] = []
    total = 0
    for buffer in buffers:
        views += map(memoryview, buffer)
        size = sum(map(len, buffer))
        total += size
        if size % ALIGN:
            views.append(memoryview(bytes(ALIGN - size % ALIGN)))
            total = aligned(total)
    kept = AVAILABLE and total >= WORTH_IT
    written = recycling.take(total) if kept else None
    if written is not None:
        written.write(views)
        return Segment(recycling.lend(written), total)
    segment = Segment(anonymous_file(), total)
    write_first(segment.fd, views)
    if kept:
        segment.fd = recycling.lend(Writable(segment.fd))
    return segment


class Arriving:
    """
    Be a segment whose bytes come one after the other.

    Args:
        size: Bytes that it will hold.

    >>> arriving = Arriving(4)
    >>> arriving.write(2, memoryview(b"cd"))
    >>> arriving.write(0, memoryview(b"ab"))
    >>> bytes(Segment(arriving.finish(), 4).map())
    b'abcd'
    """

    __slots__ = ("_fd", "_kept", "_warm")

    def __init__(self, size: int) -> None:
        self._kept = AVAILABLE and size >= WORTH_IT
        self._warm = recycling.take(size) if self._kept else None
        self._fd = -1
        if self._warm is None:
            self._fd = anonymous_file()
            os.ftruncate(self._fd, size)

    def write(self, at: int, piece: memoryview) -> None:
        """
        Write some bytes at their place.

        Raises:
            OSError: If the machine has no room for them.
        """
        if self._warm is not None:
            self._warm.write_at(at, piece)
        else:
            write_all(self._fd, [piece], at)

    def finish(self) -> int:
        """Return a descriptor of what has arrived, the caller's now."""
        fd, self._fd = self._fd, -1
        warm, self._warm = self._warm, None
        if warm is None and self._kept:
            warm = Writable(fd)
        return fd if warm is None else recycling.lend(warm)

    def close(self) -> None:
        """Discard what has arrived, if it was not given out."""
        fd, self._fd = self._fd, -1
        warm, self._warm = self._warm, None
        if warm is not None:
            warm.close()
        elif fd >= 0:
            os.close(fd)


def anonymous_file() -> int:
    """Make a file in memory that has no name, and return its descriptor."""
    memfd_create = getattr(os, "memfd_create", None)
    if memfd_create is not None:
        made: int = memfd_create("skyward", os.MFD_CLOEXEC)
        return made
    # Late, because Linux has no use for it.
    import tempfile

    fd, path = tempfile.mkstemp(prefix="skyward-")
    os.unlink(path)
    return fd


def in_memory(data: bytes) -> int:
    """
    Return a descriptor of memory that holds bytes.

    Args:
        data: The bytes.

    >>> fd = in_memory(b"abc")
    >>> os.pread(fd, 10, 0), os.close(fd)
    (b'abc', None)
    """
    fd = anonymous_file()
    try:
        at = 0
        while at < len(data):
            at += os.pwrite(fd, memoryview(data)[at:], at)
    except BaseException:
        os.close(fd)
        raise
    return fd
