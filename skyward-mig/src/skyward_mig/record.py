"""
What was changed on a machine and is to be changed back: a file that outlives the process that changed it.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from attrs import asdict, frozen

from skyward import private

__all__ = ["Busy", "Entry", "Record", "held", "place"]


class Busy(Exception):
    """Another program has cut the GPUs of this machine."""


@frozen
class Entry:
    """
    One GPU that is cut, or about to be.

    Args:
        gpu: Its name.
        enabled: Whether MIG mode was switched on for it.
        instances: Numbers of the instances that were made; None while they are made: it had none before.
    """

    gpu: str
    enabled: bool
    instances: tuple[int, ...] | None = None


class Record:
    """
    Write down what was changed.

    Args:
        file: The file, which is locked.
    """

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def read(self) -> tuple[Entry, ...]:
        """Return what was changed and not changed back; nothing where the file was never completed."""
        self._file.seek(0)
        try:
            rows = json.loads(self._file.read() or "[]")
            return tuple(Entry(row["gpu"], row["enabled"], _numbers(row["instances"])) for row in rows)
        except (ValueError, KeyError, TypeError):
            return ()

    def write(self, entries: Sequence[Entry]) -> None:
        """Write it to the disk before anything is changed."""
        text = json.dumps([asdict(entry) for entry in entries])
        self._file.seek(0)
        self._file.truncate()
        self._file.write(text)
        self._file.flush()
        os.fsync(self._file.fileno())


def place() -> Path:
    """Return where the file is: in Skyward's cache on this machine."""
    cache = os.environ.get("SKYWARD_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(cache or os.path.join(base, "skyward")) / "mig.json"


@contextmanager
def held(path: Path, patience: float) -> Iterator[Record]:
    """
    Hold the file's lock.

    Args:
        path: The file; made if it is not there.
        patience: Seconds to wait for another that has it, and may be about to change all back.

    Raises:
        Busy: If another keeps it.
        ConfigError: If another user could change it.
    """
    private.directory(path.parent, hint="SKYWARD_CACHE may name another directory.")
    with os.fdopen(private.opened(path, os.O_RDWR | os.O_CREAT), "r+", encoding="utf-8") as file:
        deadline = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise Busy from None
                time.sleep(0.1)
        yield Record(file)


def _numbers(value: Sequence[int] | None) -> tuple[int, ...] | None:
    return None if value is None else tuple(map(int, value))
