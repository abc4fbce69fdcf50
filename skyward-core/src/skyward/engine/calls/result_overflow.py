"""Results that wait to be taken, moved to the disk as far as they are more than may be held in memory."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import tempfile
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from skyward.engine.source.environment import cache_entry
from skyward.errors import ConfigError
from skyward.link.payload import Payload
from skyward.link.recycling import recycling
from skyward.link.segment import Segment

if TYPE_CHECKING:
    from skyward.engine.calls.answer import Answer

_log = logging.getLogger(__name__)

WORTH_IT = 1 << 20
"""Results from this size on, in bytes, are moved."""

LEFT_FREE = 1 << 30
"""Bytes of the disk that are left for other programs."""


class Overflow:
    """
    Move results of one map to files without a name, in the cache's directory `results`.

    A file is gone with its last reader, however the program ends. Where the disk has no room, results stay in memory.

    Args:
        run: Runs a function in another thread.
    """

    def __init__(self, run: Callable[[Callable[[], None]], object]) -> None:
        self._run = run
        self._lock = threading.Lock()
        self._moved: dict[int, int] = {}
        self._refused = False
        self.bytes = 0
        """Bytes that were moved, or are about to be, and not taken."""

    def move(self, item: int, answer: Answer) -> None:
        """Move the result of an item, if it is large enough."""
        segment = answer.payload.segment if answer.payload is not None else None
        if self._refused or segment is None or segment.size < WORTH_IT:
            return
        with self._lock:
            self._moved[item] = segment.size
            self.bytes += segment.size
        self._run(partial(self._write, item, answer))

    def taken(self, item: int) -> None:
        """Record that a result is no longer here, whether it was moved or not."""
        if not self.bytes:
            return
        with self._lock:
            self.bytes -= self._moved.pop(item, 0)

    def _write(self, item: int, answer: Answer) -> None:
        payload = answer.payload
        if item not in self._moved or payload is None or payload.segment is None:
            return
        try:
            file = _copied(payload.segment)
        except (OSError, ConfigError) as error:
            if not self._refused:
                _log.warning("results.in_memory reason=%s", error)
            self._refused = True
            self.taken(item)
            return
        recycling.forget(payload.segment.fd)
        # It may be unpickled in another thread just now, from the memory that it came in.
        answer.payload = Payload(payload.parts, payload.inline, file, payload.stored, payload.trust)


def _copied(segment: Segment) -> Segment:
    directory = cache_entry("results")
    if shutil.disk_usage(directory).free < segment.size + LEFT_FREE:
        raise OSError(errno.ENOSPC, f"less than {LEFT_FREE + segment.size} bytes are free", str(directory))
    with tempfile.TemporaryFile(dir=directory) as file:
        file.write(segment.map())
        file.flush()
        return Segment(os.dup(file.fileno()), segment.size)
