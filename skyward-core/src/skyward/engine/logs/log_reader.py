"""Read the stored log of a pool: its lines in order, while another process writes it, and long after its end."""

from __future__ import annotations

import heapq
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from skyward import private
from skyward.errors import ConfigError
from skyward.plan.logs.log_format import (
    STREAMS,
    VERSION,
    LogSegment,
    Record,
    Stream,
    parse,
    segment_of,
    segment_version,
)

__all__ = ["LOOK_S", "LogReader"]

LOOK_S = 0.2
"""Seconds between two looks at a log that is still written."""

_CHUNK = 1 << 18


class LogReader:
    """
    Read one pool's log.

    Args:
        folder: The pool's folder.
        streams: Which of its streams.
        complain: Gets a sentence about each file that is passed over.
    """

    def __init__(
        self,
        folder: Path,
        streams: Sequence[Stream] = STREAMS,
        *,
        complain: Callable[[str], object] = lambda sentence: None,
    ) -> None:
        self._folder = folder
        self._streams = streams
        self._complain = complain
        self._cursors: dict[tuple[int, Stream], _Cursor] = {}
        self.unreadable = 0
        """How many lines were damaged, and passed over."""

    def read(self, since_run: int = 1) -> Iterator[Record]:
        """
        Return what has come since the last look, in order.

        Args:
            since_run: The first run that is read.
        """
        for run in self._runs():
            if run < since_run:
                continue
            cursors = [self._cursor(run, stream) for stream in self._streams]
            yield from heapq.merge(*(cursor.records() for cursor in cursors), key=_number)

    def follow(self, ended: Callable[[], bool], wait: Callable[[float], object] = time.sleep) -> Iterator[Record]:
        """
        Return what there is, and then what comes until the pool has ended.

        Args:
            ended: Returns whether nothing more is written.
            wait: Waits for so many seconds.
        """
        while True:
            # Before the look: what was written until then is found by it.
            over = ended()
            yield from self.read()
            if over:
                return
            wait(LOOK_S)

    def _runs(self) -> list[int]:
        try:
            names = os.listdir(self._folder)
        except OSError:
            return []
        return sorted({segment.run for segment in map(segment_of, names) if segment is not None})

    def _cursor(self, run: int, stream: Stream) -> _Cursor:
        cursor = self._cursors.get((run, stream))
        if cursor is None:
            cursor = self._cursors[run, stream] = _Cursor(self, run, stream)
        return cursor

    # For cursors.

    def segments(self, run: int, stream: Stream) -> list[LogSegment]:
        """List the segments that a stream has now, in order."""
        try:
            names = os.listdir(self._folder)
        except OSError:
            return []
        found = filter(None, map(segment_of, names))
        return sorted(segment for segment in found if segment.run == run and segment.stream == stream)

    def opened(self, segment: LogSegment) -> int | None:
        """Open a segment; None where it is gone, or cannot be read."""
        try:
            return private.opened(self._folder / segment.file, os.O_RDONLY)
        except FileNotFoundError:
            return None
        except (OSError, ConfigError) as error:
            self._complain(f"{segment.file} cannot be read and is passed over: {error}")
            return None

    def refused(self, segment: LogSegment, first: bytes) -> bool:
        """Return whether a segment is passed over, by its first line, and say so."""
        version = segment_version(first)
        if version is not None and version <= VERSION:
            return False
        why = "has no head" if version is None else f"is of version {version}, and this program reads up to {VERSION}"
        self._complain(f"{segment.file} {why}: it is passed over")
        return True


class _Cursor:
    """Remember how far one stream of one run was read."""

    def __init__(self, reader: LogReader, run: int, stream: Stream) -> None:
        self._reader = reader
        self._run = run
        self._stream = stream
        self._segment: LogSegment | None = None
        self._offset = 0
        self._headed = False
        self._refused = False

    def records(self) -> Iterator[Record]:
        """Return what has come since the last look."""
        while True:
            # Before the look at the segment: what it got last was written before the next one was begun.
            following = self._following()
            if self._segment is not None:
                yield from self._rest(self._segment)
            if following is None:
                return
            self._segment, self._offset, self._headed, self._refused = following, 0, False, False

    def _following(self) -> LogSegment | None:
        there = self._reader.segments(self._run, self._stream)
        return next((one for one in there if self._segment is None or one.number > self._segment.number), None)

    def _rest(self, segment: LogSegment) -> Iterator[Record]:
        descriptor = None if self._refused else self._reader.opened(segment)
        if descriptor is None:
            return
        torn = b""
        try:
            while chunk := os.pread(descriptor, _CHUNK, self._offset + len(torn)):
                whole, end, torn = (torn + chunk).rpartition(b"\n")
                for line in whole.split(b"\n") if end else ():
                    self._offset += len(line) + 1
                    if not self._headed:
                        self._refused = self._reader.refused(segment, line)
                        if self._refused:
                            return
                        self._headed = True
                        continue
                    found = parse(line)
                    if found is None:
                        self._reader.unreadable += 1
                    else:
                        yield found
        finally:
            os.close(descriptor)


def _number(found: Record) -> int:
    number: int = found["n"]
    return number
