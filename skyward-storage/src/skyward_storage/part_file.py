"""A download that is not whole yet: the bytes in NAME.part, and beside it which of them are there."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from skyward_storage.parts import Part

__all__ = ["PartFile", "write_whole"]

ATTEMPTS = 5
"""How often a file is opened that another process has just finished."""

CHUNK = 1024 * 1024
"""Bytes that are read at once to check what is there."""


class PartFile:
    """
    Hold the file that a download writes to until it is whole.

    Beside it, NAME.part.done has a line for each range that is there, with its CRC; what does not fit its CRC is
    fetched again. Only one process has it at a time: another one writes to a file of its own.

    Args:
        target: What the file becomes.
        stamp: What tells versions of the object apart, and how it is divided; what was written of another is dropped.
        ranges: The ranges of the object.
    """

    def __init__(self, target: Path, stamp: Sequence[object], ranges: Sequence[Part]) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        self._target = target
        self._lock = threading.Lock()
        self._path, self.handle = _opened(target)
        self._done = self._path.with_name(f"{self._path.name}.done")
        header = json.dumps(stamp)
        self.there: Mapping[int, int] = dict(self._kept(header, ranges))
        """CRC of each range that is there, by number."""
        if not self.there:
            os.ftruncate(self.handle, 0)
        os.ftruncate(self.handle, sum(part.length for part in ranges))
        # What was cut off within a line is left behind.
        lines = [header, *(f"{number} {crc:08x}" for number, crc in self.there.items())]
        self._done.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        self._record = self._done.open("a", encoding="utf-8")

    def write(self, content: bytes, offset: int) -> None:
        """
        Write bytes.

        Args:
            content: The bytes.
            offset: Where they begin.
        """
        view = memoryview(content)
        while view:
            count = os.pwrite(self.handle, view, offset)
            view, offset = view[count:], offset + count

    def record(self, part: Part, crc: int) -> None:
        """
        Record that a range is there.

        Args:
            part: The range.
            crc: The CRC of its bytes.
        """
        with self._lock:
            self._record.write(f"{part.number} {crc:08x}\n")
            self._record.flush()

    def chunks(self) -> Iterator[bytes]:
        """Yield all bytes, in order."""
        offset = 0
        while chunk := os.pread(self.handle, CHUNK, offset):
            offset += len(chunk)
            yield chunk

    def crc(self, offset: int, length: int) -> int:
        """
        Return the CRC of a piece of the file.

        Args:
            offset: Where it begins.
            length: Its bytes.
        """
        crc, end = 0, offset + length
        while offset < end:
            chunk = os.pread(self.handle, min(CHUNK, end - offset), offset)
            if not chunk:
                return -1
            crc, offset = zlib.crc32(chunk, crc), offset + len(chunk)
        return crc

    def finish(self) -> None:
        """Move the file to the place of what stood there, at once."""
        os.replace(self._path, self._target)
        self._close()
        self._done.unlink(missing_ok=True)

    def discard(self) -> None:
        """Remove the file: its bytes are of no use."""
        self._path.unlink(missing_ok=True)
        self._done.unlink(missing_ok=True)
        self._close()

    def keep(self) -> None:
        """Leave the file for a later download, unless it has a name that none would look for."""
        if self._path.name == f"{self._target.name}.part":
            self._close()
        else:
            self.discard()

    def _close(self) -> None:
        self._record.close()
        os.close(self.handle)

    def _kept(self, header: str, ranges: Sequence[Part]) -> Iterator[tuple[int, int]]:
        """Yield the number and CRC of each range that is there as it was written."""
        try:
            first, *lines = self._done.read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError):
            return
        if first != header:
            return
        for line in lines:
            number, _, crc = line.partition(" ")
            if not (number.isdigit() and len(crc) == 8 and 1 <= int(number) <= len(ranges)):
                continue
            part = ranges[int(number) - 1]
            try:
                written = int(crc, 16)
            except ValueError:
                continue
            if self.crc(part.offset, part.length) == written:
                yield part.number, written


def write_whole(target: Path, content: bytes) -> None:
    """
    Write a file at once: a reader finds what stood there before, or all of it.

    Args:
        target: The file.
        content: Its bytes.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    path = target.with_name(f".skyward-{secrets.token_hex(6)}.part")
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666), "wb") as stream:
            stream.write(content)
        os.replace(path, target)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _opened(target: Path) -> tuple[Path, int]:
    """Open NAME.part, or a file of our own where another process has that."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    path = target.with_name(f"{target.name}.part")
    for _ in range(ATTEMPTS):
        handle = os.open(path, flags, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Its owner may have finished it between the two.
            if path.exists() and os.path.samestat(os.fstat(handle), os.stat(path)):
                return path, handle
        except BlockingIOError:
            os.close(handle)
            break
        os.close(handle)
    path = target.with_name(f"{target.name}.{secrets.token_hex(6)}.part")
    return path, os.open(path, flags | os.O_EXCL, 0o666)
