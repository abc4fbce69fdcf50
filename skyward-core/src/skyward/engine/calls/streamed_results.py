"""What a streamed map gives: results as they come, for a loop in a thread or in an event loop."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from skyward.engine.calls.map_flight import AWAKE_EVERY, Flight, Landed

T = TypeVar("T")

AT_ONCE = 64 << 10
"""Bytes of a result that is unpickled in the event loop; a thread does that to larger ones, which would hold it up."""


class Results(Iterator[T], AsyncIterator[T], Generic[T]):
    """
    Iterate over results as they come, with `for` or `async for`.

    Items are pulled, and calls are sent, from the first result on that is asked for.
    Closing or deleting it cancels the calls under way and closes the generator that items come from.

    Args:
        flight: The calls.
        progress: Takes the number of those that have ended.
        keep_errors: Whether what is raised is given like a result.
    """

    def __init__(self, flight: Flight, progress: Callable[[int], None], *, keep_errors: bool) -> None:
        self._flight = flight
        self._progress = progress
        self._keep_errors = keep_errors
        self._beginning = threading.Lock()
        self._begun = False

    def __next__(self) -> T:
        self._begin()
        try:
            while (landed := self._flight.take()) is None:
                self._check_end(StopIteration)
                self._flight.wait()
            return self._given(landed)
        except BaseException:
            self.close()
            raise

    async def __anext__(self) -> T:
        self._begin()
        try:
            while (landed := self._flight.take()) is None:
                self._check_end(StopAsyncIteration)
                await self._arrival()
            if landed.size > AT_ONCE:
                return await self._given_by_thread(landed)
            return self._given(landed)
        except asyncio.CancelledError:
            # It is the waiting that was cancelled, perhaps by a timeout; the next one continues.
            raise
        except BaseException:
            self.close()
            raise

    def __aiter__(self) -> Self:
        return self

    def __iter__(self) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Cancel the calls under way, and pull no more items; harmless when it has ended."""
        self._flight.close()

    async def aclose(self) -> None:
        """Close, which never waits."""
        self.close()

    def _begin(self) -> None:
        if self._begun:
            return
        with self._beginning:
            begun, self._begun = self._begun, True
        if not begun:
            self._flight.begin()

    def _check_end(self, end: type[Exception]) -> None:
        if not self._flight.finished:
            return
        failure = None if self._flight.over else self._flight.failure
        self.close()
        if failure is not None:
            from skyward.link.failure import raise_failure

            raise_failure(failure)
        raise end

    def _given(self, landed: Landed) -> T:
        self._progress(self._flight.answered)
        try:
            value: T = landed.answer.value()
        except (Exception, concurrent.futures.CancelledError) as error:
            if not self._keep_errors:
                raise
            kept: Any = error
            return kept  # type: ignore[no-any-return]  # it is asked for as a part of T
        return value

    async def _given_by_thread(self, landed: Landed) -> T:
        try:
            return await asyncio.to_thread(self._given, landed)
        except asyncio.CancelledError:
            self._flight.put_back(landed)
            raise

    async def _arrival(self) -> None:
        loop = asyncio.get_running_loop()
        arrived = loop.create_future()

        def wake() -> None:
            # The event loop may have ended before what it waited for came.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(_settle, arrived)

        if not self._flight.sleep(wake):
            return
        while not arrived.done():
            await asyncio.wait([arrived], timeout=AWAKE_EVERY)
            self._flight.look()


def _settle(arrived: asyncio.Future[None]) -> None:
    if not arrived.done():
        arrived.set_result(None)
