"""A loop whose time is not that of the world: it goes on only when nothing is left to do, and then at once."""

from __future__ import annotations

import asyncio
import contextlib
import selectors
import threading
from collections.abc import Callable, Iterator
from typing import Any

_WORKING, _TRAVELLING = 0.01, 0.001


class VirtualLoop(asyncio.SelectorEventLoop):
    """
    Run at once what would wait, in the order in which it would happen.

    Sockets, threads and processors take no time.

    Args:
        sockets: Whether anything travels from socket to socket in it, which takes the kernel a moment.
        gated: Whether time stands still but for the blocks of `passing`.
    """

    def __init__(self, *, sockets: bool = True, gated: bool = False) -> None:
        self.sockets = sockets
        self._now = 0.0
        self._gated = gated
        self._passing = 0
        self._elsewhere = 0
        super().__init__(_Selector(self))

    def time(self) -> float:
        """Tell the time, in seconds."""
        return self._now

    def pass_by(self, seconds: float) -> None:
        """Let time go on."""
        self._now += seconds

    @contextlib.contextmanager
    def passing(self) -> Iterator[None]:
        """Let time pass within the block, in which a task waits."""
        self._passing += 1
        try:
            yield
        finally:
            self._passing -= 1

    @property
    def stands_still(self) -> bool:
        """Tell whether no task waits, so that it is no later when the next thing happens."""
        return self._gated and not self._passing

    @property
    def waits_for_threads(self) -> bool:
        """Tell whether threads work that the loop waits for."""
        return self._elsewhere > 0 or any(thread.name == "skyward-blocking" for thread in threading.enumerate())

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """Have a thread do something, for which time stands still."""
        future: asyncio.Future[Any] = super().run_in_executor(executor, func, *args)
        self._elsewhere += 1
        future.add_done_callback(self._came_back)
        return future

    def _came_back(self, future: asyncio.Future[Any]) -> None:
        self._elsewhere -= 1


class _Selector(selectors.DefaultSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[Any]:
        # Asked first: a thread that ends from now on has rung by the time of the last look at what is ready.
        threads = timeout != 0 and self._loop.waits_for_threads
        ready: list[Any] = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if timeout is None or self._loop.stands_still:
            return list(super().select(None))
        if threads:
            return list(super().select(_WORKING))
        # What goes from socket to socket may take the kernel a moment.
        if self._loop.sockets and (ready := list(super().select(_TRAVELLING))):
            return ready
        self._loop.pass_by(timeout)
        return []
