"""
One version of a checkpoint as it lies in a file: written front to back, so that any stream of bytes can take it.

    16 bytes mark   pickle   buffers, each at a multiple of 64 bytes   table   foot

    table: u64 size of the pickle, u64 size of each buffer, u32 CRC-32 of each block of what stands before the table
    foot: u64 place of the table   u32 buffers   u32 blocks   u32 CRC-32 of table and foot up to here   16 bytes mark

Every number is little-endian. Buffers are written from where they are and read to where they stay; the pickle is never
whole in memory.
"""

from __future__ import annotations

import io
import os
import pickle
import zlib
from collections.abc import Callable, Sequence
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from struct import Struct
from typing import Any, Final, NamedTuple

from skyward.link.data import tensors
from skyward.link.pickling import Pickler
from skyward.link.segment import aligned
from skyward.node.data.block_sums import BLOCK, BlockSums

__all__ = ["BrokenVersionError", "Pieces", "read_version", "write_version"]

Pieces = list[memoryview]
"""Bytes that stand one behind the other."""

_MARK: Final = b"skyward version1"
_FOOT: Final = Struct("<QIII16s")
_SIZE: Final = Struct("<Q")
_SUM: Final = Struct("<I")
_GATHERED: Final = 1 << 20
_MOST_PIECES: Final = 256
_READ: Final = 1 << 20
_MAPPED: Final = 1 << 20


class BrokenVersionError(Exception):
    """Report a file that is no whole version: torn, damaged, or something else."""


def write_version(obj: object, write: Callable[[Pieces], None]) -> int:
    """
    Write an object, and return how many bytes that took.

    Args:
        obj: Anything that cloudpickle can pickle; tensors of accelerators are copied to the host's memory.
        write: Takes the bytes, piece by piece; it keeps none of them.

    Raises:
        Exception: Whatever pickling or writing raises.

    >>> pieces = []
    >>> write_version({"step": 7}, lambda views: pieces.extend(map(bytes, views))) == sum(map(len, pieces))
    True
    """
    buffers: list[memoryview] = []
    with BlockSums() as sums:
        writer = _VersionWriter(write, sums)
        writer.append(_MARK)
        CheckpointPickler(writer, buffers).dump(obj)
        sizes = [writer.at - len(_MARK), *(len(buffer) for buffer in buffers)]
        for buffer in buffers:
            writer.append(bytes(aligned(writer.at) - writer.at))
            for at in range(0, len(buffer), BLOCK):
                writer.append(buffer[at : at + BLOCK])
        writer.flush()
        blocks = sums.finish()
    table = b"".join([*map(_SIZE.pack, sizes), *map(_SUM.pack, blocks)])
    head = _FOOT.pack(writer.at, len(buffers), len(blocks), 0, b"")[:-20]
    write([memoryview(table + head + _SUM.pack(zlib.crc32(table + head)) + _MARK)])
    return writer.at + len(table) + _FOOT.size


def read_version(file: io.FileIO) -> Any:
    """
    Read an object; its large buffers are writable and its own.

    Args:
        file: The file.

    Raises:
        BrokenVersionError: If it is no whole version; nothing of it was unpickled.
        Exception: Whatever unpickling raises.
    """
    facts = _read_table(file)
    file.seek(0)
    with BlockSums() as sums:
        # The pickle is read twice: nothing of it runs before all was checked.
        _pass_over(file, len(_MARK) + facts.sizes[0], sums)
        buffers = []
        at = len(_MARK) + facts.sizes[0]
        for size in facts.sizes[1:]:
            _pass_over(file, aligned(at) - at, sums)
            buffers.append(_filled(file, size, sums))
            at = aligned(at) + size
        if sums.finish() != facts.blocks:
            raise BrokenVersionError("its checksums differ")
    file.seek(len(_MARK))
    reader = io.BufferedReader(file, _READ)
    try:
        return pickle.Unpickler(reader, buffers=buffers).load()
    finally:
        reader.detach()


