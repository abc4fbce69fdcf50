"""Durable store of unacknowledged results, on the disk of a node: they outlive the agent."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import mmap
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from skyward.link.frames import HEADER, Parser
from skyward.link.messages import RESULT, Status
from skyward.link.order import sizes_of
from skyward.link.stored import head, tail
from skyward.link.wire import Wire

_log = logging.getLogger(__name__)

MOST_BYTES = 1 << 30
"""Bytes on disk at most; what is more stays in memory."""

PATIENCE = 1.0
"""Seconds for which a result may be on its way before it is stored."""

_PIECE = 1 << 20


class _StoredResult:
    """A result that is on its way."""

    __slots__ = ("at", "fds", "frame", "hold", "on_disk", "receipt", "size", "stored")

    def __init__(self, frame: bytes, fds: tuple[int, ...], hold: object, at: float) -> None:
        self.frame = frame
        self.fds = fds
        self.hold = hold
        self.at = at
        self.size = 0
        self.stored = False
        self.on_disk = False
        self.receipt: Callable[[], None] = lambda: None


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
        # One thread, so that a file is written before it is removed.
        self._thread = ThreadPoolExecutor(1, "result_store")
        self._looking: asyncio.TimerHandle | None = None
        self._over = False
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
            self._acknowledged(call, before)

    def send(self, frame: bytes, fds: tuple[int, ...], hold: object) -> None:
        """
        Send a result.

        Args:
            frame: Header and body.
            fds: Memory that goes with it.
            hold: The owner of the descriptors.
        """
        call, status, _ = RESULT.unpack_from(frame, HEADER.size)
        if call in self._streams or status == Status.STREAMED:
            self._streams.discard(call)
            self._link.send(frame, fds, hold)
            return
        self._kept[call] = kept = _StoredResult(frame, fds, hold, self._loop.time())
        kept.receipt = partial(self._acknowledged, call, kept)
        self._link.send(frame, fds, hold, kept.receipt)
        if not self._link.connected:
            self._store(call, kept)
        elif self._looking is None:
            self._looking = self._loop.call_later(self._patience, self._look)

    def save(self) -> bool:
        """Store whatever the client may not have, and wait until it is; returns whether anything is stored."""
        for call, kept in self._kept.items():
            self._store(call, kept)
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

    def _look(self) -> None:
        """Store what has been on its way for too long."""
        self._looking = None
        before = self._loop.time() - self._patience
        waiting = False
        for call, kept in self._kept.items():
            if not kept.stored and (kept.at <= before or not self._link.connected):
                self._store(call, kept)
            waiting = waiting or not kept.stored
        if waiting and not self._over:
            self._looking = self._loop.call_later(self._patience, self._look)

    def _store(self, call: int, kept: _StoredResult) -> None:
        if kept.stored or self._over:
            return
        sizes = sizes_of(Parser().feed(kept.frame)[0]) if kept.fds else []
        size = len(kept.frame) + sum(sizes)
        kept.stored = True
        if self.stored + size > self._most:
            _log.warning("result_store.full call=%x bytes=%d: it stays in memory", call, size)
            return
        kept.size = size
        self.stored += size
        # Of its own, because the client may acknowledge the result meanwhile.
        fds = [os.dup(fd) for fd in kept.fds]
        self._thread.submit(self._write, call, kept, fds, sizes)
        kept.hold, kept.fds = None, ()

    def _written(self, call: int, kept: _StoredResult, buffers: list[memoryview] | None) -> None:
        """Send a result from the disk, which has it now; None if it has not."""
        if self._over:
            return
        if self._kept.get(call) is kept:
            if buffers is None:
                self.stored -= kept.size
                kept.size = 0
            else:
                kept.on_disk = True
                self.on_disk += kept.size
                self._link.replace(kept.receipt, buffers)
        self._on_stored()

    def _acknowledged(self, call: int, kept: _StoredResult) -> None:
        if self._kept.get(call) is not kept:
            # It was tried again meanwhile; what is stored is a later result.
            return
        del self._kept[call]
        if kept.on_disk:
            self.on_disk -= kept.size
        if kept.size:
            self.stored -= kept.size
            with contextlib.suppress(RuntimeError):
                self._thread.submit(_remove, self._path(call))

    def _path(self, call: int) -> str:
        return os.path.join(self._directory, f"{call:016x}")

    # In the thread.

    def _write(self, call: int, kept: _StoredResult, fds: Sequence[int], sizes: Sequence[int]) -> None:
        path, frame = self._path(call), kept.frame
        hidden = os.path.join(self._directory, f".{os.path.basename(path)}")
        buffers = None
        try:
            os.makedirs(self._directory, mode=0o700, exist_ok=True)
            with open(hidden, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
                begin = head(frame, sum(sizes))
                file.write(begin)
                checksum = 0
                for piece in _pieces(frame, fds, sizes):
                    if self._over:
                        return
                    checksum = zlib.crc32(piece, checksum)
                    file.write(piece)
                file.write(tail(checksum))
                file.flush()
                os.fsync(file.fileno())
            os.rename(hidden, path)
            _sync_directory(self._directory)
            buffers = _mapped(path, len(begin) + len(frame), sizes)
        except OSError as error:
            _log.warning("result_store.not_stored path=%s: %s", path, error)
            _remove(hidden)
            _remove(path)
        finally:
            for fd in fds:
                os.close(fd)
        # The loop may be closed by now.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._written, call, kept, buffers)


def _mapped(path: str, at: int, sizes: Sequence[int]) -> list[memoryview]:
    """Map the buffers of a stored result: pages of a file need no memory when it is scarce, those of a segment do."""
    buffers: list[memoryview] = []
    if sizes:
        with open(path, "rb") as file:
            whole = memoryview(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
        for size in sizes:
            buffers.append(whole[at : at + size])
            at += size
    return buffers


def _pieces(frame: bytes, fds: Sequence[int], sizes: Sequence[int]) -> Iterator[bytes]:
    yield frame
    for fd, size in zip(fds, sizes, strict=True):
        at = 0
        while at < size:
            piece = os.pread(fd, min(_PIECE, size - at), at)
            if not piece:
                raise OSError(f"a segment ends after {at} bytes of {size}")
            at += len(piece)
            yield piece


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def _sync_directory(path: str) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
