"""Files of stored results: complete and synced under their names, or not there at all."""

from __future__ import annotations

import contextlib
import mmap
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence

from skyward.link.stored import head, tail

_PIECE = 1 << 20


def write_result(
    path: str, frame: bytes, fds: Sequence[int], sizes: Sequence[int], go_on: Callable[[], bool]
) -> list[memoryview] | None:
    """
    Write one result to a file of its own.

    Args:
        path: The file.
        frame: Header and body.
        fds: Memory that goes with it.
        sizes: The bytes of each.
        go_on: Asked before each piece; once it says no, nothing is left of the file.

    Returns:
        The same buffers in the file, which need no memory when that is scarce; None if it was not to go on.

    Raises:
        OSError: If it is not on the disk; then nothing is left of the file.
    """
    begin = head(frame, sum(sizes))

    def parts() -> Iterator[bytes]:
        yield begin
        checksum = 0
        for piece in _pieces(frame, fds, sizes):
            checksum = zlib.crc32(piece, checksum)
            yield piece
        yield tail(checksum)

    if not _write(path, parts(), go_on):
        return None
    try:
        return _mapped(path, len(begin) + len(frame), sizes)
    except OSError:
        remove(path)
        raise


def write_results(path: str, frames: Iterable[bytes], go_on: Callable[[], bool]) -> bool:
    """
    Write results without buffers to one file, one record behind the other: all of them are on the disk, or none.

    Args:
        path: The file.
        frames: Header and body of each.
        go_on: Asked before each piece; once it says no, nothing is left of the file.

    Returns:
        Whether they are on the disk; False if it was not to go on.

    Raises:
        OSError: If they are not on the disk; then nothing is left of the file.
    """
    records = b"".join(head(frame, 0) + frame + tail(zlib.crc32(frame)) for frame in frames)
    return _write(path, [records], go_on)


def remove(path: str) -> None:
    """Remove a file, if it is there."""
    with contextlib.suppress(OSError):
        os.unlink(path)


def _write(path: str, parts: Iterable[bytes], go_on: Callable[[], bool]) -> bool:
    directory, name = os.path.split(path)
    # What is under such a name is passed over by what reads the directory after a crash.
    hidden = os.path.join(directory, f".{name}")
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        with open(hidden, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            for part in parts:
                if not go_on():
                    remove(hidden)
                    return False
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        os.rename(hidden, path)
        _sync_directory(directory)
    except OSError:
        remove(hidden)
        remove(path)
        raise
    return True


def _mapped(path: str, at: int, sizes: Sequence[int]) -> list[memoryview]:
    """Map the buffers of a stored result: pages of a file need no memory when it is scarce, those of a segment do."""
    buffers: list[memoryview] = []
    if sizes:
        with open(path, "rb") as file:
            whole = memoryview(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
        for size in sizes:
            buffers.append(whole[at : at + size])
            at += size
    return buffers


def _pieces(frame: bytes, fds: Sequence[int], sizes: Sequence[int]) -> Iterator[bytes]:
    yield frame
    for fd, size in zip(fds, sizes, strict=True):
        at = 0
        while at < size:
            piece = os.pread(fd, min(_PIECE, size - at), at)
            if not piece:
                raise OSError(f"a segment ends after {at} bytes of {size}")
            at += len(piece)
            yield piece


def _sync_directory(path: str) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
