"""
Lines that handlers have not taken when their pool is left.

usage: python -m measure.lines slow|stuck COUNT
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from pathlib import Path

from measure.harness import Job, Results, answer, module, number, worst_of
from measure.table import Criterion, Row, seconds

SLOW_S = 0.0002
"""Seconds that the slow handler takes for a line."""
HANDLERS = {"slow": "a handler that takes 0.2 ms for each", "stuck": "a handler that never ends"}


def talk(count: int) -> None:
    for i in range(count):
        print(i)


def left(kind: str, count: int) -> dict[str, float]:
    """
    Print many lines, leave the pool, and count those that neither the handler has nor the log.
    """
    import skyward as sky

    over, taken = threading.Event(), set[int]()

    def handler(line: sky.Log) -> None:
        if kind == "stuck":
            over.wait()
        until = time.perf_counter() + SLOW_S
        while time.perf_counter() < until:
            pass
        taken.add(int(line.line))

    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "sky.log")
        config = sky.LogConfig(file=log, console=False)
        pool = sky.Compute(provider=sky.Local(), console="silent", logging=config).on(sky.Log, handler)
        with pool:
            sky.function(talk)(count) >> pool
            began = time.perf_counter()
        took = time.perf_counter() - began
        had = set(taken)
        over.set()
        kept = {int(line.split()[-1]) for line in log.read_text().splitlines() if " undelivered node=" in line}
    return {"lost": float(count - len(had | kept)), "kept": float(len(kept)), "seconds": took, "lines": float(count)}


def jobs(quick: bool) -> dict[str, Job]:
    """
    List what has to be run.
    """
    count = "10000" if quick else "50000"
    return {f"lines {kind}": module("measure.lines", kind, count) for kind in HANDLERS}


def rows(results: Results) -> list[Row]:
    """
    Judge what is lost.
    """
    lost = worst_of({meaning: number(results, f"lines {kind}", "lost") for kind, meaning in HANDLERS.items()}, max)
    lines, slow, stuck = (
        number(results, name, field)
        for name, field in (("lines slow", "lines"), ("lines slow", "seconds"), ("lines stuck", "seconds"))
    )
    count = f"{lines.value:,.0f} " if lines.value else ""
    return [
        Row(
            what=f"of {count}lines, lost when the pool is left while a handler is behind "
            f"(leaving: {seconds(slow)} with a slow one, {seconds(stuck)} with one that never ends)",
            limit="0",
            ours=lost.note or "" if lost.value is None else f"{lost.value:,.0f}",
            criteria=(Criterion("lost", lost.value, at_most=0, unit="lines"),),
            bounded_by="nothing: the handler is waited for while it gets on, and the log has the rest",
        )
    ]


if __name__ == "__main__":
    answer(left(sys.argv[1], int(sys.argv[2])))
