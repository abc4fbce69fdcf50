"""A function run once for each item, the items taken as the nodes get on."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import TYPE_CHECKING, Any

from skyward.engine.call import Answer, Call
from skyward.engine.operations import raise_with_partial
from skyward.engine.waiting import Collector
from skyward.errors import UsageError

if TYPE_CHECKING:
    from skyward.engine.running import Running
    from skyward.function import Function

WINDOW = 2048
"""Calls of one map that may be under way at once."""

WINDOW_BYTES = 256 << 20
"""Bytes of arguments of one map that may be under way at once."""

_POST = 64


def collect(pool: Running, function: Function[..., Any], items: Iterable[Any], *, keep_errors: bool) -> list[Any]:
    """
    Give all results, in the order of the items.

    Raises:
        Exception: The first failure in the order of the items, with what was done until then.
    """
    values: list[Any] = []
    for answer in _answers(pool, function, items, ordered=True):
        try:
            values.append(answer.value())
        except (Exception, concurrent.futures.CancelledError) as error:
            values.append(error)
            if not keep_errors:
                pool.reporting.caught_up()
                raise_with_partial(error, values)
    pool.reporting.caught_up()
    return values


def stream(
    pool: Running, function: Function[..., Any], items: Iterable[Any], *, ordered: bool, keep_errors: bool
) -> Iterator[Any]:
    """Give results as they come."""
    answers = _answers(pool, function, items, ordered=ordered)
    return _values(answers, keep_errors=keep_errors)


def _values(answers: Iterator[Answer], *, keep_errors: bool) -> Iterator[Any]:
    for answer in answers:
        try:
            value = answer.value()
        except (Exception, concurrent.futures.CancelledError) as error:
            if not keep_errors:
                raise
            value = error
        yield value


def _answers(pool: Running, function: Function[..., Any], items: Iterable[Any], *, ordered: bool) -> Iterator[Answer]:
    if function.streams:
        raise UsageError(f"{function.name} is a generator function, and `map` wants one result for each item.")
    collector = Collector()
    total = len(items) if isinstance(items, Sized) else None
    under_way = _UnderWay(pool, pool.caller(function, collector), enumerate(items), collector)
    return _in_order(under_way, pool.progress(function.name, total), ordered=ordered)


def _in_order(under_way: _UnderWay, progress: Callable[[int], None], *, ordered: bool) -> Iterator[Answer]:
    held: dict[int, Answer] = {}
    given = 0
    try:
        while under_way.fill():
            for index, answer in under_way.arrived():
                if ordered and index != given:
                    held[index] = answer
                    continue
                yield answer
                given += 1
                while ordered and given in held:
                    yield held.pop(given)
                    given += 1
            progress(under_way.done)
    finally:
        under_way.cancel()


class _UnderWay:
    """
    Hold the calls that were sent and have not ended, never more than a window of them.

    Args:
        pool: Where they run.
        make: Makes the call for an item.
        source: Items with their index.
        collector: Where their answers arrive.
    """

    def __init__(
        self,
        pool: Running,
        make: Callable[[Any, int], Call],
        source: Iterator[tuple[int, Any]],
        collector: Collector,
    ) -> None:
        self._pool = pool
        self._make = make
        self._source = source
        self._collector = collector
        self._open: dict[int, Call] = {}
        self._bytes = 0
        self._exhausted = False
        self.done = 0

    def fill(self) -> bool:
        """Send calls until the window is full; False when there is nothing left to wait for."""
        batch: list[Call] = []
        while not self._exhausted and len(self._open) < WINDOW and self._bytes < WINDOW_BYTES:
            item = next(self._source, None)
            if item is None:
                self._exhausted = True
                break
            call = self._make(item[1], item[0])
            self._open[item[0]] = call
            self._bytes += call.payload.size
            batch.append(call)
            if len(batch) >= _POST:
                self._pool.submit(batch)
                batch = []
                if self._collector.ready():
                    break
        if batch:
            self._pool.submit(batch)
        return bool(self._open)

    def arrived(self) -> Iterator[tuple[int, Answer]]:
        """Wait for an answer, and give it and those that are there with it."""
        while True:
            index, answer = self._collector.next()
            self._bytes -= self._open.pop(index).payload.size
            self.done += 1
            yield index, answer
            if not self._open or not self._collector.ready():
                return

    def cancel(self) -> None:
        """Stop what is still under way."""
        self._pool.cancel(self._open.values())
