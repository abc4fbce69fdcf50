"""
A pool as an executor of the standard library: `pool.executor()`.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import itertools
import queue
import threading
import time
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, InvalidStateError
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from skyward.engine.calls.waiters import announce_cancelled
from skyward.errors import PoolClosedError
from skyward.function import Function, as_function
from skyward.pending import PendingFunction

if TYPE_CHECKING:
    from skyward.engine.calls.answer import Answer
    from skyward.engine.calls.call import Call
    from skyward.engine.pool.running import Running
    from skyward.link.payload import Payload

P = ParamSpec("P")
T = TypeVar("T")

_FUNCTIONS = 64
"""Plain functions that an executor knows again, so that each is captured once and not for each call."""


class PoolExecutor(concurrent.futures.Executor):
    """
    Run what is submitted in the slots of a pool; made by `pool.executor()`.

    It behaves as the executors of the standard library do: results are unpickled and callbacks run in a thread of its
    own, `cancel()` of a future stops a call that has not begun and no other, `map` sends all calls at
    once unless it has a `buffersize`.
    Where the pool is closed, `submit` raises BrokenExecutor, and futures that were not done have a PoolClosedError.

    Args:
        running: The open pool.
    """

    def __init__(self, running: Running) -> None:
        from skyward.engine.calls.posting import Posting

        self._running = running
        self._lock = threading.Lock()
        self._shut = False
        self._landing = _Landing(running)
        self._posting = Posting(running.engine, idle=self._landing.idle, submit=self._landing.send)
        self._functions: OrderedDict[Any, Function[..., Any]] = OrderedDict()
        # The calls of one that is deleted run to their end, as those of the standard library do.
        weakref.finalize(self, self._landing.leave).atexit = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> concurrent.futures.Future[T]:
        """
        Send a call to the pool.

        Args:
            fn: What is called; need not be decorated.
            args: Positional arguments.
            kwargs: Keyword arguments.

        Raises:
            RuntimeError: If the executor was shut down.
            BrokenExecutor: If the pool is closed, or was opened by another process.
            SerializationError: If an argument cannot be pickled.
        """
        with self._lock:
            if self._shut:
                raise RuntimeError("cannot schedule new futures after shutdown")
            if self._running.state.closing:
                raise BrokenExecutor(f"The pool {self._running.name!r} is closed.")
            function = self._function(fn)
            pending = PendingFunction(function, args, kwargs, function.timeout, function.retries)
            future = _Task(self._running)
            try:
                if function.streams:
                    from skyward.engine.calls import operations

                    future.set_result(operations.open_stream(self._running, pending))
                    return future
                future.call = self._running.maker.call(pending, _Sink(self._landing, future))
                self._landing.expect(future)
                self._posting.put(future.call)
            except PoolClosedError as error:
                raise BrokenExecutor(str(error)) from error
        return future

    def map(
        self,
        fn: Callable[..., T],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
        buffersize: int | None = None,
    ) -> Iterator[T]:
        """
        Run a function once for each item, or for those of several iterables side by side; the shortest ends it.

        Args:
            fn: What is called.
            iterables: One for each parameter.
            timeout: Seconds, from now on, in which a result has to come; None for no limit.
            chunksize: Without effect, because calls are sent many at a time anyway; at least 1.
            buffersize: How many items may be pulled whose results were not taken; None pulls all of them at once.

        Returns:
            An iterator over results in the order of the items; one that is deleted cancels the other calls.

        Raises:
            ValueError: If `chunksize` or `buffersize` is less than 1.
            TypeError: If `buffersize` is no whole number.
        """
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        if buffersize is not None and not isinstance(buffersize, int):
            raise TypeError("buffersize must be an integer or None")
        if buffersize is not None and buffersize < 1:
            raise ValueError("buffersize must be None or > 0")
        until = None if timeout is None else timeout + time.monotonic()
        rows = zip(*iterables, strict=False)
        sent = deque(self.submit(fn, *row) for row in itertools.islice(rows, buffersize))
        # The iterator does not keep the executor.
        again = None if buffersize is None else weakref.WeakMethod(self.submit)
        return _results(sent, rows, fn, again, until)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002  # as there
        """
        Take no more calls; the pool stays open.

        Args:
            wait: Whether to wait until all futures are done.
            cancel_futures: Whether to cancel those whose calls have not begun.
        """
        with self._lock:
            self._shut = True
        self._landing.leave()
        if cancel_futures:
            # Those for which there are slots have begun, as they would have in a thread.
            with contextlib.suppress(PoolClosedError):
                self._running.engine.run(self._running.engine.caught_up())
            for future in self._landing.expected():
                future.cancel()
        if wait:
            self._landing.join()

    def _function(self, fn: Any) -> Function[..., Any]:
        if not isinstance(fn, FunctionType | BuiltinFunctionType):
            return as_function(fn)
        known = self._functions.get(fn)
        if known is None:
            known = self._functions[fn] = as_function(fn)
            while len(self._functions) > _FUNCTIONS:
                self._functions.popitem(last=False)
        return known


class _Task(concurrent.futures.Future[Any]):
    """Promise the result of a call, which can be cancelled until it begins."""

    def __init__(self, running: Running) -> None:
        super().__init__()
        self._running = running
        self.call: Call | None = None

    def running(self) -> bool:
        """Return whether the call has begun on a node; one that was sent there ahead of its turn has not."""
        return not self.done() and self.call is not None and self.call.began > 0

    def cancel(self) -> bool:
        """Cancel the call if it has not begun; return whether it is cancelled."""
        if self.running() or not super().cancel():
            return False
        if announce_cancelled(self) and self.call is not None:
            with contextlib.suppress(PoolClosedError):
                self._running.cancel_soon(self.call)
        return True

    def called_off(self) -> None:
        """Record that the pool cancelled the call."""
        if super().cancel():
            announce_cancelled(self)


class _Sink:
    """Pass an answer from the engine's loop to the thread that unpickles it."""

    __slots__ = ("_future", "_landing")

    def __init__(self, landing: _Landing, future: _Task) -> None:
        self._landing = landing
        self._future = future

    def resolve(self, call: Call, answer: Answer) -> None:
        """Take the answer."""
        self._landing.put(self._future, answer)

    def item(self, call: Call, payload: Payload) -> None:
        """Ignore items: the call is not a stream."""

    def stalled(self) -> bool:
        """Return False: nothing is held back."""
        return False


