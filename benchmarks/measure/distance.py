"""
Slots kept busy and calls in flight over a distance: real SSH servers behind a line with a round trip.

usage: python -m measure.distance busy|flight ROUND_TRIP_MS SECONDS WAY...
       python -m measure.distance local SYSTEM SECONDS
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from measure.calls import add
from measure.harness import Job, Results, answer, limit, module, number, worst_of
from measure.peers import PEERS, open_system
from measure.proxy import Proxy
from measure.ssh import addresses, pool_of, provider, site
from measure.table import MISSING, Criterion, Number, Row, percent, rate

SLOTS = 4
TASKS_MS = (2, 10, 100)
BUSY = {50: 0.90, 200: 0.85}
"""Share of the slots' time that has to go into tasks, by the round trip in ms."""
FLIGHT = 0.7
"""Share of the rate at no distance that has to be left."""
GROWTH = 4
TRIPS = 20
"""Round trips that a batch lasts at least, so that those at its beginning and end are a twentieth of it each."""
FIRST = 80
"""Calls of the first batch; each one that is over too soon is followed by one that is this many times as large."""


def sleep_2(i: int) -> int:
    time.sleep(0.002)
    return i


def sleep_10(i: int) -> int:
    time.sleep(0.010)
    return i


def sleep_100(i: int) -> int:
    time.sleep(0.100)
    return i


# Three functions, as three programs would have: what is known of one says nothing of another.
SLEEPS: dict[int, Callable[[int], int]] = {2: sleep_2, 10: sleep_10, 100: sleep_100}


@contextmanager
def pool_at(round_trip_ms: float) -> Iterator[Any]:
    """
    Open a pool of one node with four slots, so far away.
    """
    with (
        site() as (made, key),
        Proxy(addresses(made), round_trip_s=round_trip_ms / 1e3) as proxy,
        pool_of(provider(made, key, proxy.ports), concurrency=SLOTS) as pool,
    ):
        yield pool


def by_map(pool: Any, function: Callable[[int], int], count: int) -> list[int]:
    return list(pool.map(function, range(count)))


def by_gather(pool: Any, function: Callable[[int], int], count: int) -> list[int]:
    import skyward as sky

    remote = sky.function(function)
    return list(sky.gather(*(remote(i) for i in range(count))) >> pool)


def by_futures(pool: Any, function: Callable[[int], int], count: int) -> list[int]:
    import skyward as sky

    remote = sky.function(function)
    return [future.result() for future in [remote(i) > pool for i in range(count)]]


WAYS = {"map": by_map, "gather": by_gather, "futures": by_futures}


def steady(run: Callable[[int], object], at_least_s: float, most: int) -> tuple[int, float]:
    """
    Run ever larger batches until one takes so long that how it begins and ends matters little.

    Args:
        run: Runs so many calls.
        at_least_s: Seconds that a batch has to take.
        most: Calls that are enough in any case.

    Returns:
        The number of calls in the last batch, and its seconds.
    """
    count = min(FIRST, most)
    while True:
        started = time.perf_counter()
        run(count)
        wall = time.perf_counter() - started
        if wall >= at_least_s or count >= most:
            return count, wall
        count = min(most, count * GROWTH)


def busy(round_trip_ms: float, seconds: float, ways: Sequence[str]) -> dict[str, float]:
    """
    Take the share of the slots' time that goes into tasks, for each way to ask for them, in per cent.
    """
    found = {}
    with pool_at(round_trip_ms) as pool:
        for task, function in SLEEPS.items():
            most = round(2 * SLOTS * seconds / (task / 1e3))
            for way in ways:
                run = WAYS[way]

                def run_one(count: int, run: Any = run, function: Any = function) -> None:
                    assert run(pool, function, count) == list(range(count))

                count, wall = steady(run_one, seconds, most)
                found[f"{way}_{task}"] = 100 * count * task / 1e3 / (SLOTS * wall)
    return found


