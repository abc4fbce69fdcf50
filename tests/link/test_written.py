"""Memory that was written to is never taken for unwritten, whatever wrote there."""

from __future__ import annotations

import ctypes
import mmap
import os
import threading
from collections.abc import Callable
from multiprocessing import shared_memory
from pathlib import Path

import numpy as np
import pytest

from skyward.link import written
from skyward.link.written import Kernel, MemoryWatch, ours_alone

PAGE = mmap.PAGESIZE
PAGES = 32

libc = ctypes.CDLL(None, use_errno=True)


def kernel_or_skip() -> Kernel:
    """Give the kernel's two ends."""
    found = written._process.kernel()
    if found is None:
        pytest.skip("This kernel watches no memory.")
    return found


@pytest.fixture
def memory() -> np.ndarray:
    """Some pages of their own, all written to."""
    array = np.frombuffer(mmap.mmap(-1, PAGES * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), np.uint8)
    array[:] = 7
    return array


def watched(array: np.ndarray) -> MemoryWatch:
    """Watch an array."""
    watch = kernel_or_skip().watch(array.ctypes.data, array.nbytes)
    assert watch is not None
    return watch


def by_thread(array: np.ndarray) -> None:
    """Write in another thread."""
    thread = threading.Thread(target=array.__setitem__, args=(5 * PAGE, 1))
    thread.start()
    thread.join()


def by_read(array: np.ndarray) -> None:
    """Have the kernel write."""
    reading, writing = os.pipe()
    os.write(writing, b"x")
    assert os.readv(reading, [memoryview(array)[PAGES * PAGE - 1 :]]) == 1
    os.close(reading)
    os.close(writing)


def by_file(array: np.ndarray) -> None:
    """Read a file into it."""
    with open("/proc/self/exe", "rb") as file:
        assert file.readinto(memoryview(array)[: 2 * PAGE]) == 2 * PAGE


def by_advice(array: np.ndarray) -> None:
    """Give pages back, which are zero then."""
    assert libc.madvise(ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(PAGE), mmap.MADV_DONTNEED) == 0
    assert array[0] == 0


def by_mapping_anew(array: np.ndarray) -> None:
    """Map other memory in its place."""
    libc.mmap.restype = ctypes.c_void_p
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x10
    size = ctypes.c_size_t(2 * PAGE)
    assert libc.mmap(ctypes.c_void_p(array.ctypes.data), size, 3, flags, -1, ctypes.c_long(0)) == array.ctypes.data


@pytest.mark.parametrize("write", [by_thread, by_read, by_file, by_advice, by_mapping_anew])
def test_every_way_to_write_is_seen(memory: np.ndarray, write: Callable[[np.ndarray], None]) -> None:
    """And reading is none."""
    watch = watched(memory)
    assert memory.sum()
    assert watch.intact()
    write(memory)
    assert not watch.intact()


def test_every_page_counts(memory: np.ndarray) -> None:
    """Also the first and the last."""
    for page in range(PAGES):
        watch = watched(memory)
        assert watch.intact()
        memory[page * PAGE + page] = page
        assert not watch.intact()
        watch.close()


def test_memory_that_was_never_written_is_watched_too() -> None:
    """It is all zeros, and no page is there."""
    array = np.frombuffer(mmap.mmap(-1, PAGES * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), np.uint8)
    watch = watched(array)
    assert watch.intact()
    assert not array.any()
    assert watch.intact()
    array[PAGE] = 1
    assert not watch.intact()


def test_huge_pages_are_watched() -> None:
    """Numpy asks for them."""
    array = np.ones(16 << 20, np.uint8)
    watch = watched(array)
    assert watch.intact()
    array[9 << 20] = 2
    assert not watch.intact()


def test_memory_that_was_moved_is_no_longer_watched() -> None:
    """What is at its place then is something else."""
    with mmap.mmap(-1, PAGES * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as mapped:
        array = np.frombuffer(mapped, np.uint8)
        watch = watched(array)
        del array
        mapped.resize(64 * PAGES * PAGE)
        moved = np.frombuffer(mapped, np.uint8)
        again = watch.intact()
        assert not again or moved.ctypes.data == watch.start
        del moved


def test_memory_that_is_mapped_anew_is_not_taken_for_the_old(memory: np.ndarray) -> None:
    """Arrays made in a loop often have the same address."""
    array = np.ones(16 << 20, np.uint8)
    place, watch = array.ctypes.data, watched(array)
    del array
    array = np.zeros(16 << 20, np.uint8)
    assert array.ctypes.data != place or not watch.intact()


def test_a_forked_child_watches_its_own_memory(memory: np.ndarray) -> None:
    """And the parent's watch knows nothing of it."""
    watch = watched(memory)
    child = os.fork()
    if not child:
        code = 1
        try:
            own = written._process.kernel()
            if not watch.intact() and own is not None:
                mine = own.watch(memory.ctypes.data, memory.nbytes)
                assert mine is not None
                seen = mine.intact()
                memory[:] = 3
                code = 0 if seen and not mine.intact() else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert watch.intact()
    memory[3] = 1
    assert not watch.intact()


def test_two_users_of_one_range_share_a_watch(memory: np.ndarray) -> None:
    """One that ends leaves the other's."""
    one, other = watched(memory), watched(memory)
    assert one is other
    one.close()
    assert other.intact()
    memory[0] = 1
    assert not other.intact()


def test_a_watch_that_begins_anew_hides_no_write_from_the_one_before(memory: np.ndarray) -> None:
    """Nor does one of a part of it."""
    before = watched(memory)
    memory[0] = 1
    assert watched(memory).intact()
    assert not before.intact()
    whole = watched(memory)
    memory[PAGE] = 1
    assert watched(memory[: 4 * PAGE]).intact()
    assert not whole.intact()


def test_memory_that_others_may_write_to_is_not_watched(tmp_path: Path) -> None:
    """Files and shared memory change without a write of this process."""
    kernel = kernel_or_skip()
    mapped = np.memmap(tmp_path / "numbers", np.uint8, "w+", shape=(PAGES * PAGE,))
    assert kernel.watch(mapped.ctypes.data, mapped.nbytes) is None
    shared = shared_memory.SharedMemory(create=True, size=PAGES * PAGE)
    try:
        array = np.frombuffer(shared.buf, np.uint8)
        assert kernel.watch(array.ctypes.data, array.nbytes) is None
        del array
    finally:
        shared.close()
        shared.unlink()


@pytest.mark.parametrize(
    ("maps", "expected"),
    [
        ("1000-3000 rw-p 0 00:00 0", True),
        ("1000-2000 rw-p 0 00:00 0\n2000-3000 rw-p 0 00:00 0 [heap]", True),
        ("1000-2000 rw-p 0 00:00 0\n2800-3000 rw-p 0 00:00 0", False),
        ("1000-3000 rw-s 0 00:00 0", False),
        ("1000-3000 rw-p 0 08:01 77 /data/numbers", False),
        ("1000-3000 rw-p 0 00:00 0\n9000-a000 rw-s 0 00:05 5 /dev/nvidia-uvm", False),
        ("1000-3000 rw-p 0 00:00 0\n9000-a000 rw-s 0 00:05 5 anon_inode:[io_uring]", False),
        ("1000-3000 rw-p 0 00:00 0\n9000-a000 rw-s 0 00:05 5 /dev/shm/cache", True),
        ("", False),
    ],
)
def test_ranges_of_this_process_alone(maps: str, expected: bool) -> None:
    """As the kernel lists them."""
    assert ours_alone(maps, 0x1000, 0x3000) is expected
