"""
How much there is to do in a pool: an estimate from a sample, which costs the same whatever waits and runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, TypeVar

from attrs import frozen

from skyward.plan.pool.call_groups import Group
from skyward.plan.pool.durations import UNKNOWN
from skyward.plan.pool.lanes import Entry, Lane

if TYPE_CHECKING:
    from skyward.plan.pool.scheduling import Scheduler

T = TypeVar("T")

SAMPLE: Final = 128
"""Calls that wait, and lanes, that are looked at."""


@frozen(kw_only=True)
class Workload:
    """
    What waits and what runs.

    Args:
        queued: Calls that wait for a slot, also those that were sent ahead to a busy one.
        queued_seconds: Seconds of a slot that they are expected to take.
        running: Calls that run.
        remaining: For some of those that run, the seconds for which each is expected to go on.
    """

    queued: int = 0
    queued_seconds: float = 0.0
    running: int = 0
    remaining: tuple[float, ...] = ()


def estimate(scheduler: Scheduler, now: float) -> Workload:
    """
    Estimate what there is to do.

    A call that has run longer than calls of its function were expected to is expected to go on for as long as it is
    over; one whose function was never seen to end, for as long as it has run.

    Args:
        scheduler: Where the calls are.
        now: Seconds on the clock that calls were sent by.

    >>> from skyward.plan.pool.scheduling import Scheduler
    >>> scheduler = Scheduler()
    >>> scheduler.add_node(0, [(0, 0, 1)])
    >>> for call in range(3):
    ...     scheduler.submit(call, b"f")
    >>> _ = scheduler.assign(now=0.0)
    >>> estimate(scheduler, now=20.0)
    Workload(queued=2, queued_seconds=80.0, running=1, remaining=(20.0,))
    """
    lanes = _spread(scheduler.lanes.values(), len(scheduler.lanes))
    durations, ages = scheduler.durations, _ages(lanes, now)
    longest: dict[bytes, float] = {}
    for function, age in ages:
        longest[function] = max(longest.get(function, 0.0), age)
    remaining = tuple(
        age if (known := durations.known(function)) is None else abs(known - age) for function, age in ages
    )

    def expected(function: bytes) -> float:
        return durations.known(function) or max(UNKNOWN, 2 * longest.get(function, 0.0))

    share = len(scheduler.lanes) / len(lanes) if lanes else 1.0
    ahead = sum(lane.ahead for lane in lanes)
    ahead_seconds = sum(count * expected(function) for lane in lanes for function, count in lane.waiting.items())
    waiting = [expected(entry.function) for entry in _sampled(scheduler) if isinstance(entry, Entry)]
    mean = sum(waiting) / len(waiting) if waiting else 0.0
    return Workload(
        queued=scheduler.queued + round(ahead * share),
        queued_seconds=scheduler.queued * mean + ahead_seconds * share,
        running=round(len(ages) * share),
        remaining=remaining,
    )


def _sampled(scheduler: Scheduler) -> Iterator[Entry | Group]:
    """Return what is known of some of the calls that wait for a slot."""
    yield from scheduler.queue.sample(SAMPLE)
    pinned = chain.from_iterable(queue.sample(SAMPLE) for queue in scheduler.pinned.queues())
    yield from islice(pinned, SAMPLE)


def _ages(lanes: Iterable[Lane], now: float) -> list[tuple[bytes, float]]:
    """List for each call that runs in some lanes its function, and for how long it has run."""
    return [
        (entry.function, max(0.0, now - lane.begun_at.get(call, lane.since)))
        for lane in lanes
        for call, entry in islice(lane.calls.items(), lane.capacity)
    ]


def _spread(things: Iterable[T], count: int) -> list[T]:
    """Return at most `SAMPLE` of some things, evenly spread."""
    return list(islice(things, 0, None, max(1, -(-count // SAMPLE))))
