"""Log file of guardians, written in a thread of its own, so that a slow disk delays no termination."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from pathlib import Path

from skyward import private
from skyward.engine.guardian.journal import journal_path
from skyward.errors import ConfigError

PATIENCE = 5.0
"""Seconds that a guardian which has nothing left to do waits for its last lines to be written."""

_MOST = 1000


class GuardianLog:
    """
    Write lines into the log of guardians, `guardian.log` beside the journal, in a thread of its own.

    A disk that is full, a file that cannot be opened and a write that never returns cost lines, and nothing else.

    Args:
        sender: Prefix of each line, after the time.
    """

    def __init__(self, sender: str) -> None:
        self._sender = sender
        self._lines: queue.Queue[str | None] = queue.Queue(_MOST)
        self._thread: threading.Thread | None = None

    def note(self, text: str) -> None:
        """
        Queue a line to be written; never raises and never waits.

        Args:
            text: What happened.
        """
        # Broad, because nothing may keep a guardian from ending machines: no home, no thread, no memory, a full queue.
        with contextlib.suppress(Exception):
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S%z")
            self._lines.put_nowait(f"{stamp} {self._sender}: {text}\n")
            if self._thread is None:
                path = journal_path().with_name("guardian.log")
                thread = threading.Thread(target=self._run, args=(path,), name="skyward-guardian-log", daemon=True)
                thread.start()
                self._thread = thread

    def close(self, patience: float = PATIENCE) -> None:
        """
        Wait until all lines are written, but not for long.

        Args:
            patience: Seconds.
        """
        if self._thread is None:
            return
        until = time.monotonic() + patience
        with contextlib.suppress(queue.Full):
            self._lines.put(None, timeout=patience)
            self._thread.join(max(0.0, until - time.monotonic()))

    def _run(self, path: Path) -> None:
        while (line := self._lines.get()) is not None:
            with contextlib.suppress(OSError, ConfigError):
                _append(path, line.encode(errors="backslashreplace"))


def _append(path: Path, line: bytes) -> None:
    private.directory(path.parent)
    descriptor = private.opened(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        # One write of one line: several guardians write at the same time.
        os.write(descriptor, line)
    finally:
        os.close(descriptor)
