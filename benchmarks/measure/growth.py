"""
Order of growth: how the time of the same work grows with the number of calls and of bytes.

usage: python -m measure.growth calls|bytes quick|full

The exponent is 1 where twice as much takes twice as long, and 2 where it takes four times as long.
It is that between the largest number and one that is a tenth or a quarter of it; of each the best of three counts.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import Any

from measure.calls import add
from measure.data import MIB
from measure.distance import SLOTS, WAYS
from measure.harness import Job, Results, answer, module, number, worst_of
from measure.ssh import pool_of
from measure.table import Criterion, Number, Row

REPEATS = 3
EXPONENT = 1.1
CALLS = {"quick": (1_000, 10_000), "full": (5_000, 50_000)}
BYTES = {"quick": (16 * MIB, 64 * MIB), "full": (64 * MIB, 256 * MIB)}
PARTS = {"quick": (500, 5_000), "full": (1_000, 10_000)}
KINDS = {
    "array": "arrays",
    "text": "text",
    "parts": "arrays of 4 KiB in one argument",
    "result": "arrays as results",
}


def best(run: Callable[[int], object]) -> float:
    """
    Take the best of three times, each time with other content.
    """
    times = []
    for turn in range(REPEATS):
        began = time.perf_counter()
        run(turn)
        times.append(time.perf_counter() - began)
    return min(times)


def exponent(small: tuple[float, float], large: tuple[float, float]) -> float:
    """
    Take the exponent between two sizes and their times.

    >>> exponent((10, 1.0), (20, 4.0))
    2.0
    """
    return math.log(large[1] / small[1]) / math.log(large[0] / small[0])


def size_of(content: Any) -> int:
    return len(content)


def array_of(size: int) -> Any:
    import numpy as np

    return np.ones(size, dtype=np.uint8)


def content(kind: str, count: int, turn: int) -> Any:
    """
    Make what is sent: nothing of it was sent before.
    """
    import numpy as np

    if kind == "text":
        return f"{turn} is what this text is about. " * (count // 30)
    if kind == "parts":
        return [np.full(4096, i % 251 + turn, dtype=np.uint8) for i in range(count)]
    return np.full(count, turn, dtype=np.uint8)


def calls(size: str) -> dict[str, float]:
    """
    Take the growth with calls, for each way to ask for them.
    """
    import skyward as sky

    found = {}
    with pool_of(sky.Local(), concurrency=SLOTS) as pool:
        pool.map(add, range(1000))
        for way, run in WAYS.items():
            small, large = CALLS[size]
            times = [(count, best(lambda _, count=count, run=run: run(pool, add, count))) for count in (small, large)]
            found[way] = exponent(*times)
    return found


def data(size: str) -> dict[str, float]:
    """
    Take the growth with bytes, for each kind of them.
    """
    import skyward as sky

    measured, made = sky.function(size_of), sky.function(array_of)
    found = {}
    with pool_of(sky.Local(), concurrency=SLOTS) as pool:
        for kind in KINDS:
            times = []
            # The large ones first: what a pool needs in memory for them is there then.
            for count in reversed(PARTS[size] if kind == "parts" else BYTES[size]):
                if kind == "result":
                    times.append((count, best(lambda turn, count=count: made(count + turn) >> pool)))
                    continue
                given = [content(kind, count, turn) for turn in range(REPEATS)]
                times.append((count, best(lambda turn, given=given: measured(given[turn]) >> pool)))
            found[kind] = exponent(*reversed(times))
    return found


def jobs(quick: bool) -> dict[str, Job]:
    """
    List what has to be run.
    """
    size = "quick" if quick else "full"
    return {f"growth {what}": module("measure.growth", what, size) for what in ("calls", "bytes")}


def rows(results: Results) -> list[Row]:
    """
    Judge the growth.
    """

    def row(what: str, worst: Number) -> Row:
        return Row(
            what=f"order of growth of the time with {what}: the exponent",
            limit="1.00",
            ours=worst.note or "" if worst.value is None else f"{worst.value:.2f} ({worst.note})",
            criteria=(Criterion("of growth", worst.value, at_most=EXPONENT, unit="as exponent"),),
            bounded_by="the work itself, which is as much for each",
        )

    of_calls = worst_of({way: number(results, "growth calls", way) for way in WAYS}, max)
    of_bytes = worst_of({meaning: number(results, "growth bytes", kind) for kind, meaning in KINDS.items()}, max)
    return [row("calls, 10 times as many no-ops", of_calls), row("bytes, 4 to 10 times as many", of_bytes)]


if __name__ == "__main__":
    what, size = sys.argv[1:]
    answer({"calls": calls, "bytes": data}[what](size))