def flight(round_trip_ms: float, seconds: float, ways: Sequence[str]) -> dict[str, float]:
    """
    Take the rate of no-ops in flight for each way to ask for them.
    """
    found = {}
    with pool_at(round_trip_ms) as pool:
        by_map(pool, add, 100)
        for way in ways:
            run = WAYS[way]
            count, wall = steady(lambda count, run=run: run(pool, add, count), seconds, 200_000)
            found[way] = count / wall
    return found


def local(system: str, seconds: float) -> dict[str, float]:
    """
    Take both of a system at no distance: the peers cannot be put behind the line.
    """
    found = {}
    with open_system(system, slots=SLOTS) as face:
        for task, function in SLEEPS.items():
            handle = face.prepare(function)
            face.map(handle, range(10 * SLOTS))
            most = round(SLOTS * seconds / (task / 1e3))
            count, wall = steady(lambda count, handle=handle: face.map(handle, range(count)), seconds / 2, most)
            found[f"map_{task}"] = 100 * count * task / 1e3 / (SLOTS * wall)
    return found


def jobs(quick: bool) -> dict[str, Job]:
    """
    List what has to be run.
    """
    shortest, ways = (0.5, ["map"]) if quick else (1.5, [*WAYS])
    listed = {"distance limit": limit("sleeps.py")}
    for trip in (0, *BUSY):
        # As many calls at each distance: what is held for each grows with them.
        longest = f"{max(shortest, TRIPS * max(BUSY) / 1e3):g}"
        listed[f"distance flight {trip}"] = module("measure.distance", "flight", f"{trip}", longest, *ways)
        if trip:
            lasts = f"{max(shortest, TRIPS * trip / 1e3):g}"
            listed[f"distance busy {trip}"] = module("measure.distance", "busy", f"{trip}", lasts, *ways)
    for peer in () if quick else PEERS:
        listed[f"distance local {peer}"] = module("measure.distance", "local", peer, "1.5", needs=peer)
    return listed


def worst_way(results: Results, name: str, ending: str = "") -> Number:
    """
    Take the lowest number of all ways to ask for calls that were measured.
    """
    return worst_of(by_way(results, name, ending), min)


def by_way(results: Results, name: str, ending: str = "") -> dict[str, Number]:
    """
    Take a number for each way that was measured, or say of all that there is none.
    """
    numbers = {way: number(results, name, way + ending) for way in WAYS}
    return {way: found for way, found in numbers.items() if found.note != MISSING} or numbers


def rows(results: Results) -> list[Row]:
    """
    Judge how busy slots are kept, and the rate of no-ops.
    """
    table = []
    for trip, at_least in BUSY.items():
        for task in TASKS_MS:
            ours = worst_way(results, f"distance busy {trip}", f"_{task}")
            ray, dask = (number(results, f"distance local {peer}", f"map_{task}") for peer in PEERS)
            bare = number(results, "distance limit", f"busy_{task}")
            table.append(
                Row(
                    what=f"{SLOTS} slots busy {trip} ms away, tasks that sleep {task} ms (limit: bare loops that sleep "
                    "as long; peers: at no distance)",
                    limit=percent(bare),
                    ours=percent(ours),
                    ray=percent(ray),
                    dask=percent(dask),
                    criteria=(Criterion("limit", ours.over(bare), at_least=at_least),),
                    bounded_by="one round trip at the beginning and the end, a twentieth of the time each at most; a "
                    "sleep takes some 0.1 ms longer than asked for",
                )
            )
    for trip in BUSY:
        away, near = (by_way(results, f"distance flight {ms}") for ms in (trip, 0))
        share = worst_of({way: Number(away[way].over(near[way]), note=away[way].note) for way in away}, min)
        table.append(
            Row(
                what=f"no-ops in flight {trip} ms away (limit: the same at 0 ms)",
                limit=rate(worst_of(near, min)),
                ours=rate(worst_of(away, min)),
                criteria=(Criterion("at 0 ms", share.value, at_least=FLIGHT),),
                bounded_by="how many calls are on their way",
            )
        )
    return table


if __name__ == "__main__":
    what, which, seconds, *ways = sys.argv[1:]
    if what == "local":
        answer(local(which, float(seconds)))
    else:
        answer({"busy": busy, "flight": flight}[what](float(which), float(seconds), ways))
