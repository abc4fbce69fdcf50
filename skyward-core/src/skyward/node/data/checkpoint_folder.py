"""
Versions of checkpoints in a folder: whole and synced under their numbers, or not there at all.

    ADDRESS/00000007.checkpoint     version 7
    ADDRESS/.1f2e3d4c.part          one that is being written, locked as long as its process lives

A number is taken by making its file, empty, which no other process can do too; the version then takes its place.
So of two that save at one moment, both are there, and what is empty was never saved.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from skyward.node.data.checkpoint_file import Pieces

__all__ = ["CheckpointFolder", "UnfinishedVersion", "write_pieces"]

ABANDONED: Final = 600.0
"""Seconds after which what was being written is removed, if the process that wrote it is gone."""

_VERSION: Final = re.compile(r"(\d{8,18})\.checkpoint")
_PART: Final = re.compile(r"\.[0-9a-f]{16}\.part")
_MOST_PIECES: Final = 512


class UnfinishedVersion:
    """
    A version that is being written; it is removed unless it was published.

    Args:
        path: Where it is.
        fd: The file, open for writing.
    """

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self.fd = fd
        self.size = 0

    def write(self, pieces: Pieces) -> None:
        """
        Write the next bytes.

        Raises:
            OSError: If the disk does not take them.
        """
        self.size += sum(map(len, pieces))
        write_pieces(self.fd, pieces)

    def close(self) -> None:
        """Remove what was not published."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            with contextlib.suppress(OSError):
                os.unlink(self.path)
            os.close(fd)


class CheckpointFolder:
    """
    Keep versions in a folder, which several processes and machines may share.

    Args:
        root: The folder; it and what is in it are made when something is saved.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as root:
    ...     folder = CheckpointFolder(Path(root))
    ...     for text in (b"one", b"two", b"three"):
    ...         with folder.writing("a") as part:
    ...             part.write([memoryview(text)])
    ...             number = folder.publish("a", part, keep=2)
    ...     folder.versions("a"), folder.path("a", number).read_bytes()
    ([2, 3], b'three')
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def versions(self, address: str) -> list[int]:
        """List the numbers of what was saved, oldest first."""
        return [number for number, size in self._found(address) if size]

    def path(self, address: str, number: int) -> Path:
        """Return where a version is."""
        return self.root / address / f"{number:08}.checkpoint"

    @contextlib.contextmanager
    def writing(self, address: str) -> Iterator[UnfinishedVersion]:
        """
        Begin a version; what the block does not publish is removed at its end.

        Raises:
            OSError: If no file can be made.
        """
        part = self.begin(address)
        try:
            yield part
        finally:
            part.close()

    def begin(self, address: str) -> UnfinishedVersion:
        """
        Begin a version, which the caller publishes or closes.

        Raises:
            OSError: If no file can be made.
        """
        folder = self.root / address
        if not folder.is_dir():
            # Not what is above: where nothing is mounted, nothing is to be filled.
            self.root.mkdir(exist_ok=True)
            folder.mkdir(exist_ok=True)
            _sync(self.root)
        self._remove_abandoned(folder)
        path = folder / f".{secrets.token_hex(8)}.part"
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        with contextlib.suppress(OSError):
            # Where files cannot be locked, only their age counts.
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return UnfinishedVersion(path, fd)

    def publish(self, address: str, part: UnfinishedVersion, keep: int) -> int:
        """
        Make what was written the newest version, remove those that are too many, and return its number.

        Args:
            address: Of which checkpoint.
            part: The version.
            keep: How many stay.

        Raises:
            OSError: If it is not durable; earlier versions are as they were.
        """
        os.fsync(part.fd)
        number, reserved = self._reserve(address)
        try:
            os.rename(part.path, reserved)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(reserved)
            raise
        fd, part.fd = part.fd, -1
        os.close(fd)
        _sync(reserved.parent)
        self._prune(address, keep)
        return number

    def delete(self, address: str) -> None:
        """Remove all versions of a checkpoint."""
        for number, _ in self._found(address):
            self.path(address, number).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            # Not empty while something is being saved.
            (self.root / address).rmdir()

    def _found(self, address: str) -> list[tuple[int, int]]:
        """List number and size of each version, oldest first."""
        found = []
        with contextlib.suppress(FileNotFoundError), os.scandir(self.root / address) as entries:
            for entry in entries:
                if match := _VERSION.fullmatch(entry.name):
                    with contextlib.suppress(FileNotFoundError):
                        found.append((int(match[1]), entry.stat().st_size))
        return sorted(found)

    def _reserve(self, address: str) -> tuple[int, Path]:
        """Take the next number."""
        number = max((number for number, _ in self._found(address)), default=0)
        while True:
            number += 1
            path = self.path(address, number)
            try:
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
            except FileExistsError:
                continue
            return number, path

    def _prune(self, address: str, keep: int) -> None:
        """Remove all that is older than the versions that stay."""
        whole = self.versions(address)
        oldest = whole[-keep:][0] if whole else 0
        for number, _ in self._found(address):
            if number < oldest:
                # What cannot be removed is in nothing's way.
                with contextlib.suppress(OSError):
                    self.path(address, number).unlink()

    def _remove_abandoned(self, folder: Path) -> None:
        """Remove what processes that are gone were writing."""
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if _PART.fullmatch(entry.name) and time.time() - entry.stat().st_mtime > ABANDONED:
                    _remove_unlocked(entry.path)


def write_pieces(fd: int, pieces: Pieces) -> None:
    """
    Write bytes one behind the other.

    Args:
        fd: Where to.
        pieces: The bytes.

    Raises:
        OSError: If they are not taken.
    """
    left = list(pieces)
    while left:
        written = os.writev(fd, left[:_MOST_PIECES])
        if not written and any(map(len, left)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        while left and written >= len(left[0]):
            written -= len(left.pop(0))
        if written:
            left[0] = left[0][written:]


def _remove_unlocked(path: str) -> None:
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)
    finally:
        os.close(fd)


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
