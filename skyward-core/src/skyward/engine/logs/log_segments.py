"""The files of one stream of a stored log: appended to, another begun at some size, the oldest deleted at last."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from skyward import private
from skyward.plan.logs.log_format import LogSegment, Stream, head, segment_of

__all__ = ["SEGMENT_BYTES", "Segments", "last_run"]

SEGMENT_BYTES = 4 << 20
"""At what size the next segment is begun."""


class Segments:
    """
    Append lines to a stream; used by one thread.

    Args:
        folder: The pool's folder.
        pool_id: The pool's id.
        stream: Which stream.
        run: Which run.
        most: How many bytes all segments may hold, those of earlier runs among them.
        segment: At what size the next segment is begun.
    """

    def __init__(
        self, folder: Path, pool_id: str, stream: Stream, run: int, *, most: int, segment: int = SEGMENT_BYTES
    ) -> None:
        self._folder = folder
        self._pool_id = pool_id
        self._next = LogSegment(stream, run, 1)
        self._most = most
        self._whole = segment
        self._sizes = _sizes(folder, stream)
        self._descriptor: int | None = None

    def append(self, lines: Iterable[str]) -> tuple[int, int]:
        """
        Write lines.

        Args:
            lines: The lines, each with its end; they are ASCII.

        Returns:
            How many old segments were deleted for it, and their bytes.

        Raises:
            OSError: If they are not, or not all, on the disk.
            ConfigError: If the folder is not this user's alone.
        """
        data = "".join(lines).encode("ascii", "replace")
        if not data:
            return 0, 0
        if self._descriptor is None:
            self._begin()
        assert self._descriptor is not None
        current = next(reversed(self._sizes))
        _write(self._descriptor, data)
        self._sizes[current] += len(data)
        if self._sizes[current] >= self._whole:
            self.close()
        return self._drop_oldest()

    def close(self) -> None:
        """Close the file; the next lines begin another one."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def _begin(self) -> None:
        segment = self._next
        path = self._folder / segment.file
        descriptor = private.opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND)
        self._next = LogSegment(segment.stream, segment.run, segment.number + 1)
        first = head(self._pool_id, segment).encode()
        try:
            _write(descriptor, first)
        except OSError:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        self._sizes[segment] = len(first)

    def _drop_oldest(self) -> tuple[int, int]:
        dropped = freed = 0
        while len(self._sizes) > 1 and sum(self._sizes.values()) > self._most:
            oldest = next(iter(self._sizes))
            freed += self._sizes.pop(oldest)
            dropped += 1
            with contextlib.suppress(OSError):
                (self._folder / oldest.file).unlink()
        return dropped, freed


def last_run(folder: Path) -> int:
    """
    Return the number of the last run that has a file in a pool's folder; 0 where there is none.

    Args:
        folder: The folder.
    """
    try:
        names = os.listdir(folder)
    except OSError:
        return 0
    return max((segment.run for segment in map(segment_of, names) if segment is not None), default=0)


def _sizes(folder: Path, stream: Stream) -> dict[LogSegment, int]:
    """Return the size of each segment of a stream, oldest first."""
    found: dict[LogSegment, int] = {}
    with contextlib.suppress(OSError):
        for segment in sorted(filter(None, map(segment_of, os.listdir(folder)))):
            if segment.stream == stream:
                with contextlib.suppress(OSError):
                    found[segment] = (folder / segment.file).lstat().st_size
    return found


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