class CheckpointPickler(Pickler):
    """A pickler that leaves the memory of every plain tensor out of the stream, that of parameters too."""

    def reducer_override(self, obj: Any) -> Any:
        kind = type(obj)
        if kind.__name__ in ("Tensor", "Parameter") and kind.__module__.partition(".")[0] == "torch":
            try:
                reduced = tensors.reduce(obj)
            except TypeError:
                # Sparse and quantised ones have memory of several kinds, which torch's own pickling knows.
                reduced = None
            if reduced is not None:
                return reduced
        return super().reducer_override(obj)


class _VersionWriter:
    """Gather small pieces, and pass all on in order."""

    def __init__(self, write: Callable[[Pieces], None], sums: BlockSums) -> None:
        self._write = write
        self._sums = sums
        self._pieces: Pieces = []
        self._size = 0
        self.at = 0

    def append(self, piece: bytes | memoryview) -> None:
        """Take the next bytes."""
        if not len(piece):
            return
        view = memoryview(piece)
        self._pieces.append(view)
        self._size += len(view)
        self.at += len(view)
        if self._size >= _GATHERED or len(self._pieces) >= _MOST_PIECES:
            self.flush()

    def flush(self) -> None:
        """Pass on what was gathered."""
        pieces, self._pieces, self._size = self._pieces, [], 0
        for piece in pieces:
            self._sums.feed(piece)
        if pieces:
            self._write(pieces)


class _VersionTable(NamedTuple):
    """How long pickle and buffers are, and the checksum of each block."""

    sizes: Sequence[int]
    blocks: list[int]


def _read_table(file: io.FileIO) -> _VersionTable:
    whole = os.fstat(file.fileno()).st_size
    if whole < len(_MARK) + _FOOT.size:
        raise BrokenVersionError(f"it has {whole} bytes")
    file.seek(whole - _FOOT.size)
    foot = _exactly(file, _FOOT.size)
    at, buffers, blocks, checksum, mark = _FOOT.unpack(foot)
    size = whole - _FOOT.size - at
    if mark != _MARK or size != (1 + buffers) * _SIZE.size + blocks * _SUM.size:
        raise BrokenVersionError("it does not end as a version does")
    file.seek(at)
    table = _exactly(file, size)
    if zlib.crc32(table + foot[:-20]) != checksum:
        raise BrokenVersionError("the checksum of its table differs")
    split = (1 + buffers) * _SIZE.size
    sizes = [found for (found,) in _SIZE.iter_unpack(table[:split])]
    end = len(_MARK) + sizes[0]
    for buffer in sizes[1:]:
        end = aligned(end) + buffer
    if end != at:
        raise BrokenVersionError("its table does not fit it")
    return _VersionTable(sizes, [found for (found,) in _SUM.iter_unpack(table[split:])])


def _exactly(file: io.FileIO, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        piece = file.read(size - len(found))
        if not piece:
            raise BrokenVersionError(f"it ends {size - len(found)} bytes early")
        found += piece
    return bytes(found)


def _pass_over(file: io.FileIO, size: int, sums: BlockSums) -> None:
    """Read bytes for their checksum alone."""
    while size:
        piece = _exactly(file, min(size, _READ))
        sums.feed(memoryview(piece))
        size -= len(piece)


def _filled(file: io.FileIO, size: int, sums: BlockSums) -> memoryview:
    """Read a buffer to where it stays."""
    # Fresh pages of the kernel are not written before they are read into, as those of a bytearray are.
    private = MAP_PRIVATE | MAP_ANONYMOUS
    memory = memoryview(mmap(-1, size, flags=private) if size >= _MAPPED else bytearray(size))
    at = 0
    while at < size:
        read = file.readinto(memory[at : at + BLOCK])
        if not read:
            raise BrokenVersionError(f"it ends {size - at} bytes early")
        sums.feed(memory[at : at + read])
        at += read
    return memory
