"""A function run once for each item, the items taken as the nodes get on."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from skyward.engine.calls.map_flight import Flight
from skyward.engine.calls.operations import raise_with_partial
from skyward.engine.calls.streamed_results import Results
from skyward.errors import UsageError
from skyward.plan.pool.map_flow import UNBOUNDED, Bounds

if TYPE_CHECKING:
    from skyward.engine.calls.pulling import ItemSource
    from skyward.engine.pool.running import Running
    from skyward.function import Function

BOUNDS = Bounds()
"""What a map whose results are streamed may hold."""

LISTED = Bounds(results=UNBOUNDED)
"""What one whose results are all wanted may hold."""


def collect(pool: Running, function: Function[..., Any], source: ItemSource, *, keep_errors: bool) -> list[Any]:
    """
    Return all results, in the order of the items.

    Raises:
        Exception: The first failure in the order of the items, with what was done until then.
        UsageError: If items come from the event loop that waits here for the results.
    """
    if source.needs_this_thread:
        raise UsageError(
            "`map` waits for all results, and the items come from the event loop that would wait.",
            hint="Write `async for result in pool.map(..., stream=True)`.",
        )
    flight = _flight(pool, function, source, ordered=False, bounds=LISTED)
    gathered = _Gathered(flight, pool.reporting.progress(function.name, source.total), keep_errors=keep_errors)
    try:
        while not gathered.settled:
            if gathered.take():
                continue
            if flight.failure is not None:
                break
            if not flight.exhausted and gathered.failed is None and (room := flight.room()):
                flight.pull(room, until_landed=True)
            else:
                flight.wait()
    finally:
        flight.close()
        source.close()
    pool.reporting.caught_up()
    return gathered.unwrap()


def stream(
    pool: Running, function: Function[..., Any], source: ItemSource, *, ordered: bool, keep_errors: bool
) -> Results[Any]:
    """Yield results as they come."""
    flight = _flight(pool, function, source, ordered=ordered, bounds=BOUNDS)
    return Results(flight, pool.reporting.progress(function.name, source.total), keep_errors=keep_errors)


def _flight(
    pool: Running, function: Function[..., Any], source: ItemSource, *, ordered: bool, bounds: Bounds
) -> Flight:
    if function.streams:
        raise UsageError(f"{function.name} is a generator function, and `map` wants one result for each item.")
    return Flight(pool, function, source, ordered=ordered, bounds=bounds)


class _Gathered:
    """
    Put results in order as they come, and know when the outcome is certain.

    Args:
        flight: The calls.
        progress: Takes the number of those that have ended.
        keep_errors: Whether what is raised takes its place among the results.
    """

    def __init__(self, flight: Flight, progress: Callable[[int], None], *, keep_errors: bool) -> None:
        self._flight = flight
        self._progress = progress
        self._keep_errors = keep_errors
        self._values: dict[int, Any] = {}
        self._first_open = 0
        self.failed: int | None = None

    @property
    def settled(self) -> bool:
        """Return whether no further result can change the outcome."""
        return self._flight.finished if self.failed is None else self._first_open >= self.failed

    def take(self) -> bool:
        """Take what has come; False if nothing has."""
        landed = self._flight.take()
        if landed is None:
            return False
        while landed is not None:
            index, answer, _ = landed
            try:
                self._values[index] = answer.value()
            except (Exception, concurrent.futures.CancelledError) as error:
                self._values[index] = error
                if not self._keep_errors and (self.failed is None or index < self.failed):
                    self.failed = index
                    self._flight.cancel_after(index)
            landed = self._flight.take()
        while self._first_open in self._values:
            self._first_open += 1
        self._progress(self._flight.answered)
        return True

    def unwrap(self) -> list[Any]:
        """
        Return the results in order.

        Raises:
            Exception: The first failure in the order of the items, or that of the iterator.
        """
        if self.failed is not None:
            raise_with_partial(self._values[self.failed], [self._values[index] for index in range(self.failed + 1)])
        done = [self._values[index] for index in range(self._first_open)]
        if self._flight.failure is not None:
            raise_with_partial(self._flight.failure, done)
        return done
