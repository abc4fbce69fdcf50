"""Coroutines and async generators, driven from the plain thread that a call has."""

from __future__ import annotations

import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any

from skyward.node.worker.streams import Interrupted

if TYPE_CHECKING:
    import asyncio
    from types import FrameType

PATIENCE = 1.0
"""Seconds that a call has to begin to unwind, or its event loop to see that it is to stop, before it is interrupted."""


class LoopInterrupted(Interrupted, KeyboardInterrupt):
    """
    Unwind a call that runs an event loop.

    asyncio lets a KeyboardInterrupt through, wherever in its code it comes up; any other exception it logs and
    goes on.
    """


class Driver:
    """
    Drive one call's coroutine or async generator in an event loop that another thread can have it leave.

    It is cancelled, as asyncio does at Ctrl-C: an exception that is raised at the thread's next bytecode would come up
    in the loop's own code too, where a step of a task is lost with it, and what awaits that never ends.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancel: Callable[[], object] | None = None
        self._leaving = False
        self.notified = False
        """Whether the loop knows that it is to leave, or has left."""

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """
        Run a coroutine to its end.

        Raises:
            Interrupted: If it was cancelled because the call is to stop.
            Exception: What it raises.
        """
        import asyncio

        try:
            with asyncio.Runner() as runner:
                return self._step(runner, lambda: coroutine)
        finally:
            self.notified = True
            # One that never began would be complained about.
            coroutine.close()

    def items(self, stream: AsyncIterator[Any]) -> Iterator[Any]:
        """
        Yield what an async generator yields.

        Raises:
            Interrupted: If it was cancelled because the call is to stop.
            Exception: What it raises.
        """
        import asyncio

        with asyncio.Runner() as runner:
            try:
                while True:
                    try:
                        yield self._step(runner, stream.__anext__)
                    except StopAsyncIteration:
                        return
            finally:
                # Its own `finally` awaits what it likes, in the runner's end.
                self.notified = True

    def leave(self) -> None:
        """Cancel what is awaited, or will be; called in another thread."""
        with self._lock:
            self._leaving = True
            if self._cancel is not None:
                self._cancel()

    def _step(self, runner: asyncio.Runner, begin: Callable[[], Awaitable[Any]]) -> Any:
        from asyncio import CancelledError

        try:
            return runner.run(self._awaited(begin))
        except CancelledError:
            if self._leaving:
                raise Interrupted from None
            raise

    async def _awaited(self, begin: Callable[[], Awaitable[Any]]) -> Any:
        import asyncio

        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        with self._lock:
            if self._leaving:
                raise Interrupted
            self._cancel = lambda: loop.call_soon_threadsafe(self._notify, task)
        try:
            return await begin()
        finally:
            with self._lock:
                self._cancel = None

    def _notify(self, task: asyncio.Task[Any] | None) -> None:
        self.notified = True
        if task is not None:
            task.cancel()


def interruption(frame: FrameType | None) -> type[Interrupted]:
    """
    Return what unwinds a thread.

    Args:
        frame: What it runs now.

    >>> interruption(None).__name__
    'Interrupted'
    """
    while frame is not None:
        if frame.f_code.co_name == "run_forever" and frame.f_globals.get("__name__") == "asyncio.base_events":
            return LoopInterrupted
        frame = frame.f_back
    return Interrupted


def unwinds(thread: int) -> bool:
    """
    Return whether a thread handles an interrupt: it is in a `finally` or an `except` that this has brought it to.

    Args:
        thread: Its identifier.

    >>> try:
    ...     raise Interrupted
    ... except Interrupted:
    ...     unwinds(threading.get_ident())
    True
    >>> unwinds(threading.get_ident())
    False
    """
    handled: Any = sys._current_exceptions().get(thread)
    # Python 3.11 gives a triple.
    error = handled[1] if isinstance(handled, tuple) else handled
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, Interrupted):
            return True
        seen.add(id(error))
        error = error.__context__
    return False
