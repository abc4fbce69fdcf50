"""
Callers beside each other on one pool, and calls that are taken back.

usage: python -m measure.turns beside map|gather|futures SECONDS
       python -m measure.turns cancel SYSTEM COUNT
"""

from __future__ import annotations

import contextlib
import math
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from measure.calls import add
from measure.distance import SLOTS, WAYS, sleep_10
from measure.harness import Job, Results, answer, module, number, worst_of
from measure.peers import open_ray
from measure.ssh import pool_of, shown
from measure.table import Criterion, Number, Row, milliseconds

CROWD = 8_000
TASK_MS = 10.0
CALLS = 30
"""Single calls that are timed beside the crowd."""
PATIENCE_S = {"quick": 3.0, "full": 8.0}
"""Seconds after which no further one is begun."""
COUNTS = (3_000, 10_000, 30_000, 100_000)
QUICK_COUNTS = (3_000, 10_000, 30_000)
ENOUGH_S = 15.0
"""Seconds of cancelling after which no larger number is tried."""
BEAT_S = 0.002


def beside(way: str, patience_s: float) -> dict[str, float]:
    """
    Time single no-ops one after the other, while another thread has 8,000 tasks of 10 ms run.
    """
    import skyward as sky

    plain = sky.function(add)
    waits: list[float] = []
    with contextlib.suppress(_Left), pool_of(sky.Local(), concurrency=SLOTS) as pool:
        # All slots have been started, and the functions are known.
        pool.map(sleep_10, range(100))
        plain(1) >> pool
        threading.Thread(target=_crowd, args=(way, pool), daemon=True).start()
        time.sleep(1.0)
        began = time.perf_counter()
        while len(waits) < CALLS and time.perf_counter() - began < patience_s:
            started = time.perf_counter()
            plain(1) >> pool
            waits.append(time.perf_counter() - started)
        if time.perf_counter() - began > CROWD * TASK_MS / 1e3 / SLOTS - 2.0:
            # The crowd went first and is gone: that is what was waited for.
            waits = [max(waits)]
        raise _Left
    return {"wait_ms": statistics.median(waits) * 1e3, "longest_ms": max(waits) * 1e3, "calls": float(len(waits))}


class _Left(Exception):
    """Leave a pool without waiting for what runs."""


def _crowd(way: str, pool: Any) -> None:
    # The pool is left before it is done.
    with contextlib.suppress(BaseException):
        WAYS[way](pool, sleep_10, CROWD)


def wait_for(path: str) -> None:
    while not Path(path).exists():
        time.sleep(0.01)


@contextlib.contextmanager
def longest_pause() -> Iterator[Callable[[], float]]:
    """
    Watch for how long the engine's loop does nothing else, in seconds.
    """
    from skyward.engine.pool.event_loop import engine_loop

    loop, longest, over = engine_loop().loop, [0.0], threading.Event()

    def beat(before: float) -> None:
        now = time.perf_counter()
        longest[0] = max(longest[0], now - before - BEAT_S)
        if not over.is_set():
            loop.call_later(BEAT_S, beat, now)

    loop.call_soon_threadsafe(lambda: beat(time.perf_counter() - BEAT_S))
    try:
        yield lambda: longest[0]
    finally:
        over.set()


def cancel_ours(count: int) -> dict[str, float]:
    """
    Cancel futures of calls that wait, one by one, until the pool has forgotten them all.
    """
    import skyward as sky

    plain, blocker = sky.function(add), sky.function(wait_for)
    with tempfile.TemporaryDirectory() as folder, pool_of(sky.Local(), concurrency=SLOTS) as pool:
        path = Path(folder, "go")
        plain(1) >> pool
        blocking = [blocker(str(path)) > pool for _ in range(SLOTS)]
        waiting = [plain(i) > pool for i in range(count)]
        with longest_pause() as pause:
            started = time.perf_counter()
            for future in waiting:
                future.cancel()
            path.touch()
            # Its turn comes when nothing is before it any more.
            plain(1) >> pool
            took = time.perf_counter() - started
        for future in blocking:
            future.result()
        assert all(future.cancelled() for future in waiting)
        return {"us_each": took / count * 1e6, "seconds": took, "pause_ms": pause() * 1e3}


