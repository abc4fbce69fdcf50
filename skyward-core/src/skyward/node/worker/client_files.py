"""How a worker has the client keep files: numbered requests, a few of them under way at once."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from skyward.errors import TransportError, UsageError
from skyward.link.frames import Kind, encode
from skyward.link.keeping import WINDOW, KeepMessage, decode_kept, encode_kept
from skyward.link.payload import Payload

__all__ = ["PATIENCE", "Keeping", "PendingAnswer"]

PATIENCE: Final = 600.0
"""Seconds that a task waits for an answer; a link that is lost meanwhile may come back."""

_LOOK: Final = 0.5
"""Seconds after which a thread that waits lets an interrupt through."""


class PendingAnswer:
    """What was asked, and its answer."""

    __slots__ = ("_answer", "_there")

    def __init__(self) -> None:
        self._there = threading.Event()
        self._answer: KeepMessage | None = None

    @property
    def answered(self) -> bool:
        """Return whether the answer is there."""
        return self._there.is_set()

    def settle(self, answer: KeepMessage) -> None:
        """Take the answer."""
        self._answer = answer
        self._there.set()

    def result(self) -> KeepMessage:
        """
        Wait for the answer.

        Raises:
            OSError: If the client could not do it.
            TransportError: If it does not answer in time.
        """
        end = time.monotonic() + PATIENCE
        while not self._there.wait(_LOOK):
            if time.monotonic() > end:
                raise _silent()
        assert self._answer is not None
        if (why := self._answer.head.get("error")) is not None:
            number = self._answer.head.get("errno")
            raise OSError(number if isinstance(number, int) else errno.EIO, str(why))
        return self._answer


class Keeping:
    """
    Ask the client; any thread of the worker's own process may.

    Args:
        send: Sends a frame to the agent, with what travels with it.
    """

    def __init__(self, send: Callable[[bytes, Payload], None]) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._room = threading.Semaphore(WINDOW)
        self._asked: dict[int, PendingAnswer] = {}
        # Another process may have asked in this one's place, and is answered still.
        self._number = int.from_bytes(os.urandom(7), "little")
        self._process = os.getpid()

    def ask(self, head: dict[str, Any], data: bytes = b"", patience: float = PATIENCE) -> PendingAnswer:
        """
        Send a request, once fewer are under way than may be.

        Args:
            head: What is to be done, as `link/keeping.py` says.
            data: Bytes to keep.
            patience: Seconds to wait until it may be sent.

        Raises:
            TransportError: If the client does not answer in time what it was asked before.
            UsageError: In a process that the worker forked.
        """
        if os.getpid() != self._process:
            raise UsageError(
                "A process that a task forked cannot reach the client.",
                hint="Save and load in the task's own process, or in a folder: to='/mnt/data'.",
            )
        end = time.monotonic() + patience
        while not self._room.acquire(timeout=_LOOK):
            if time.monotonic() > end:
                raise _silent()
        request, number = PendingAnswer(), 0
        try:
            with self._lock:
                self._number += 1
                number = self._number
                self._asked[number] = request
            body, payload = encode_kept(number, head, data)
            self._send(encode(Kind.KEEP, body, fds=len(payload.fds)), payload)
        except BaseException:
            self._asked.pop(number, None)
            self._room.release()
            raise
        return request

    def received(self, body: bytes, fds: Sequence[int]) -> None:
        """
        Take an answer; one that another process asked for is passed over.

        Raises:
            ProtocolError: If it is malformed.
        """
        answer = decode_kept(body, fds)
        with self._lock:
            request = self._asked.pop(answer.number, None)
        if request is not None:
            # Also where nothing waits for it any more.
            self._room.release()
            request.settle(answer)


def _silent() -> TransportError:
    return TransportError(
        f"The client did not answer within PATIENCE, {PATIENCE:g} s: it may be away, or its disk does not take more.",
        hint="Save to a folder or to storage that the nodes reach by themselves, with to=.",
    )