class _Landing:
    """
    Unpickle results and run callbacks in a thread, which ends when nothing more is expected.

    Args:
        running: The pool.
    """

    def __init__(self, running: Running) -> None:
        self._running = running
        self._arrived: queue.SimpleQueue[tuple[_Task, Answer] | None] = queue.SimpleQueue()
        self._open: dict[_Task, None] = {}
        self._sent = self._answered = 0
        self._leaving = False
        self._thread: threading.Thread | None = None

    def expect(self, future: _Task) -> None:
        """Record a future whose answer will come."""
        self._open[future] = None
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="skyward-executor", daemon=True)
            self._thread.start()

    def idle(self) -> bool:
        """Return whether slots may have nothing to do."""
        return self._sent - self._answered < self._running.slots

    def send(self, calls: Sequence[Call]) -> None:
        """Send calls on their way; in the engine's loop."""
        self._sent += len(calls)
        self._running.submit(calls)

    def expected(self) -> list[_Task]:
        """List the futures whose answers have not come, the latest first: an earlier one is likelier to begin."""
        return list(self._open)[::-1]

    def put(self, future: _Task, answer: Answer) -> None:
        """Take an answer; in the engine's loop."""
        self._answered += 1
        self._arrived.put((future, answer))

    def leave(self) -> None:
        """Record that nothing more will be expected."""
        self._leaving = True
        self._arrived.put(None)

    def join(self) -> None:
        """Wait until every future is done."""
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while self._open or not self._leaving:
            arrived = self._arrived.get()
            if arrived is not None:
                self._settle(*arrived)
                # Neither is kept while this waits.
                del arrived

    def _settle(self, future: _Task, answer: Answer) -> None:
        try:
            if future.cancelled():
                return
            self._running.reporting.caught_up()
            with contextlib.suppress(InvalidStateError):
                try:
                    value = answer.value()
                except CancelledError:
                    future.called_off()
                except BaseException as error:
                    future.set_exception(error)
                else:
                    future.set_result(value)
        finally:
            self._open.pop(future, None)


def _results(
    sent: deque[concurrent.futures.Future[Any]],
    rows: Iterator[tuple[Any, ...]],
    fn: Callable[..., Any],
    again: Callable[[], Callable[..., concurrent.futures.Future[Any]] | None] | None,
    until: float | None,
) -> Iterator[Any]:
    try:
        while sent:
            if again is not None and (submit := again()) is not None and (row := next(rows, None)) is not None:
                sent.append(submit(fn, *row))
                del submit
            # Nothing here keeps what was given.
            yield _result(sent.popleft(), until)
    finally:
        for future in sent:
            future.cancel()


def _result(future: concurrent.futures.Future[Any], until: float | None) -> Any:
    try:
        return future.result(None if until is None else until - time.monotonic())
    finally:
        future.cancel()
