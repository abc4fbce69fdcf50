"""Durable store of unacknowledged results, on the disk of a node: they outlive the agent."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from skyward.link.frames import HEADER, Parser
from skyward.link.messages import RESULT, Status
from skyward.link.order import sizes_of
from skyward.link.wire import Wire
from skyward.node.data.result_files import remove, write_result, write_results

_log = logging.getLogger(__name__)

MOST_BYTES = 1 << 30
"""Bytes on disk at most; what is more stays in memory."""

DELIVERED = 4096
"""Attempts of which it is known for longer than their results that the client has these, at most."""

PATIENCE = 1.0
"""Seconds for which a result may be on its way before it is stored."""

SMALL = 16 << 10
"""Bytes of a result that is stored in one file with others, with one sync for all that came meanwhile."""

TOGETHER_RESULTS = 1024
"""Results in one file at most."""

TOGETHER_BYTES = 1 << 20
"""Bytes of the results in one file at most: as long as one of them is wanted, all are on the disk."""

_FINAL = frozenset((Status.OK, Status.RAISED))
"""How an attempt ends that is never begun again: its result may stay in a file with others when it is acknowledged."""


class _StoredResult:
    """A result that is on its way."""

    __slots__ = (
        "at",
        "buffers",
        "call",
        "fds",
        "file",
        "frame",
        "gone",
        "hold",
        "on_disk",
        "receipt",
        "shares",
        "size",
        "stored",
    )

    def __init__(self, call: int, frame: bytes, fds: tuple[int, ...], hold: object, at: float) -> None:
        self.call = call
        self.frame = frame
        self.fds = fds
        self.hold = hold
        self.at = at
        # Those of its file, once it has one of its own.
        self.buffers: list[memoryview] | None = None
        self.size = 0
        self.stored = False
        self.on_disk = False
        # Whether the client has it; read in the thread.
        self.gone = False
        # Whether it is to be in a file with others, and that file once it is there.
        self.shares = False
        self.file: _SharedFile | None = None
        self.receipt: Callable[[], None] = lambda: None


class _SharedFile:
    """A file with several results, of which some are still wanted."""

    __slots__ = ("path", "size", "wanted")

    def __init__(self, path: str, size: int, wanted: int) -> None:
        self.path = path
        self.size = size
        self.wanted = wanted


class ResultStore:
    """
    Send results, and store those that the client does not acknowledge at once.

    Args:
        loop: The agent's loop.
        link: The way to the client.
        directory: Where they are stored; made when the first one is.
        most: Bytes that may be stored.
        on_stored: Called when a result is on the disk, or cannot be.
        patience: Seconds for which a result may be on its way before it is stored.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        link: Wire,
        directory: str,
        *,
        on_stored: Callable[[], None] = lambda: None,
        most: int = MOST_BYTES,
        patience: float = PATIENCE,
    ) -> None:
        self._loop = loop
        self._link = link
        self._directory = directory
        self._on_stored = on_stored
        self._most = most
        self._patience = patience
        self._kept: dict[int, _StoredResult] = {}
        self._streams: set[int] = set()
        # Those that are to share a file; the thread takes them, and is asked to when the first one is there.
        self._small: deque[_StoredResult] = deque()
        self._asked = False
        # One thread, so that a file is written before it is removed.
        self._thread = ThreadPoolExecutor(1, "result_store")
        self._looking: asyncio.TimerHandle | None = None
        self._over = False
        # For the next client, where this one dies: which of its calls have no result here because it has that.
        self.delivered: deque[int] = deque(maxlen=DELIVERED)
        self.stored = 0
        self.on_disk = 0

    def begins(self, call: int, *, streams: bool) -> None:
        """
        Record that an attempt of a call begins.

        Args:
            call: The attempt's id; one that was sent before is the same attempt, such as one that was returned.
            streams: Whether it gives items: its end is worth nothing without them, and is not stored.
        """
        if streams:
            self._streams.add(call)
        before = self._kept.get(call)
        if before is not None:
            # A client that sends an attempt again has its result, even if that is not acknowledged yet.
            self._acknowledged(before)

    def send(self, frame: bytes, fds: tuple[int, ...], hold: object) -> None:
        """
        Send a result.

        Args:
            frame: Header and body.
            fds: Memory that goes with it.
            hold: The owner of the descriptors.
        """
        call, status, _, _ = RESULT.unpack_from(frame, HEADER.size)
        if call in self._streams or status == Status.STREAMED:
            self._streams.discard(call)
            self._link.send(frame, fds, hold)
            return
        self._kept[call] = kept = _StoredResult(call, frame, fds, hold, self._loop.time())
        self._send(kept)
        if not self._link.connected:
            self._store(kept)
        elif self._looking is None:
            self._looking = self._loop.call_later(self._patience, self._look)

    def send_failed(self, frame: bytes) -> None:
        """
        Send what became of an attempt whose process ended; it is not stored, as it would be over with this node.

        Args:
            frame: The header and body of its RESULT.
        """
        call, _, _, _ = RESULT.unpack_from(frame, HEADER.size)
        self._streams.discard(call)
        self._kept[call] = kept = _StoredResult(call, frame, (), None, self._loop.time())
        kept.stored = True
        self._send(kept)

    @property
    def calls(self) -> list[int]:
        """List the attempts whose results the client may not have."""
        return list(self._kept)

    def send_again(self) -> None:
        """Send all that was not acknowledged to another client, which has none of it."""
        for kept in list(self._kept.values()):
            self._send(kept)

    def save(self) -> bool:
        """Store whatever the client may not have, and wait until it is; returns whether anything is stored."""
        for kept in self._kept.values():
            self._store(kept)
        self._thread.shutdown(wait=True)
        self._over = True
        with contextlib.suppress(FileNotFoundError):
            return bool(os.listdir(self._directory))
        return False

    def close(self) -> None:
        """Store no more; what is stored is left to what removes the node's directory."""
        self._over = True
        if self._looking is not None:
            self._looking.cancel()
        self._thread.shutdown(wait=True, cancel_futures=True)

    def _send(self, kept: _StoredResult) -> None:
        kept.receipt = partial(self._acknowledged, kept)
        if kept.buffers is None:
            self._link.send(kept.frame, kept.fds, kept.hold, kept.receipt)
        else:
            self._link.send_mapped(kept.frame, kept.buffers, kept.receipt)

    def _look(self) -> None:
        """Store what has been on its way for too long."""
        self._looking = None
        before = self._loop.time() - self._patience
        waiting = False
        for kept in self._kept.values():
            if kept.at > before and self._link.connected:
                # Those behind it came later.
                waiting = True
                break
            self._store(kept)
        if waiting and not self._over:
            self._looking = self._loop.call_later(self._patience, self._look)

    def _store(self, kept: _StoredResult) -> None:
        if kept.stored or self._over:
            return
        sizes = sizes_of(Parser().feed(kept.frame)[0]) if kept.fds else []
        size = len(kept.frame) + sum(sizes)
        kept.stored = True
        if self.stored + size > self._most:
            _log.warning("result_store.full call=%x bytes=%d: it stays in memory", kept.call, size)
            return
        kept.size = size
        self.stored += size
        if not sizes and size <= SMALL and RESULT.unpack_from(kept.frame, HEADER.size)[1] in _FINAL:
            kept.shares = True
            self._small.append(kept)
            if not self._asked:
                self._asked = True
                self._thread.submit(self._write_small)
            return
        # Of its own, because the client may acknowledge the result meanwhile.
        fds = [os.dup(fd) for fd in kept.fds]
        self._thread.submit(self._write, kept, fds, sizes)

    def _written(self, kept: _StoredResult, buffers: list[memoryview] | None) -> None:
        """Send a result from the disk, which has it now; None if it has not."""
        if self._over:
            return
        if not kept.gone:
            if buffers is None:
                self.stored -= kept.size
                kept.size = 0
            else:
                kept.on_disk = True
                self.on_disk += kept.size
                kept.buffers, kept.hold, kept.fds = buffers, None, ()
                self._link.replace(kept.receipt, buffers)
        self._on_stored()

    def _written_together(self, taken: Sequence[_StoredResult], path: str, size: int) -> None:
        """
        Record small results that share a file now.

        Args:
            taken: Those that were to, of which the client may have some.
            path: The file.
            size: Bytes of those in it; 0 if there is none.
        """
        if self._over:
            return
        wanted = [kept for kept in taken if not kept.gone]
        self.stored -= sum(kept.size for kept in taken)
        if not size:
            for kept in wanted:
                kept.size = 0
        elif not wanted:
            self._remove(path)
        else:
            self.stored += size
            file = _SharedFile(path, size, len(wanted))
            for kept in wanted:
                kept.file, kept.on_disk = file, True
                self.on_disk += kept.size
        self._on_stored()

    def _acknowledged(self, kept: _StoredResult) -> None:
        if kept.gone:
            # It was tried again meanwhile; what is stored is a later result.
            return
        kept.gone = True
        self.delivered.append(kept.call)
        del self._kept[kept.call]
        if kept.on_disk:
            self.on_disk -= kept.size
        if kept.file is not None:
            kept.file.wanted -= 1
            if not kept.file.wanted:
                self.stored -= kept.file.size
                self._remove(kept.file.path)
        elif kept.size and not kept.shares:
            self.stored -= kept.size
            self._remove(self._path(kept.call))

    def _path(self, call: int) -> str:
        return os.path.join(self._directory, f"{call:016x}")

    def _remove(self, path: str) -> None:
        with contextlib.suppress(RuntimeError):
            self._thread.submit(remove, path)

    # In the thread.

    def _goes_on(self) -> bool:
        return not self._over

    def _write(self, kept: _StoredResult, fds: Sequence[int], sizes: Sequence[int]) -> None:
        path, buffers = self._path(kept.call), None
        try:
            buffers = write_result(path, kept.frame, fds, sizes, self._goes_on)
        except OSError as error:
            _log.warning("result_store.not_stored path=%s: %s", path, error)
        finally:
            for fd in fds:
                os.close(fd)
        self._report(self._written, kept, buffers)

    def _write_small(self) -> None:
        # Before the look at what there is: a result that comes from now on asks again.
        self._asked = False
        while taken := self._take_small():
            there = [kept for kept in taken if not kept.gone]
            size = sum(kept.size for kept in there)
            path = f"{self._path(taken[0].call)}-{len(taken)}"
            try:
                if there and not write_results(path, [kept.frame for kept in there], self._goes_on):
                    return
            except OSError as error:
                _log.warning("result_store.not_stored path=%s results=%d: %s", path, len(there), error)
                size = 0
            self._report(self._written_together, taken, path, size)

    def _take_small(self) -> list[_StoredResult]:
        """Take as many small results as may share a file."""
        taken: list[_StoredResult] = []
        size = 0
        while self._small and len(taken) < TOGETHER_RESULTS and size < TOGETHER_BYTES:
            taken.append(self._small.popleft())
            size += taken[-1].size
        return taken

    def _report(self, do: Callable[..., None], *args: object) -> None:
        # The loop may be closed by now.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(do, *args)
