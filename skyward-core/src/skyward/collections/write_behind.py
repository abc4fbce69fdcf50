"""`consistency="eventual"`: writes are sent in the background, in order, and reads are at most a second old."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from skyward.collections.store_client import StoreClient
from skyward.collections.thread_line import Word
from skyward.errors import SkywardError, StoreLostError

__all__ = ["RecentReads", "WriteBehind"]

T = TypeVar("T")

GATHER_S = 0.02
"""For how long writes are gathered; with the round trip they are there within 50 ms."""

STALE_S = 1.0
"""Age at which a read is repeated."""

BATCH_WRITES = 1000
BATCH_BYTES = 8 << 20
MOST_WAITING = 20_000
"""Writes that may wait; more of them wait for the store."""

FLUSH_TIMEOUT_S = 120.0
REMEMBERED = 10_000
"""Reads that are kept before those that are too old are removed."""


class WriteBehind:
    """
    Send writes in the background, in the order in which they were made.

    An error is raised by the next operation, and the writes of its batch are lost.
    """

    def __init__(self, store: StoreClient) -> None:
        self._store = store
        self._waiting: deque[tuple[Word, ...]] = deque()
        self._made = 0
        self._done = 0
        self._hurry = False
        self._ended = False
        self._error: SkywardError | None = None
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def send(self, *commands: tuple[Word, ...]) -> None:
        """
        Send commands soon.

        Raises:
            SkywardError: Why earlier ones could not be carried out.
        """
        with self._changed:
            self._raise()
            self._changed.wait_for(lambda: len(self._waiting) < MOST_WAITING or self._ended, FLUSH_TIMEOUT_S)
            self._waiting.extend(commands)
            self._made += len(commands)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._write, name="skyward-write-behind", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def check(self) -> None:
        """Raise why a write could not be carried out."""
        if self._error is not None:
            with self._changed:
                self._raise()

    def flush(self) -> None:
        """
        Wait until what was sent is carried out.

        Raises:
            SkywardError: Why it was not.
        """
        with self._changed:
            made = self._made
            if self._done < made:
                self._hurry = True
                self._changed.notify_all()
                if not self._changed.wait_for(lambda: self._done >= made, FLUSH_TIMEOUT_S):
                    raise StoreLostError(f"Writes of collections are not in their store after {FLUSH_TIMEOUT_S:.0f} s.")
            self._raise()

    def end(self) -> None:
        """
        Flush, and stop the thread.

        Raises:
            SkywardError: Why a write could not be carried out.
        """
        try:
            self.flush()
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def _raise(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _write(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._ended)
                if not self._waiting:
                    return
                self._changed.wait_for(
                    lambda: self._hurry or self._ended or len(self._waiting) >= BATCH_WRITES, GATHER_S
                )
                batch = _first(self._waiting)
            error: SkywardError | None = None
            try:
                self._store.run_once("batch", (), [word for command in batch for word in (len(command), *command)])
            except SkywardError as raised:
                error = raised
            with self._changed:
                for _ in batch:
                    self._waiting.popleft()
                self._done += len(batch)
                self._error = self._error or error
                self._hurry = self._hurry and bool(self._waiting)
                self._changed.notify_all()


def _first(waiting: Sequence[tuple[Word, ...]]) -> list[tuple[Word, ...]]:
    """Return the commands that go together."""
    found: list[tuple[Word, ...]] = []
    size = 0
    for command in waiting:
        if found and (len(found) >= BATCH_WRITES or size >= BATCH_BYTES):
            break
        found.append(command)
        size += sum(len(word) for word in command if isinstance(word, bytes))
    return found


class RecentReads(Generic[T]):
    """
    Remember reads for a second, and the writes of this process with them.

    Args:
        writes: What has to be carried out before what was written here is read again.
    """

    def __init__(self, writes: WriteBehind) -> None:
        self._writes = writes
        self._found: dict[bytes, tuple[T, float]] = {}
        self._lock = threading.Lock()

    def get(self, field: bytes, read: Callable[[], T]) -> T:
        """Return what was read or written in the last second, or read it."""
        self._writes.check()
        before = self._found.get(field)
        if before is not None:
            if time.monotonic() - before[1] < STALE_S:
                return before[0]
            self._writes.flush()
        at = time.monotonic()
        value = read()
        with self._lock:
            # What was written meanwhile is newer.
            if (now := self._found.get(field)) is not None and now is not before:
                return now[0]
            self._found[field] = (value, at)
            self._prune(at)
        return value

    def set(self, field: bytes, value: T) -> None:
        """Record what is written."""
        with self._lock:
            at = time.monotonic()
            self._found[field] = (value, at)
            self._prune(at)

    def change(self, field: bytes, value: T) -> None:
        """Change what is remembered of a read, which gets no younger by it."""
        with self._lock:
            at = self._found[field][1] if field in self._found else time.monotonic()
            self._found[field] = (value, at)

    def forget(self) -> None:
        """Forget all of it."""
        with self._lock:
            self._found.clear()

    def _prune(self, now: float) -> None:
        if len(self._found) > REMEMBERED:
            # Those of writes that wait are younger, or are flushed before they are missed.
            young = {field: kept for field, kept in self._found.items() if now - kept[1] < STALE_S}
            if len(young) < REMEMBERED:
                self._found = young
