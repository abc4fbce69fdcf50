"""
What the stored log of a pool costs: 100,000 events, lines and calls a minute, and as many as a pool can make.

usage: python -m measure.pool_log steady|burst SECONDS
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from types import SimpleNamespace
from typing import Any

from measure.harness import Job, Results, answer, module, number
from measure.table import Criterion, Row

A_MINUTE = 100_000
STEP_S = 0.01
LINE = "epoch 12, step 3456: loss 0.4123, accuracy 0.8312, 1234 samples a second"
BURST = 100_000


def happenings() -> list[Any]:
    """
    Make what happens in a tenth of a second, each as a function of a log: lines and calls mostly, and some events.
    """
    from skyward.link.messages import LogLine
    from skyward.model.events import event as events

    now = time.monotonic()
    call: Any = SimpleNamespace(id=7, function=SimpleNamespace(name="train"), asked=now, began=now, on=0)
    done: Any = SimpleNamespace(failed=False, stopped=False, node=0)
    ready = events.NodeSuspected(node=3, silent=16.0, reason="nothing was heard")
    lines = [LogLine(7, LINE)]

    def line(log: Any) -> None:
        log.lines(0, 1, lines)

    def one_call(log: Any) -> None:
        log.began(call, 0)
        log.ended(call, done, again=False)

    def event(log: Any) -> None:
        log.event(ready)

    return [event if i % 10 == 0 else line if i % 2 else one_call for i in range(A_MINUTE // 600)]


def steady(log: Any, seconds: float) -> float:
    """
    Let so much happen for some seconds, and return the share of a core that the process has used.
    """
    todo = happenings()
    began, used = time.perf_counter(), time.process_time()
    steps = int(seconds / STEP_S)
    for step in range(steps):
        for happens in todo[step % 10 :: 10]:
            happens(log)
        time.sleep(max(0.0, began + (step + 1) * STEP_S - time.perf_counter()))
    return (time.process_time() - used) / (time.perf_counter() - began)


def burst(log: Any) -> float:
    """
    Return the microseconds that a call costs whatever makes it, of many in a row.
    """
    one_call = happenings()[2]
    began = time.perf_counter()
    for _ in range(BURST):
        one_call(log)
    return (time.perf_counter() - began) / BURST * 1e6


def measured(kind: str, seconds: float) -> dict[str, float]:
    """
    Measure with a log and without one.
    """
    from skyward.engine.logs.pool_log import NOT_STORED
    from skyward.engine.logs.stored_log import StoredLog
    from skyward.plan.logs.hidden_values import Hidden

    with tempfile.TemporaryDirectory() as state:
        os.environ["SKYWARD_STATE"] = state
        facts = {"id": "measured", "name": "measured", "began": time.time()}
        log = StoredLog("measured", facts, Hidden(["a secret that never comes"]))
        log.start()
        time.sleep(0.5)
        take = (lambda log: steady(log, seconds)) if kind == "steady" else burst
        without, with_it = take(NOT_STORED), take(log)
        log.close("ended", "", None)
        size = sum(entry.stat().st_size for entry in os.scandir(log.folder))
    return {"cost": with_it - without, "bytes": float(size)}


def jobs(quick: bool) -> dict[str, Job]:
    """
    List what has to be run.
    """
    return {f"log {kind}": module("measure.pool_log", kind, "5" if quick else "20") for kind in ("steady", "burst")}


def rows(results: Results) -> list[Row]:
    """
    Judge what it costs.
    """
    share, each = number(results, "log steady", "cost"), number(results, "log burst", "cost")
    called = "" if each.value is None else f" (a no-op call in a burst of {BURST:,}: {each.value:.1f} µs)"
    return [
        Row(
            what=f"stored log: processor time of {A_MINUTE:,} events, lines and calls a minute{called}",
            limit="5 %",
            ours=share.note or "" if share.value is None else f"{share.value:.1%}",
            criteria=(Criterion("of a core", share.value, at_most=0.05, unit=""),),
            bounded_by="one write each quarter of a second",
        )
    ]


if __name__ == "__main__":
    answer(measured(sys.argv[1], float(sys.argv[2])))
