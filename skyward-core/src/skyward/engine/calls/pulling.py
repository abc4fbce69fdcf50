"""Where a map takes its items: iterators side by side, asynchronous ones among them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterable, AsyncIterator, Generator, Iterable, Iterator, Sequence, Sized
from concurrent.futures import CancelledError, Future
from typing import Any

from skyward.errors import UsageError

LOOK_EVERY = 0.5
"""Seconds after which a thread that waits for an item of an event loop looks whether that is still there."""


class ItemSource(Iterator[tuple[Any, ...]]):
    """
    Give the arguments of one call after the other.

    Args:
        iterables: One for each parameter, or the only one, of tuples of arguments; each may be asynchronous.
        star: Whether it is one of tuples.
        strict: Whether iterables of different lengths are an error.

    Raises:
        TypeError: If something cannot be iterated over.

    >>> list(ItemSource([[1, 2, 3], "ab"]))
    [(1, 'a'), (2, 'b')]
    >>> list(ItemSource([[(1, 2)]], star=True))
    [(1, 2)]
    """

    def __init__(
        self, iterables: Sequence[Iterable[Any] | AsyncIterable[Any]], *, star: bool = False, strict: bool = False
    ) -> None:
        if not iterables:
            raise TypeError("map() needs at least one iterable.")
        self._iterators = [_iterator(one) for one in iterables]
        self._rows: Iterator[Any] = self._iterators[0] if star else zip(*self._iterators, strict=strict)
        self._star = star
        lengths = [len(one) for one in iterables if isinstance(one, Sized)]
        self.total = min(lengths) if len(lengths) == len(iterables) else None

    def __next__(self) -> tuple[Any, ...]:
        row = next(self._rows)
        return tuple(row) if self._star else row

    @property
    def needs_this_thread(self) -> bool:
        """Return whether items come from an event loop that runs in this thread, which must not wait for them."""
        loop = _running_loop()
        return loop is not None and any(isinstance(one, _Awaited) and one.loop is loop for one in self._iterators)

    def interrupt(self) -> None:
        """Cancel an asynchronous iterator that is waited for; another one cannot be interrupted."""
        for one in self._iterators:
            if isinstance(one, _Awaited):
                one.interrupt()

    def close(self) -> None:
        """End what can be ended: generators. To be called where they are iterated over."""
        for one in self._iterators:
            if isinstance(one, Generator | _Awaited):
                one.close()


def _iterator(iterable: Any) -> Iterator[Any]:
    if hasattr(iterable, "__aiter__") and not hasattr(iterable, "__iter__"):
        return _Awaited(aiter(iterable))
    return iter(iterable)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class _Awaited(Iterator[Any]):
    """
    Iterate over an asynchronous iterator from a thread that may wait.

    It runs in the event loop that runs where this is made, so that it can use what belongs to that; else in its own.
    """

    def __init__(self, iterator: AsyncIterator[Any]) -> None:
        self._iterator = iterator
        self.loop = _running_loop()
        self._own: asyncio.AbstractEventLoop | None = None
        self._waiting: Future[Any] | asyncio.Task[Any] | None = None
        self._interrupted = False

    def __next__(self) -> Any:
        item = self._in_loop() if self.loop is not None else self._in_own()
        if item is _END:
            raise StopIteration
        return item

    def interrupt(self) -> None:
        self._interrupted = True
        waiting, own = self._waiting, self._own
        if isinstance(waiting, Future):
            waiting.cancel()
        elif waiting is not None and own is not None:
            # It may have ended its loop meanwhile.
            with contextlib.suppress(RuntimeError):
                own.call_soon_threadsafe(waiting.cancel)

    def close(self) -> None:
        loop, own = self.loop, self._own
        if loop is not None:
            # Made there: a loop that ends first makes none that is never awaited.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(lambda: loop.create_task(self._end()))
        elif own is not None:
            own.run_until_complete(self._end())
            own.close()
            self._own = None

    def _in_loop(self) -> Any:
        assert self.loop is not None
        step = self._step()
        try:
            waiting = self._waiting = asyncio.run_coroutine_threadsafe(step, self.loop)
        except RuntimeError:
            step.close()
            raise self._loop_ended() from None
        if self._interrupted:
            waiting.cancel()
        while True:
            try:
                return waiting.result(LOOK_EVERY)
            except TimeoutError:
                if waiting.done():
                    raise
                if self.loop.is_closed():
                    raise self._loop_ended() from None

    def _loop_ended(self) -> UsageError:
        return UsageError("The event loop that the items of a `map` come from has ended before them.")

    def _in_own(self) -> Any:
        if self._own is None:
            self._own = asyncio.new_event_loop()
        waiting = self._waiting = self._own.create_task(self._step())
        if self._interrupted:
            waiting.cancel()
        try:
            return self._own.run_until_complete(waiting)
        except asyncio.CancelledError:
            raise CancelledError from None

    async def _step(self) -> Any:
        try:
            return await anext(self._iterator)
        except StopAsyncIteration:
            return _END

    async def _end(self) -> None:
        end = getattr(self._iterator, "aclose", None)
        if end is not None:
            with contextlib.suppress(Exception):
                await end()


_END = object()
