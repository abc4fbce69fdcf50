"""What waits for calls: one thread, a future, a collector of many, the reader of a stream."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import queue
import threading
from collections.abc import Callable, Generator, Iterator
from typing import Any, Generic, TypeVar

from skyward.engine.calls.answer import Answer
from skyward.engine.calls.call import Call
from skyward.engine.calls.unopened import unopened
from skyward.errors import ResultError
from skyward.link.payload import Payload, load
from skyward.node.worker.streams import WINDOW_BYTES, WINDOW_ITEMS

T = TypeVar("T")


class Waiter:
    """Let one thread wait for one call."""

    __slots__ = ("_answer", "_lock")

    def __init__(self) -> None:
        self._answer: Answer | None = None
        self._lock = threading.Lock()
        self._lock.acquire()

    def resolve(self, call: Call, answer: Answer) -> None:
        """Take the answer."""
        self._answer = answer
        self._lock.release()

    def item(self, call: Call, payload: Payload) -> None:
        """Ignore items: the call is not a stream."""

    def stalled(self) -> bool:
        """Return False: nothing is held back."""
        return False

    def wait(self) -> Answer:
        """Wait for the answer; an interrupt of the thread gets through."""
        self._lock.acquire()
        assert self._answer is not None
        return self._answer


class AnswerCollector:
    """Let one thread wait for many calls, and take the answers as they come."""

    __slots__ = ("_arrived",)

    def __init__(self) -> None:
        self._arrived: queue.SimpleQueue[tuple[int, Answer]] = queue.SimpleQueue()

    def resolve(self, call: Call, answer: Answer) -> None:
        """Take an answer."""
        self._arrived.put((call.index, answer))

    def item(self, call: Call, payload: Payload) -> None:
        """Ignore items: the call is not a stream."""

    def stalled(self) -> bool:
        """Return False: nothing is held back."""
        return False

    def next(self) -> tuple[int, Answer]:
        """Wait for the next answer, and return the index of its call."""
        return self._arrived.get()

    def ready(self) -> bool:
        """Return whether `next` would give one at once."""
        return not self._arrived.empty()


class Future(concurrent.futures.Future[T], Generic[T]):
    """
    Promise the result of a call; can be waited for, awaited and cancelled.

    The result is unpickled in the thread that asks for it first.
    Its parts are few: with many futures, Python's garbage collector stops all threads for as long as it looks at them.

    Args:
        cancel: Stops a call.
        caught_up: Waits until what the call printed is where it is shown.
    """

    def __init__(self, cancel: Callable[[Call], None], caught_up: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self._caught_up = caught_up
        self._ask_to_cancel = cancel
        self._call: Call | None = None
        self._decoding: threading.Lock | None = None
        self._decoded: tuple[Any, BaseException | None] | None = None

    def __dir__(self) -> list[str]:
        """List the methods for waiting; the setters are the pool's."""
        return sorted(
            {*super().__dir__()} - {"set_exception", "set_result", "set_running_or_notify_cancel", "used", "withhold"}
        )

    def result(self, timeout: float | None = None) -> T:
        """
        Wait for the result.

        Args:
            timeout: Seconds to wait; None waits as long as it takes.

        Raises:
            TimeoutError: If it has not come by then; the call runs on.
            CancelledError: If the call was cancelled.
            Exception: What the function raised.
        """
        value, error = self._outcome(timeout)
        if error is not None:
            from skyward.link.failure import raise_failure

            raise_failure(error)
        return value  # type: ignore[no-any-return]

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the call to end, and return what it raised, or None."""
        return self._outcome(timeout)[1]

    def cancel(self) -> bool:
        """Stop the call on its node; False if it has ended already."""
        if not super().cancel():
            return False
        if announce_cancelled(self) and (call := self._call) is not None:
            self._ask_to_cancel(call)
        return True

    @property
    def used(self) -> bool:
        """Return whether its result was asked for, or is none any more."""
        return self._decoded is not None or self.cancelled()

    def withhold(self, error: BaseException) -> bool:
        """
        Raise an error in place of a result that nothing has asked for.

        Args:
            error: What is raised.

        Returns:
            Whether it is withheld; not one that was asked for, or is being unpickled now.
        """
        with self._condition:
            if self._decoding is None:
                self._decoding = threading.Lock()
        if not self._decoding.acquire(blocking=False):
            return False
        try:
            if not self.done() or self.used:
                return False
            self._decoded = None, error
            return True
        finally:
            self._decoding.release()

    def __await__(self) -> Generator[Any, None, T]:
        return asyncio.wrap_future(self).__await__()

    def _outcome(self, timeout: float | None) -> tuple[Any, BaseException | None]:
        answer = super().result(timeout)
        with self._condition:
            if self._decoding is None:
                self._decoding = threading.Lock()
        # One of its own: unpickling takes as long as it takes, and others may ask for the state meanwhile.
        with self._decoding:
            if self._decoded is None:
                self._caught_up()
                self._decoded = _decode(answer)  # type: ignore[arg-type]
            return self._decoded


def announce_cancelled(future: concurrent.futures.Future[Any]) -> bool:
    """Wake what waits for several futures, which a cancelled one does only so; False if that was done before."""
    with future._condition:
        if future._state != "CANCELLED":
            return False
        future.set_running_or_notify_cancel()
        return True


class Promise:
    """
    Give a future its result; apart from it, which shows its user nothing of how that comes.

    Args:
        future: The future.
    """

    __slots__ = ("_future",)

    def __init__(self, future: Future[Any]) -> None:
        self._future = future

    def made(self, call: Call) -> None:
        """Record the call that is stopped when the future is cancelled."""
        self._future._call = call

    def resolve(self, call: Call, answer: Answer) -> None:
        """Take the answer."""
        # Each holds the other; so both go with the last reference of the user's.
        self._future._call = None
        if self._future.cancelled():
            return
        with contextlib.suppress(concurrent.futures.InvalidStateError):
            # Decoded by `result`.
            self._future.set_result(answer)

    def item(self, call: Call, payload: Payload) -> None:
        """Ignore items: the call is not a stream."""

    def stalled(self) -> bool:
        """Return False: nothing is held back."""
        return False

    def settle(self, value: object) -> None:
        """Take a result that needs no unpickling."""
        self._future._decoded = (value, None)
        with contextlib.suppress(concurrent.futures.InvalidStateError):
            self._future.set_result(value)


def _decode(answer: Answer) -> tuple[Any, BaseException | None]:
    try:
        return answer.value(), None
    except BaseException as error:
        return None, error


class StreamEnd:
    """Take a stream's items where they arrive; apart from `Stream`, so that nothing of ours keeps that alive."""

    __slots__ = ("_arrived", "_taken", "_taken_before")

    def __init__(self) -> None:
        self._arrived: queue.SimpleQueue[Payload | Answer] = queue.SimpleQueue()
        self._taken = 0
        self._taken_before = -1

    def resolve(self, call: Call, answer: Answer) -> None:
        """Take the end of the stream."""
        self._arrived.put(answer)

    def stalled(self) -> bool:
        """Return whether items wait that were not taken since this was last asked."""
        before, self._taken_before = self._taken_before, self._taken
        return before == self._taken and not self._arrived.empty()

    def item(self, call: Call, payload: Payload) -> None:
        """Take an item."""
        self._arrived.put(payload)

    def next(self) -> Payload | Answer:
        """Wait for the next item, or the end."""
        arrived = self._arrived.get()
        self._taken += 1
        return arrived


class Stream(Iterator[T], Generic[T]):
    """
    Iterate over what a generator function gives on a node.

    Leaving the loop, closing or deleting it ends the generator there.

    Args:
        end: Where items arrive.
        cancel: Stops the call.
        credit: Lets the node send so many items more.
    """

    def __init__(self, end: StreamEnd, cancel: Callable[[], None], credit: Callable[[int], None]) -> None:
        self._end = end
        self._cancel = cancel
        self._credit = credit
        self._taken = 0
        self._over = False

    def __next__(self) -> T:
        if self._over:
            raise StopIteration
        arrived = self._end.next()
        if isinstance(arrived, Answer):
            self._over = True
            arrived.value()
            raise StopIteration
        self._taken += 1
        if self._taken >= WINDOW_ITEMS // 2 or arrived.size >= WINDOW_BYTES // 4:
            self._credit(self._taken)
            self._taken = 0
        try:
            return load(arrived)  # type: ignore[no-any-return]
        except Exception as error:
            self.close()
            raise ResultError(unopened("An item of a stream", error)) from error

    def __enter__(self) -> Stream[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """End the generator on the node; harmless when it has ended."""
        if not self._over:
            self._over = True
            self._cancel()
