"""
Time of a no-op call, and rate of many in flight.

usage: python -m measure.calls time|rate SYSTEM VARIANT [COUNT]
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from measure.harness import Job, Number, Results, answer, limit, module, number, worst, worst_of
from measure.peers import PEERS, open_system
from measure.table import Criterion, Row, milliseconds, rate

# Each of our figures is taken with every one of these, and the worst counts.
VARIANTS = {
    "plain": "a number as argument",
    "dict": "a 1 kB dict as argument",
    "closure": "a closure",
    "two": "two functions in turn",
    "watched": "event handler, log console and timeouts on",
}
REPEATS = 3
SINGLES = 500
"""Calls one after the other in each repetition, as many as the bare chain makes."""
WARM = 100
POOLS = 3
"""In how many pools a round takes the time of a call."""


def add(x: int) -> int:
    return x + 1


def subtract(x: int) -> int:
    return x - 1


def look_up(x: dict[str, int]) -> int:
    return x["field 0"]


def adder(offset: int, names: tuple[str, ...]) -> Callable[[int], int]:
    def add_offset(x: int) -> int:
        return x + offset + len(names)

    return add_offset


def kilobyte(i: int) -> dict[str, int]:
    """
    Make a dict of about 1 kB of pickle that differs from all others.
    """
    return {f"field {k}": i + (k << 32) for k in range(50)}


def workload(variant: str, count: int) -> tuple[Sequence[Callable[..., Any]], list[Any]]:
    """
    Choose the functions and the arguments of a variant.
    """
    if variant == "dict":
        return (look_up,), [kilobyte(i) for i in range(count)]
    if variant == "closure":
        return (adder(3, ("one", "two")),), list(range(count))
    if variant == "two":
        return (add, subtract), list(range(count))
    return (add,), list(range(count))


def measure_time(system: str, variant: str) -> dict[str, float]:
    """
    Take the best of three medians of a call's time.
    """
    functions, items = workload(variant, SINGLES)
    medians = []
    with open_system(system, nodes=1, slots=2, watched=variant == "watched") as face:
        handles = [face.prepare(function) for function in functions]
        # Both slots are started and have seen the function before the clock is read.
        face.interleave(handles, items[:WARM])
        for _ in range(REPEATS):
            times = []
            for i in range(SINGLES):
                handle, item = handles[i % len(handles)], items[i]
                started = time.perf_counter()
                face.call(handle, item)
                times.append(time.perf_counter() - started)
            medians.append(statistics.median(times[WARM:]))
    return {"p50_ms": min(medians) * 1e3}


def measure_rate(system: str, variant: str, count: int) -> dict[str, float]:
    """
    Take the best of three rates of many calls in flight.
    """
    functions, items = workload(variant, count)
    expected = [functions[i % len(functions)](item) for i, item in enumerate(items)]
    rates = []
    with open_system(system, nodes=1, slots=2, watched=variant == "watched") as face:
        handles = [face.prepare(function) for function in functions]
        face.interleave(handles, items[:WARM])
        for _ in range(REPEATS):
            started = time.perf_counter()
            got = face.map(handles[0], items) if len(handles) == 1 else face.interleave(handles, items)
            rates.append(count / (time.perf_counter() - started))
            if got != expected:
                raise RuntimeError(f"{system} returned other results than the function does here.")
    return {"calls_per_s": max(rates)}


def jobs(quick: bool) -> dict[str, Job]:
    """
    List what has to be run: the limit, ours with every variant, and the peers.

    On which cores the processes of a pool happen to be decides more about the time of a call than what the call is, so
    it is taken in many pools, and of many chains.
    """
    count = "2400" if quick else "10000"
    listed = {"calls limit": limit("chain.py", repeats=POOLS)}
    for variant in VARIANTS:
        listed[f"calls Skyward {variant}"] = module("measure.calls", "time", "Skyward", variant, repeats=POOLS)
    for variant in VARIANTS:
        listed[f"calls in flight Skyward {variant}"] = module("measure.calls", "rate", "Skyward", variant, count)
    for peer in PEERS:
        listed[f"calls {peer}"] = module("measure.calls", "time", peer, "plain", needs=peer)
        listed[f"calls in flight {peer}"] = module("measure.calls", "rate", peer, "plain", count, needs=peer)
    return listed


def rows(results: Results) -> list[Row]:
    """
    Judge a call's time and the rate.
    """
    ours, ours_in_flight = (
        {meaning: f"{kind} Skyward {variant}" for variant, meaning in VARIANTS.items()}
        for kind in ("calls", "calls in flight")
    )
    time_limit, rate_limit = _over_pools(results, "calls limit"), number(results, "calls limit", "calls_per_s")
    slowest = worst_of({meaning: _over_pools(results, name) for meaning, name in ours.items()}, max)
    lowest = worst(results, ours_in_flight, "calls_per_s", min)
    ray_time, dask_time = (_over_pools(results, f"calls {peer}") for peer in PEERS)
    ray_rate, dask_rate = (number(results, f"calls in flight {peer}", "calls_per_s") for peer in PEERS)
    return [
        Row(
            what="no-op `>>`, p50",
            limit=milliseconds(time_limit),
            ours=milliseconds(slowest),
            ray=milliseconds(ray_time),
            dask=milliseconds(dask_time),
            criteria=(
                Criterion("limit", slowest.over(time_limit), at_most=1.3),
                Criterion("Ray", slowest.over(ray_time), at_most=0.4),
            ),
            bounded_by="thread and process wake-ups and the pickling at both ends, which the bare chain has too",
        ),
        Row(
            what="10,000 no-ops in flight, one node with two slots",
            limit=rate(rate_limit),
            ours=rate(lowest),
            ray=rate(ray_rate),
            dask=rate(dask_rate),
            criteria=(
                Criterion("limit", lowest.over(rate_limit), at_least=0.6),
                Criterion("Ray", lowest.over(ray_rate), at_least=5),
                Criterion("Dask", lowest.over(dask_rate), at_least=10),
            ),
            bounded_by="CPU of the client, agent and workers, which share the cores of one machine",
        ),
    ]


def _over_pools(results: Results, name: str) -> Number:
    """
    Take the mean of a call's time over all pools, or chains.

    Each has one of two times, 0.1 ms apart, by the cores that its processes are on; a median is now the one, now the
    other.
    """
    return number(results, name, "p50_ms", statistics.fmean)


def details(results: Results) -> list[tuple[str, str, str]]:
    """
    List what each variant of ours took.
    """
    taken = []
    for variant, meaning in VARIANTS.items():
        p50 = _over_pools(results, f"calls Skyward {variant}")
        calls = number(results, f"calls in flight Skyward {variant}", "calls_per_s")
        taken.append((meaning, milliseconds(p50), rate(calls)))
    return taken


if __name__ == "__main__":
    what, system, variant, *count = sys.argv[1:]
    answer(measure_time(system, variant) if what == "time" else measure_rate(system, variant, *map(int, count)))
