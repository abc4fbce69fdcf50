"""
Maps whose iterators and consumers take their time.

usage: python -m measure.streams slow quick|full
       python -m measure.streams search|endless
       python -m measure.streams paused local|ssh RESULTS MB
"""

from __future__ import annotations

import contextlib
import itertools
import os
import queue
import sys
import time
from collections.abc import Iterator
from typing import Any

from measure.distance import SLOTS
from measure.harness import Job, Results, answer, module, number, worst_of
from measure.memory import mappings, open_memfds
from measure.ssh import pool_of, provider, shown, site
from measure.table import Criterion, Number, Row, percent, seconds

MB = 1_000_000
ITEM_S = 0.1
"""Seconds between two items of the slow iterator, and of one of its tasks."""
WATCHED_S = 6.0
"""Seconds that a map is watched; longer only until its first result."""
SEARCH_MS = 20
GIVEN_UP_S = 2.0
"""Seconds without a result after which a search gives up."""
FIRST_S = 2.0
"""Seconds that the first task of the endless map takes."""
STILL_S = 1.0
"""Seconds without a change after which a paused map is taken to have come to rest."""
PULLED = 1000
"""
Items that may be pulled of an endless iterator whose first task is slow.

Two a slot, and what keeps the other slots busy: some 15,000 no-ops a second over about 50 ms.
"""
HELD_MB = 270 + 100
"""Megabytes that a client may hold: 256 MiB, and the result of 100 MB that the consumer has."""


def slow_task(i: int) -> int:
    time.sleep(ITEM_S)
    return i


def search_task(i: int) -> int:
    time.sleep(SEARCH_MS / 1e3)
    return i


def first_is_slow(i: int) -> int:
    time.sleep(0 if i else FIRST_S)
    return i


def bytes_of(size: int) -> Any:
    import numpy as np

    return np.ones(size, dtype=np.uint8)


class _Left(Exception):
    """Leave a pool without waiting for what runs."""


def slow(size: str) -> dict[str, float]:
    """
    Map over an iterator that has an item every 0.1 s, with tasks of 0.1 s.
    """
    import skyward as sky

    began = 0.0

    def items() -> Iterator[int]:
        # Each is there at its time, as a reading of a sensor would be.
        for i in itertools.count():
            time.sleep(max(0.0, began + (i + 1) * ITEM_S - time.perf_counter()))
            yield i

    found: dict[str, float] = {}
    for ordered in (True,) if size == "quick" else (True, False):
        with contextlib.suppress(_Left), pool_of(sky.Local(), concurrency=SLOTS) as pool:
            pool.map(slow_task, range(SLOTS))
            began, taken, first = time.perf_counter(), 0, 0.0
            for _ in pool.map(slow_task, items(), stream=True, ordered=ordered):
                elapsed = time.perf_counter() - began
                taken, first = taken + 1, first or elapsed
                if elapsed > WATCHED_S:
                    break
            # The first item and its task are before the first result.
            ideal = (elapsed - 2 * ITEM_S) / ITEM_S + 1
            found = {
                "first_s": max(first, found.get("first_s", 0.0)),
                "rate": min(100 * taken / ideal, found.get("rate", 100.0)),
            }
            raise _Left
    return found


def search() -> dict[str, float]:
    """
    Map over an iterator that has another item for each result, as a search does: once as many as slots, once twice.
    """
    import skyward as sky

    found: dict[str, float] = {}
    for seeds in (SLOTS, 2 * SLOTS):
        results: queue.SimpleQueue[int] = queue.SimpleQueue()

        def items(seeds: int = seeds, results: queue.SimpleQueue[int] = results) -> Iterator[int]:
            yield from range(seeds)
            with contextlib.suppress(queue.Empty):
                while True:
                    yield results.get(timeout=GIVEN_UP_S) + seeds

        with contextlib.suppress(_Left), pool_of(sky.Local(), concurrency=SLOTS) as pool:
            pool.map(search_task, range(10 * SLOTS))
            began, taken = time.perf_counter(), 0
            for result in pool.map(search_task, items(), stream=True, ordered=False):
                taken += 1
                if time.perf_counter() - began > WATCHED_S / 2:
                    break
                results.put(result)
            ideal = (time.perf_counter() - began) * SLOTS / (SEARCH_MS / 1e3)
            found[f"rate_{seeds}"] = 100 * taken / ideal
            raise _Left
    return found


def endless() -> dict[str, float]:
    """
    Map over an endless iterator in order, the first task being slow, and count the items taken until its result.
    """
    import skyward as sky

    pulled = 0

    def items() -> Iterator[int]:
        nonlocal pulled
        while True:
            pulled += 1
            yield pulled - 1

    with contextlib.suppress(_Left), pool_of(sky.Local(), concurrency=SLOTS) as pool:
        pool.map(first_is_slow, range(1, 10 * SLOTS))
        for _ in pool.map(first_is_slow, items(), stream=True):
            break
        raise _Left
    return {"pulled": float(pulled)}


