"""The one event loop of a client process, in a thread of its own."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future, wait
from typing import Any, TypeVar

from skyward.errors import PoolClosedError
from skyward.link.channel import Batch

T = TypeVar("T")

AT_ONCE = 0.01
"""Seconds for which what was posted is done in one go, before the loop looks at sockets and timers again."""

AWAKE_EVERY = 0.5
"""Seconds after which a thread that waits for the loop looks for signals."""


class EngineLoop:
    """
    Run the engine's side of every pool of this process.

    Args:
        make: Makes the event loop, whose clock the engine goes by.
    """

    def __init__(self, make: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop) -> None:
        self.loop = make()
        self.batch = Batch(self.loop)
        self._posted: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        self._woken = False
        # Cheaper than the loop's own way to be woken, at both ends: calls pass here one by one.
        self._bell, self._rings = socket.socketpair()
        for end in (self._bell, self._rings):
            end.setblocking(False)
        self.loop.add_reader(self._rings, self._on_ring)
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._run, name="skyward-engine", daemon=True)
        self._thread.start()

    def post(self, do: Callable[..., object], *args: Any) -> None:
        """Post a call to the loop; many posts cost one wake-up."""
        self.check()
        self._posted.append((do, args))
        if not self._woken:
            self._ring()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop and wait for its result; an interrupt of the caller cancels it, and waits."""
        self.check()
        ended: Future[T] = Future()
        tasks: list[asyncio.Task[T]] = []

        def start() -> None:
            task = self.loop.create_task(coroutine)
            tasks.append(task)
            task.add_done_callback(lambda task: _copy(task, ended))

        def stop() -> None:
            for task in tasks:
                task.cancel()
            if not tasks:
                # The interrupt came before it was posted.
                coroutine.close()
                ended.set_exception(CancelledError())

        try:
            self.post(start)
            while not ended.done():
                # A signal that another thread took is raised here as soon as this one wakes.
                wait([ended], AWAKE_EVERY)
            return ended.result()
        except BaseException:
            if not ended.done():
                self.post(stop)
                ended.exception()
            raise

    async def caught_up(self) -> None:
        """Wait in the loop until everything that was posted before is done."""
        done = asyncio.Event()
        self.post(done.set)
        await done.wait()

    def check(self) -> None:
        """
        Refuse to be used after a fork.

        Raises:
            PoolClosedError: In a child process that was forked from the client.
        """
        if not self.is_here:
            raise PoolClosedError(
                "This process was forked from the one that opened the pool and cannot use it. "
                "Open a pool in this process, or dispatch in the parent."
            )

    @property
    def is_here(self) -> bool:
        """Return whether the loop's thread lives in this process; a fork does not take it along."""
        return os.getpid() == self._pid

    def close(self) -> None:
        """End the loop and its thread; for a program that made a loop of its own, and has closed its pools."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()
        self._bell.close()
        self._rings.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def _ring(self) -> None:
        self._woken = True
        self._bell.send(b"\0")

    def _on_ring(self) -> None:
        # One byte at most is on its way: none is sent until this one was taken.
        self._rings.recv(1)
        self._woken = False
        posted = self._posted
        until = time.perf_counter() + AT_ONCE
        self.batch.open()
        try:
            while posted and time.perf_counter() < until:
                do, args = posted.popleft()
                try:
                    do(*args)
                except Exception as error:
                    self.loop.call_exception_handler({"message": f"the engine failed in {do}", "exception": error})
        finally:
            self.batch.flush()
            if posted and not self._woken:
                self._ring()


def _copy(task: asyncio.Task[T], future: Future[T]) -> None:
    if task.cancelled():
        future.set_exception(CancelledError())
    elif (error := task.exception()) is not None:
        future.set_exception(error)
    else:
        future.set_result(task.result())


_current: list[EngineLoop] = []
_making = threading.Lock()


def engine_loop() -> EngineLoop:
    """Return this process's engine loop; started on first use, again in a forked child."""
    with _making:
        if not _current or not _current[0].is_here:
            _current[:] = [EngineLoop()]
        return _current[0]
