"""
What the engine costs with ten, a hundred and a thousand nodes, which are simulated in its own loop.

usage: python -m measure.nodes NODES
"""

from __future__ import annotations

import gc
import math
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from threading import Event
from typing import Any, Self

from measure.harness import Job, Results, answer, module, number
from measure.simulated import SimulatedCloud
from measure.table import MISSING, Criterion, Number, Row, percent

SIZES = (10, 100, 1000)
TASK_S = 0.05
TASKS_A_NODE = 40
IDLE_S = 3.0
LOOK_S = 0.001
PATIENCE_S = 120.0


def one() -> None:
    return None


class Stillness:
    """
    Find out for how long a loop does nothing that it is asked, at worst, and how much of that it works.

    Args:
        loop: The loop; asked every millisecond while the block lasts.
    """

    def __init__(self, loop: Any) -> None:
        self._loop = loop
        self._last = self._used = 0.0
        self._on = True
        self.worst_s = self.worst_cpu_s = 0.0

    def __enter__(self) -> Self:
        # What the collector finds of the calls before is none of this.
        gc.collect()
        self._last, self._used = time.perf_counter(), cpu_of(self._loop)
        self._loop.call_soon_threadsafe(self._look)
        return self

    def __exit__(self, *_: object) -> None:
        self._on = False

    def _look(self) -> None:
        now, used = time.perf_counter(), time.thread_time()
        self.worst_s = max(self.worst_s, now - self._last)
        self.worst_cpu_s = max(self.worst_cpu_s, used - self._used)
        self._last, self._used = now, used
        if self._on:
            self._loop.call_later(LOOK_S, self._look)


def cpu_of(loop: Any) -> float:
    """
    Read the CPU time that the loop's thread has used, in seconds.
    """
    times: list[float] = []
    there = Event()

    def read() -> None:
        times.append(time.thread_time())
        there.set()

    loop.call_soon_threadsafe(read)
    there.wait(PATIENCE_S)
    return times[0]


def until(holds: Callable[[], bool]) -> None:
    """
    Wait for something to hold.
    """
    deadline = time.perf_counter() + PATIENCE_S
    while not holds():
        if time.perf_counter() > deadline:
            raise TimeoutError(f"It did not come to hold within {PATIENCE_S:g} s.")
        time.sleep(0.005)


def measure(nodes: int) -> dict[str, float]:
    """
    Open a pool, let it idle and work, take a tenth of it away, and leave it.
    """
    import skyward as sky
    from skyward.engine.pool.event_loop import engine_loop

    os.environ["SKYWARD_STATE"] = tempfile.mkdtemp()
    task, cloud, loop = sky.function(one), SimulatedCloud(TASK_S), engine_loop().loop
    pool = sky.Compute(provider=cloud, nodes=nodes, console="silent", logging=False)
    # The console wants them, too.
    pool.on(sky.Metrics, lambda event: None)
    ready: list[float] = []
    with Stillness(loop) as opening:
        began = time.perf_counter()
        pool.open()
        opened = time.perf_counter() - began
    try:
        for call in [task() > pool for _ in range(2 * nodes)]:
            call.result()
        told = cloud.members_sent
        before = cpu_of(loop)
        for call in [task() > pool for _ in range(TASKS_A_NODE * nodes)]:
            call.result()
        worked = cpu_of(loop) - before
        before = time.process_time()
        time.sleep(IDLE_S)
        idled = time.process_time() - before

        pool.on(sky.NodeReady, lambda event: ready.append(time.perf_counter()))
        victims, calls = list(cloud.machines.values())[::10], [task() > pool for _ in range(3 * nodes)]
        granted, told_before = len(cloud.granted), cloud.members_sent
        with Stillness(loop) as losing:
            began = time.perf_counter()
            loop.call_soon_threadsafe(lambda: [machine.lose() for machine in victims])
            until(lambda: len(ready) == len(victims))
        for call in calls:
            call.result()
        lost_told = cloud.members_sent - told_before
    finally:
        with Stillness(loop) as closing:
            pool.close()
    return {
        "open_s": opened,
        "opening_still_ms": opening.worst_s * 1e3,
        "opening_busy_ms": opening.worst_cpu_s * 1e3,
        "us_a_task": worked / (TASKS_A_NODE * nodes) * 1e6,
        "opening_told_bytes": float(told),
        "idle_percent": 100 * idled / IDLE_S,
        "lost_s": ready[-1] - began,
        "granted_to_ready_s": ready[-1] - cloud.granted[granted],
        "losing_still_ms": losing.worst_s * 1e3,
        "losing_busy_ms": losing.worst_cpu_s * 1e3,
        "losing_told_bytes": float(lost_told),
        "closing_still_ms": closing.worst_s * 1e3,
        "closing_busy_ms": closing.worst_cpu_s * 1e3,
        "rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0,
    }