def own_bytes() -> int:
    """
    Count what this process holds: its own pages, and what it has of shared memory, mapped or not.
    """
    pid = os.getpid()
    own, seen = mappings(pid)
    memfds = dict(seen)
    for key, size in open_memfds(pid).items():
        memfds[key] = max(memfds.get(key, 0), size)
    return own + sum(memfds.values())


def at_rest(seconds_at_most: float) -> tuple[int, int]:
    """
    Wait until what this process holds changes no more, and count it: at rest, and the most before that.
    """
    held = most = own_bytes()
    since = began = time.perf_counter()
    while time.perf_counter() - since < STILL_S and time.perf_counter() - began < seconds_at_most:
        time.sleep(0.05)
        before, held = held, own_bytes()
        most = max(most, held)
        if abs(held - before) > MB:
            since = time.perf_counter()
    return held, most


def paused(over: str, results: int, size_mb: int) -> dict[str, float]:
    """
    Take one result of a map of large ones, pause, and count what the client holds.
    """
    import skyward as sky

    with contextlib.ExitStack() as stack, contextlib.suppress(_Left):
        given: Any = sky.Local()
        if over == "ssh":
            given = provider(*stack.enter_context(site()))
        with pool_of(given, concurrency=SLOTS) as pool:
            pool.map(bytes_of, [1] * SLOTS)
            before = own_bytes()
            stream = pool.map(bytes_of, [size_mb * MB] * results, stream=True)
            first = next(stream)
            held, most = at_rest(30.0)
            assert len(first) == size_mb * MB
            raise _Left
    return {
        "held_mb": (held - before) / MB,
        "most_mb": (most - before) / MB,
        "asked_mb": float(results * size_mb),
    }


def jobs(quick: bool) -> dict[str, Job]:
    """
    List what has to be run.
    """
    large = ("20", "25") if quick else ("20", "100")
    return {
        "streams slow": module("measure.streams", "slow", "quick" if quick else "full"),
        "streams search": module("measure.streams", "search"),
        "streams endless": module("measure.streams", "endless"),
        **{f"streams paused {over}": module("measure.streams", "paused", over, *large) for over in ("local", "ssh")},
    }


def rows(results: Results) -> list[Row]:
    """
    Judge iterators and what a map holds.
    """
    first, flow = (number(results, "streams slow", field) for field in ("first_s", "rate"))
    searching = worst_of(
        {
            "as many items out as slots": number(results, "streams search", f"rate_{SLOTS}"),
            "twice as many": number(results, "streams search", f"rate_{2 * SLOTS}"),
        },
        min,
    )
    pulled = number(results, "streams endless", "pulled")
    held = worst_of({over: number(results, f"streams paused {over}", "held_mb") for over in ("local", "ssh")}, max)
    most = worst_of({over: number(results, f"streams paused {over}", "most_mb") for over in ("local", "ssh")}, max)
    asked = number(results, "streams paused local", "asked_mb")
    return [
        Row(
            what="`map(stream=True)` over an item each 0.1 s, tasks of 0.1 s: the first result",
            limit=seconds(Number(2 * ITEM_S)),
            ours=seconds(first),
            criteria=(Criterion("to the first", first.value, at_most=0.3, unit="s"),),
            bounded_by="the first item and its task",
        ),
        Row(
            what="the same: its rate",
            limit="100 %",
            ours=percent(flow),
            criteria=(Criterion("of the ideal rate", flow.value, at_least=95, unit="%"),),
            bounded_by="the iterator",
        ),
        Row(
            what=f"an iterator that waits for results, {SLOTS} slots, tasks of {SEARCH_MS} ms: its rate",
            limit="100 %",
            ours=percent(searching),
            criteria=(Criterion("of the ideal rate", searching.value, at_least=90, unit="%"),),
            bounded_by="the way of a result to the iterator and of an item to the slot, in which the slot is idle",
        ),
        Row(
            what=f"items pulled of an endless iterator while the first of {SLOTS} slots is busy for {FIRST_S:g} s, "
            f"the other tasks being no-ops",
            limit=shown(Number(2.0 * SLOTS), "items"),
            ours=shown(pulled, "items"),
            criteria=(Criterion("pulled", pulled.value, at_most=PULLED, unit="items"),),
            bounded_by="two an idle slot, and what keeps slots busy that run thousands of no-ops a second",
        ),
        Row(
            what=f"bytes that the client holds of {shown(asked, 'MB')} of results, when its consumer pauses",
            limit=shown(Number(asked.value / 20) if asked.value else asked, "MB"),
            ours=shown(held, "MB")
            if held.value is None
            else f"{held.value:.0f} MB ({held.note}; {most.value or 0:.0f} MB while the first arrive)",
            criteria=(Criterion("held", held.value, at_most=HELD_MB, unit="MB"),),
            bounded_by="the result that was taken, and the window of those that were not; what slots run at once "
            "arrives in memory",
        ),
    ]


if __name__ == "__main__":
    mode, *words = sys.argv[1:]
    if mode == "paused":
        answer(paused(words[0], *map(int, words[1:])))
    else:
        answer({"slow": slow, "search": search, "endless": endless}[mode](*words))
