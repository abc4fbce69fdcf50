"""
Huge pages for a file in memory that is about to be written.

A first write spends most of its time on 4 KiB pages: each one is searched, charged and cleared by itself. The kernel
replaces a range of them with one page of 2 MiB when it is asked to (`MADV_COLLAPSE`, Linux 6.1, madvise(2)), whatever
the machine's setting for huge pages is, except `deny`; a range needs its first page for that, and no other one.
256 MiB take 0.05 s of a processor instead of 0.12 s.

Where memory is in small pieces, the kernel moves pages to make room, which may take longer than it saves. Its time is
looked at after each step, and a slow one is the last.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

HUGE = 2 << 20
"""Bytes of a huge page, on the processors that Skyward's nodes have; elsewhere the kernel refuses."""

_STEP = 8 << 20
"""Bytes that are asked for at once; other threads get their turn at least so often, and time is looked at."""
_SLOWEST_S = 0.5e-9
"""Processor time a byte that a step may take: that of small pages."""

_COLLAPSE = 25
_PRIVATE_ANONYMOUS = 0x22
_SHARED_FIXED = 0x11


class _Kernel(NamedTuple):
    """Calls of the C library, during which other threads run."""

    mmap: Callable[..., int | None]
    munmap: Callable[..., int]
    madvise: Callable[..., int]
    error: Callable[[], int]
    failed: int | None


@cache
def _kernel() -> _Kernel:
    # Late: ctypes is not loaded where nothing large is sent.
    import ctypes
    from ctypes import c_int, c_long, c_size_t, c_void_p

    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.argtypes = (c_void_p, c_size_t, c_int, c_int, c_int, c_long)
    library.mmap.restype = c_void_p
    library.munmap.argtypes = (c_void_p, c_size_t)
    library.madvise.argtypes = (c_void_p, c_size_t, c_int)
    return _Kernel(library.mmap, library.munmap, library.madvise, ctypes.get_errno, c_void_p(-1).value)


@contextlib.contextmanager
def mapped_for_huge_pages(fd: int, start: int, end: int) -> Iterator[int]:
    """
    Map a range of a file where huge pages may lie, and yield its address.

    Args:
        fd: The file.
        start: Where the range begins.
        end: Where it ends; both at whole huge pages.

    Raises:
        OSError: If the kernel refuses.
    """
    size = end - start
    reserved = _mapped(None, size + HUGE, mmap.PROT_READ, _PRIVATE_ANONYMOUS, -1, 0)
    try:
        address = -(-reserved // HUGE) * HUGE
        yield _mapped(address, size, mmap.PROT_READ | mmap.PROT_WRITE, _SHARED_FIXED, fd, start)
    finally:
        _kernel().munmap(reserved, size + HUGE)


def _mapped(address: int | None, size: int, protection: int, flags: int, fd: int, start: int) -> int:
    kernel = _kernel()
    found = kernel.mmap(address, size, protection, flags, fd, start)
    if found is None or found == kernel.failed:
        raise OSError(kernel.error(), "mmap(2) is refused")
    return found


def make_huge(fd: int, start: int, end: int, address: int) -> bool:
    """
    Create huge pages of zeros under an unwritten range of a file.

    Args:
        fd: The file.
        start: Where the range begins.
        end: Where it ends; both at whole huge pages.
        address: Where that is mapped.

    Returns:
        False if the kernel refused, or took so long that small pages are faster.
    """
    for place in range(start, end, HUGE):
        os.pwrite(fd, b"\0", place)
    advise = _kernel().madvise
    for place in range(start, end, _STEP):
        size = min(_STEP, end - place)
        began = time.thread_time()
        if advise(address + place - start, size, _COLLAPSE) or time.thread_time() - began > size * _SLOWEST_S:
            return False
    return True
