"""What changed in a folder since it was last copied: a comparison of two lists of files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["INCOMING", "Changes", "FileState", "compared", "listed"]

INCOMING = ".skyward-incoming"
"""A folder for what is on its way from the bucket, which is none of the volume's files."""


class FileState(NamedTuple):
    """
    What distinguishes a file from a later state of it.

    Args:
        size: Its bytes.
        modified: When it was written, in nanoseconds.
        inode: Its number, which another file that took its place does not have.
    """

    size: int
    modified: int
    inode: int

    @classmethod
    def of(cls, facts: os.stat_result) -> FileState:
        """
        Return the state that the system's facts of a file say.

        Args:
            facts: The facts.
        """
        return cls(facts.st_size, facts.st_mtime_ns, facts.st_ino)


class Changes(NamedTuple):
    """
    What is to be copied and removed.

    Args:
        written: Files that are new, or not as they were.
        removed: Files that are gone.
    """

    written: list[str]
    removed: list[str]


def compared(before: Mapping[str, FileState], now: Mapping[str, FileState], *, settled: int | None = None) -> Changes:
    """
    Compare two lists of a folder.

    Args:
        before: The files as they were last copied.
        now: The files as they are.
        settled: Only what was written before this moment, in nanoseconds; None for all.

    >>> compared({"a": FileState(1, 5, 1), "b": FileState(1, 5, 2)}, {"a": FileState(2, 9, 1)})
    Changes(written=['a'], removed=['b'])
    """
    written = [
        name
        for name, state in now.items()
        if before.get(name) != state and (settled is None or state.modified < settled)
    ]
    return Changes(sorted(written), sorted(before.keys() - now.keys()))


def listed(folder: str) -> dict[str, FileState]:
    """
    List the files of a folder and all below it; links, and what is on its way from the bucket, are left out.

    Args:
        folder: The folder.
    """
    found: dict[str, FileState] = {}
    waiting = [""]
    while waiting:
        inner = waiting.pop()
        try:
            with os.scandir(os.path.join(folder, inner)) as entries:
                for entry in entries:
                    name = f"{inner}{entry.name}"
                    if name == INCOMING:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(f"{name}/")
                    elif entry.is_file(follow_symlinks=False):
                        found[name] = FileState.of(entry.stat(follow_symlinks=False))
        except FileNotFoundError:
            # Removed while it was looked at.
            continue
    return found
