"""One operation: pieces that run side by side, progress, and the end of all of them at the first failure."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import TypeVar

from skyward_storage.keys import using_loop

__all__ = ["AT_ONCE", "Deadline", "Progress", "Stopped", "Transfer", "in_thread"]

T = TypeVar("T")

AT_ONCE = 10
"""Requests of one operation that are under way at the same time."""

LEAST_RATE = 16 * 1024
"""Bytes a second that a server has to take or send, or its connection counts as broken."""

Progress = Callable[[int, int, str], object]
"""Called with the bytes that are done, all bytes, and the object concerned; never twice at the same time."""


class Stopped(Exception):
    """Report that an operation was stopped while a piece of it ran."""


class Transfer:
    """
    Run the pieces of one operation.

    Args:
        progress: What is called after each piece; what it raises stops the operation.
    """

    def __init__(self, progress: Progress | None = None) -> None:
        self._progress = progress
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._cancelled = False
        self._done = 0
        self._done_of: dict[str, int] = {}
        self._total = 0

    def expect(self, size: int) -> None:
        """
        Count bytes that are to be transferred.

        Args:
            size: How many.
        """
        self._total += size

    def advance(self, size: int, key: str) -> None:
        """
        Count bytes that were transferred, or that are there already, and report that.

        Args:
            size: How many.
            key: The object that they are of.
        """
        with self._lock:
            self._done += size
            self._done_of[key] = self._done_of.get(key, 0) + size
            if self._progress is not None:
                self._progress(self._done, self._total, key)

    def restart(self, key: str) -> None:
        """
        Count what was transferred of an object as not transferred, because it begins again.

        Args:
            key: The object.
        """
        with self._lock:
            self._done -= self._done_of.pop(key, 0)

    def stop(self) -> None:
        """Stop what runs at its next step."""
        self._cancelled = True
        self._stopping.set()

    def check(self) -> None:
        """
        Raise if the operation was stopped.

        Raises:
            Stopped: If it was.
        """
        if self._stopping.is_set():
            raise Stopped

    def pause(self, seconds: float) -> None:
        """
        Wait, unless the operation is stopped meanwhile.

        Args:
            seconds: How long.

        Raises:
            Stopped: If it was stopped.
        """
        self._stopping.wait(seconds)
        self.check()

    def run(self, jobs: Sequence[Callable[[], T]]) -> list[T]:
        """
        Run pieces side by side, and return what they return, in their order.

        At the first failure, and at an interrupt, no other piece begins, and those that run are waited for.

        Args:
            jobs: The pieces.
        """
        if len(jobs) < 2:
            return [job() for job in jobs]
        pool = ThreadPoolExecutor(min(AT_ONCE, len(jobs)), thread_name_prefix="skyward-storage")
        try:
            futures = [pool.submit(copy_context().run, job) for job in jobs]
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            failed = [error for future in done if (error := future.exception()) is not None]
            if failed:
                raise failed[0]
            return [future.result() for future in futures]
        except BaseException:
            self._stopping.set()
            raise
        finally:
            # A piece that goes on would write to a file that is closed.
            pool.shutdown(wait=True, cancel_futures=True)
            if not self._cancelled:
                self._stopping.clear()


class Deadline:
    """
    Limit the time of one request by the bytes that it carries.

    Args:
        size: The bytes.
        timeout: Seconds that are given besides.
    """

    def __init__(self, size: int, timeout: float) -> None:
        self._limit = timeout + size / LEAST_RATE
        self._end = time.monotonic() + self._limit

    def check(self) -> None:
        """
        Raise if the time is over.

        Raises:
            TimeoutError: If it is.
        """
        if time.monotonic() > self._end:
            raise TimeoutError(f"less than {LEAST_RATE // 1024} KiB/s arrived for {self._limit:.0f} s")


async def in_thread(job: Callable[[Transfer], T], transfer: Transfer) -> T:
    """
    Do something that blocks in a thread, and stop it when it is not waited for any more.

    Args:
        job: What to do.
        transfer: The operation that it is.
    """
    with using_loop(asyncio.get_running_loop()):
        try:
            return await asyncio.to_thread(job, transfer)
        except asyncio.CancelledError:
            transfer.stop()
            raise
