"""A loop whose time is not that of the world: it goes on only when nothing is left to do, and then at once."""

from __future__ import annotations

import asyncio
import selectors
import threading
from collections.abc import Callable
from typing import Any

_WORKING, _TRAVELLING = 0.01, 0.001


class VirtualLoop(asyncio.SelectorEventLoop):
    """
    Run at once what would wait, in the order in which it would happen.

    Sockets, threads and processors take no time.

    Args:
        travelling: Seconds of the world that bytes may take from socket to socket; 0 where none are used.
    """

    def __init__(self, *, travelling: float = _TRAVELLING) -> None:
        self._now = 0.0
        self._elsewhere = 0
        super().__init__(_Selector(self, travelling))

    def time(self) -> float:
        """Tell the time, in seconds."""
        return self._now

    def pass_by(self, seconds: float) -> None:
        """Let time go on."""
        self._now += seconds

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
    def __init__(self, loop: VirtualLoop, travelling: float) -> None:
        super().__init__()
        self._loop = loop
        self._travelling = travelling

    def select(self, timeout: float | None = None) -> list[Any]:
        ready: list[Any] = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if timeout is None:
            return list(super().select(None))
        if self._loop.waits_for_threads:
            return list(super().select(_WORKING))
        # What goes from socket to socket may take the kernel a moment.
        if self._travelling and (ready := list(super().select(self._travelling))):
            return ready
        self._loop.pass_by(timeout)
        return []
