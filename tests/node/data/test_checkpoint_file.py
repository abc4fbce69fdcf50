"""What is written is read, whatever it is; what is torn or damaged is known as such, and never opened."""

from __future__ import annotations

import os
import pickle
import random
from collections.abc import Callable
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays

from skyward.errors import RefError
from skyward.node.data.block_sums import BLOCK
from skyward.node.data.checkpoint_file import BrokenVersionError, Pieces, read_version, write_version
from skyward.node.worker.put_in_task import put_here
from tests.seeds import seeds

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def written(obj: object) -> bytes:
    """Return the bytes of a version."""
    found = bytearray()

    def write(pieces: Pieces) -> None:
        for piece in pieces:
            found.extend(piece)

    assert write_version(obj, write) == len(found)
    return bytes(found)


def opened(data: bytes) -> FileIO:
    """Return a file with some bytes."""
    fd = os.memfd_create("version")
    file = FileIO(fd, "r+")
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]
    return file


def read(data: bytes) -> Any:
    """Read a version from its bytes."""
    with opened(data) as file:
        return read_version(file)


@given(PLAIN)
def test_plain_values_come_as_they_went(value: object) -> None:
    """Of any depth."""
    assert value == read(written(value))


NUMBERS = arrays.integer_dtypes() | arrays.floating_dtypes() | arrays.complex_number_dtypes() | arrays.boolean_dtypes()


@given(st.lists(arrays.arrays(NUMBERS, arrays.array_shapes(max_dims=3, max_side=40)), max_size=4))
def test_arrays_come_as_they_went(values: list[np.ndarray[Any, Any]]) -> None:
    """Of any type and shape, and writable."""
    for before, after in zip(values, read(written(values)), strict=True):
        assert before.dtype == after.dtype
        assert before.tobytes() == after.tobytes()
        assert after.flags.writeable


@pytest.mark.parametrize("size", [0, 1, (64 << 10) - 1, 64 << 10, 1 << 20, BLOCK + 5, 3 * BLOCK])
@pytest.mark.parametrize("kind", [bytes, bytearray, lambda data: np.frombuffer(data, np.uint8)])
def test_large_ones_come_as_they_went(size: int, kind: Callable[[bytes], Any]) -> None:
    """Below and beyond what is kept apart, and what one checksum covers; two of them share nothing."""
    data = random.Random(size).randbytes(size)
    first, second = read(written([kind(data), kind(data[::-1])]))
    assert data == bytes(first)
    assert data[::-1] == bytes(second)


def test_arrays_are_written_from_where_they_are() -> None:
    """The writer gets the array's own memory."""
    array = np.arange(1 << 20)
    begin = array.ctypes.data
    mine: list[int] = []

    def write(pieces: Pieces) -> None:
        mine.extend(
            len(piece) for piece in pieces if begin <= np.frombuffer(piece, np.uint8).ctypes.data < begin + array.nbytes
        )

    write_version({"array": array}, write)
    assert array.nbytes == sum(mine)


def test_an_object_that_is_shared_stays_one() -> None:
    """As pickle has it."""
    array = np.arange(100_000)
    first, second = read(written([array, array]))
    assert first is second


@pytest.mark.parametrize("seed", seeds("damaged versions", 3))
def test_damage_is_known(seed: int) -> None:
    """Any byte that is another one, and any end that is missing: nothing is unpickled."""
    drawing = random.Random(seed)
    data = written({"numbers": np.arange(300_000), "text": "x" * 1000})
    for _ in range(40):
        at = drawing.randrange(len(data))
        damaged = bytearray(data)
        damaged[at] ^= 1 << drawing.randrange(8)
        with pytest.raises(BrokenVersionError):
            read(bytes(damaged))
        with pytest.raises(BrokenVersionError):
            read(data[:at])


@pytest.mark.parametrize("data", [b"", b"x", b"x" * 100, pickle.dumps([1] * 1000)])
def test_another_file_is_no_version(data: bytes) -> None:
    """Nothing of it is opened."""
    with pytest.raises(BrokenVersionError):
        read(data)


def test_a_buffer_that_changes_meanwhile_is_known() -> None:
    """What was written is then not what was checked."""
    array = np.zeros(4 * BLOCK, np.uint8)
    found = bytearray()

    def write(pieces: Pieces) -> None:
        for piece in pieces:
            if len(piece) >= BLOCK:
                array[:] += 1
            found.extend(piece)

    write_version(array, write)
    with pytest.raises(BrokenVersionError, match="its checksums differ"):
        read(bytes(found))


def test_what_writing_raises_is_raised() -> None:
    """A disk that is full shows as itself."""

    def write(pieces: Pieces) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write_version(np.zeros(1 << 20), write)


def test_a_ref_is_refused() -> None:
    """It stands for something that is gone with its pool."""
    ref = put_here([1, 2], data=False)
    with pytest.raises(RefError):
        write_version([ref], lambda pieces: None)


def test_a_file_on_a_disk_is_read(tmp_path: Path) -> None:
    """By its path."""
    path = tmp_path / "version"
    path.write_bytes(written({"a": np.ones(100_000)}))
    with FileIO(path) as file:
        assert 100_000 == read_version(file)["a"].sum()
