"""Records in files, first in, first out, of which the oldest go when there are too many."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from struct import Struct
from typing import NamedTuple

_HEAD = Struct("<II")

FILES = 4
"""Files at most."""

FILE_BYTES = 16 << 20
"""Bytes after which another file is begun."""


class Taken(NamedTuple):
    """What was taken: how much was lost before it, and the records."""

    lost: int
    records: list[bytes]


class _Part:
    """One file: written at its end, read from an offset."""

    __slots__ = ("at", "fd", "path", "size", "weight")

    def __init__(self, path: str) -> None:
        self.path = path
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self.at = 0
        self.size = 0
        self.weight = 0

    def write(self, data: bytes) -> None:
        """Add a whole record, or nothing of it."""
        at, end = self.size, self.size + len(data)
        while at < end:
            at += os.pwrite(self.fd, data[at - self.size :], at)
        self.size = end

    def read(self) -> tuple[bytes, int]:
        """Read the next record, and how much it weighs."""
        length, weight = _HEAD.unpack(os.pread(self.fd, _HEAD.size, self.at))
        record = os.pread(self.fd, length, self.at + _HEAD.size)
        if len(record) != length:
            raise OSError(f"{self.path} ends in the middle of a record")
        self.at += _HEAD.size + length
        return record, weight

    def close(self) -> None:
        """Close the file, and remove it."""
        os.close(self.fd)
        with contextlib.suppress(OSError):
            os.unlink(self.path)


class Spool:
    """
    Keep records on disk until they are taken, in order; memory does not grow with them.

    What cannot be kept, because there are too many or the disk is full, is counted as lost.

    Args:
        directory: Where the files are; made when the first one is.
        files: How many there are at most.
        file_bytes: Bytes after which another file is begun.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     spool = Spool(directory)
    ...     spool.append(b"one", 1)
    ...     spool.append(b"two", 1)
    ...     spool.take(100)
    ...     spool.close()
    Taken(lost=0, records=[b'one', b'two'])
    """

    def __init__(self, directory: str, *, files: int = FILES, file_bytes: int = FILE_BYTES) -> None:
        self._directory = directory
        self._files = files
        self._file_bytes = file_bytes
        self._parts: deque[_Part] = deque()
        self._made = 0
        self._lost = 0

    @property
    def waiting(self) -> bool:
        """Return whether there is anything to take, or to report."""
        return bool(self._parts or self._lost)

    @property
    def full(self) -> bool:
        """Return whether records are about to be lost."""
        return len(self._parts) >= self._files and self._parts[-1].size >= self._file_bytes

    def append(self, record: bytes, weight: int) -> None:
        """
        Keep a record.

        Args:
            record: What it holds.
            weight: What is counted if it is lost.
        """
        try:
            if not self._parts or self._parts[-1].size >= self._file_bytes:
                self._rotate()
            part = self._parts[-1]
            part.write(_HEAD.pack(len(record), weight) + record)
            part.weight += weight
        except OSError:
            self._lost += weight

    def take(self, most: int) -> Taken:
        """
        Return the oldest records; they are not kept any longer.

        Args:
            most: Bytes after which no other record is given.
        """
        lost, self._lost = self._lost, 0
        records: list[bytes] = []
        while self._parts and most > 0:
            part = self._parts[0]
            if part.at < part.size:
                try:
                    record, weight = part.read()
                except OSError:
                    self._drop()
                    continue
                part.weight -= weight
                most -= len(record)
                records.append(record)
            if part.at == part.size:
                self._drop()
        return Taken(lost, records)

    def close(self) -> None:
        """Remove all of it."""
        while self._parts:
            self._drop()

    def _rotate(self) -> None:
        while len(self._parts) >= self._files:
            self._drop()
        self._made += 1
        os.makedirs(self._directory, mode=0o700, exist_ok=True)
        self._parts.append(_Part(os.path.join(self._directory, str(self._made))))

    def _drop(self) -> None:
        part = self._parts.popleft()
        self._lost += part.weight
        part.close()
