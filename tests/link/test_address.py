"""Buffers are found in memory and copied whole."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest

from skyward.link.address import address_of, copy


def test_address_is_that_of_the_first_byte() -> None:
    """Of a part, that of the part."""
    array = np.zeros(100, np.uint8)
    assert address_of(memoryview(array)) == array.ctypes.data
    assert address_of(memoryview(array)[7:]) == array.ctypes.data + 7


def test_what_cannot_be_written_has_an_address() -> None:
    """Such as bytes; and nothing of it stays held."""
    data = b"x" * 1000
    before = sys.getrefcount(data)
    assert address_of(memoryview(data)) == address_of(memoryview(data)[:10])
    assert sys.getrefcount(data) == before


def test_scattered_buffer_is_refused() -> None:
    """There is no one place where it is."""
    with pytest.raises(BufferError):
        address_of(memoryview(bytearray(10))[::2])


@pytest.mark.parametrize("size", [0, 1, 63, 4096, 3 << 20])
def test_copy_is_what_the_source_was(size: int) -> None:
    """What is behind it stays."""
    source = np.random.default_rng(size).bytes(size)
    target = bytearray(b"\xff" * (size + 5))
    copy(memoryview(source), memoryview(target))
    assert target == source + b"\xff" * 5


@pytest.mark.parametrize("target", [bytearray(2), b"abcd"])
def test_target_that_does_not_do_is_refused(target: bytes | bytearray) -> None:
    """Before a byte is written."""
    with pytest.raises(ValueError, match="cannot be copied"):
        copy(memoryview(b"123"), memoryview(target))
    assert target in (bytearray(2), b"abcd")


def test_other_threads_run_during_a_copy() -> None:
    """The engine's loop does not wait for it."""
    source, target = np.ones(64 << 20, np.uint8), np.zeros(64 << 20, np.uint8)
    began, counted = threading.Event(), 0

    def copying() -> None:
        began.set()
        for _ in range(20):
            copy(memoryview(source), memoryview(target))

    thread = threading.Thread(target=copying)
    interval = sys.getswitchinterval()
    # No thread is asked to let others run: one that does so does it by itself.
    sys.setswitchinterval(1000)
    try:
        thread.start()
        began.wait()
        while thread.is_alive() and counted < 1000:
            counted += 1
    finally:
        sys.setswitchinterval(interval)
        thread.join()
    assert counted == 1000