def cancel_ray(count: int) -> dict[str, float]:
    """
    Do the same with Ray.
    """
    with tempfile.TemporaryDirectory() as folder, open_ray(1, SLOTS, False) as face:
        ray, path = face.ray, Path(folder, "go")  # type: ignore[attr-defined]
        plain, blocker = face.prepare(add), face.prepare(wait_for)
        face.call(plain, 1)
        blocking = [blocker.remote(str(path)) for _ in range(SLOTS)]
        waiting = [plain.remote(i) for i in range(count)]
        started = time.perf_counter()
        for reference in waiting:
            ray.cancel(reference)
        path.touch()
        face.call(plain, 1)
        took = time.perf_counter() - started
        ray.get(blocking)
        return {"us_each": took / count * 1e6, "seconds": took}


def cancel_growing(counts: tuple[int, ...]) -> dict[str, float]:
    """
    Cancel ever more until that takes too long; the order of growth is that between the last two numbers.
    """
    found: dict[str, float] = {}
    before: tuple[int, float] | None = None
    for count in counts:
        values = cancel_ours(count)
        found.update(values, count=float(count))
        if before is not None:
            found["exponent"] = math.log(values["seconds"] / before[1]) / math.log(count / before[0])
        before = count, values["seconds"]
        if values["seconds"] > ENOUGH_S:
            break
    return found


def jobs(quick: bool) -> dict[str, Job]:
    """
    List what has to be run.
    """
    counts = QUICK_COUNTS if quick else COUNTS
    patience = f"{PATIENCE_S['quick' if quick else 'full']}"
    listed = {f"turns beside {way}": module("measure.turns", "beside", way, patience) for way in WAYS}
    listed["turns cancel"] = module("measure.turns", "cancel", "Skyward", *map(str, counts))
    if not quick:
        listed["turns cancel Ray"] = module("measure.turns", "cancel", "Ray", "30000", needs="Ray")
    return listed


def rows(results: Results) -> list[Row]:
    """
    Judge turns and cancelling.
    """

    def of(field: str) -> Number:
        return number(results, "turns cancel", field)

    waits = worst_of({way: number(results, f"turns beside {way}", "wait_ms") for way in WAYS}, max)
    longest = worst_of({way: number(results, f"turns beside {way}", "longest_ms") for way in WAYS}, max)
    ray = number(results, "turns cancel Ray", "us_each")
    reached = f"{of('count').value:,.0f}" if of("count").value else "Many"
    return [
        Row(
            what=f"a no-op beside {CROWD:,} tasks of {TASK_MS:g} ms of another thread, p50 "
            f"(the longest: {milliseconds(longest)})",
            limit=milliseconds(Number(TASK_MS)),
            ours=milliseconds(waits),
            criteria=(Criterion("a task", waits.over(Number(TASK_MS)), at_most=2),),
            bounded_by="the tasks that run when it comes",
        ),
        Row(
            what=f"{reached} futures cancelled one by one (the last number that took no more than {ENOUGH_S:g} s "
            f"to go beyond; Ray: 30,000)",
            ours=shown(of("us_each"), "µs each"),
            ray=shown(ray, "µs each"),
            criteria=(
                Criterion("each", of("us_each").value, at_most=20, unit="µs"),
                Criterion("cancelled", of("count").value, at_least=COUNTS[-2], unit="calls"),
                Criterion("of growth in calls", of("exponent").value, at_most=1.15, unit="as exponent"),
                Criterion("the loop's longest pause", of("pause_ms").value, at_most=50, unit="ms"),
            ),
            bounded_by="one entry of the queue each",
        ),
    ]


if __name__ == "__main__":
    what, which, *counts = sys.argv[1:]
    if what == "beside":
        answer(beside(which, float(counts[0])))
    else:
        numbers = tuple(map(int, counts))
        answer(cancel_growing(numbers) if which == "Skyward" else cancel_ray(numbers[0]))