def jobs(quick: bool) -> dict[str, Job]:
    """
    List what has to be run.
    """
    return {_name(size): module("measure.nodes", str(size)) for size in SIZES}


def rows(results: Results) -> list[Row]:
    """
    Judge what grows with the nodes, and what a loss does.
    """
    few, some, many = SIZES
    cpu = [number(results, _name(size), "us_a_task") for size in SIZES]
    opening, losing = ([number(results, _name(size), field) for size in SIZES] for field in _TOLD)
    return [
        Row(
            what=f"the engine's CPU a 50 ms task with {few}, {some} and {many:,} nodes",
            ours=_three(cpu, "{:.0f} µs", 1.0),
            criteria=(
                Criterion(f"that of {few}", cpu[2].over(cpu[0]), at_most=1.2),
                Criterion(f"that of {some}", cpu[2].over(cpu[1]), at_most=1.2),
            ),
            bounded_by="a wake-up of the loop for the results that come together: the fewer nodes, the fewer those",
        ),
        _told_row("a pool's opening and two tasks a node", opening),
        _told_row("the loss of a tenth while all work", losing),
        Row(
            what=f"{many // 10} of {many:,} nodes lost at once",
            ours=f"{_text(number(results, _name(many), 'lost_s'), 'all replaced after {:.2f} s')}"
            f"; {_busy(results, 'losing')}",
            criteria=(
                _bound(results, "granted_to_ready_s", "after the cloud gives machines", 3, "s"),
                _bound(results, "losing_still_ms", "without the loop", 100, "ms"),
            ),
            bounded_by="requests for 32 machines each",
        ),
        Row(
            what=f"opening and leaving a pool of {many:,} nodes",
            ours=f"{_text(number(results, _name(many), 'open_s'), 'open after {:.2f} s')}"
            f"; opening {_busy(results, 'opening')}, leaving {_busy(results, 'closing')}",
            criteria=(
                _bound(results, "opening_still_ms", "without the loop, opening", 100, "ms"),
                _bound(results, "closing_still_ms", "without the loop, leaving", 100, "ms"),
                _bound(results, "rss_bytes", "resident at most", 1e9, "bytes"),
            ),
            bounded_by="requests for 32 machines each, four at once, and what each node costs once",
        ),
        Row(
            what=f"an idle pool of {some} nodes: the client's CPU",
            ours=percent(number(results, _name(some), "idle_percent")),
            criteria=(Criterion("of a core", number(results, _name(some), "idle_percent").value, at_most=2, unit="%"),),
            bounded_by="what the nodes measure; half of it is spent by the simulated nodes themselves",
        ),
    ]


_TOLD = ("opening_told_bytes", "losing_told_bytes")


def _told_row(when: str, told: list[Number]) -> Row:
    growth = told[2].over(told[1])
    return Row(
        what=f"bytes of membership sent with {', '.join(f'{size:,}' for size in SIZES)} nodes: {when}",
        ours=_three(told, "{:,.1f} KB", 1e-3),
        criteria=(Criterion("nodes, exponent", None if not growth else math.log10(growth), at_most=1.15, unit="of"),),
        bounded_by="what a node has to know of a version: its rank, the totals, the head",
    )


def _three(numbers: list[Number], form: str, scale: float) -> str:
    return " / ".join(
        form.format(one.value * scale) if one.value is not None else one.note or MISSING for one in numbers
    )


def _busy(results: Results, when: str) -> str:
    return _text(number(results, _name(SIZES[-1]), f"{when}_busy_ms"), "{:.0f} ms of processor time in one go")


def _text(one: Number, form: str) -> str:
    return form.format(one.value) if one.value is not None else one.note or MISSING


def _bound(results: Results, field: str, against: str, at_most: float, unit: str) -> Criterion:
    return Criterion(against, number(results, _name(SIZES[-1]), field).value, at_most=at_most, unit=unit)


def _name(size: int) -> str:
    return f"nodes {size}"


if __name__ == "__main__":
    answer(measure(int(sys.argv[1])))
