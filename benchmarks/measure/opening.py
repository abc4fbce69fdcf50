"""
Opening and leaving pools on hosts that are far away: in round trips, in seconds, and many hosts at once.

usage: python -m measure.opening trips|far|many

Round trips are what a longer one adds, divided by how much longer it is: all that does not wait for the line drops out.
"""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from typing import Any

from measure.calls import add
from measure.harness import HERE, Job, Results, answer, module, number
from measure.ssh import pool_of, provider, shown, site
from measure.table import Criterion, Number, Row, seconds

sys.path.insert(0, str(HERE.parent))

LONG = 1.0
FAR = 0.2
HOSTS = 20
PREPARES = 0.5
MODES = ("trips", "far", "many")


def opened(given: Any, count: int = 1) -> tuple[float, float, float]:
    """
    Open a pool, and leave it: seconds until it is open, until its first result, and until it is left.
    """
    import skyward as sky

    plain, began = sky.function(add), time.perf_counter()
    with pool_of(given, nodes=count) as pool:
        entered = time.perf_counter()
        plain(1) >> pool
        answered = time.perf_counter()
    return entered - began, answered - began, time.perf_counter() - answered


def over(trip: float) -> tuple[float, float, float]:
    """
    Open a pool on a prepared host whose round trip takes so many seconds.
    """
    from tests.delayed import Delayed

    with site() as (made, key):
        opened(provider(made, key))
        with Delayed(made[0].address, made[0].port, trip) as line:
            return opened(provider(made, key, [line.port]))


def trips() -> dict[str, float]:
    """
    Count the round trips.
    """
    near = [min(times) for times in zip(over(0.0), over(0.0), strict=True)]
    far = [min(times) for times in zip(over(LONG), over(LONG), strict=True)]
    enter, result, leave = ((long - short) / LONG for long, short in zip(far, near, strict=True))
    return {"enter": enter, "result": result, "exit": leave}


def far() -> dict[str, float]:
    """
    Time it at 200 ms.
    """
    found = [min(times) for times in zip(*(over(FAR) for _ in range(2)), strict=True)]
    return dict(zip(("enter_s", "result_s", "exit_s"), found, strict=True))


def many() -> dict[str, float]:
    """
    Open a pool on one fresh machine and on twenty, simulated in another process: what the line and the client take.
    """
    found = {}
    for count in (1, 1, HOSTS):
        found[f"enter_{count}_s"], found[f"cpu_{count}_s"] = _crowd(count)
    return found


def _crowd(count: int) -> tuple[float, float]:
    """
    Give the seconds until a pool of fresh machines is open, and those in which the client's processor was at work.
    """
    from attrs import evolve

    import skyward as sky
    from tests.delayed import Delayed
    from tests.simulated.crowd import crowd

    with crowd(count, PREPARES) as addresses, ExitStack() as stack:
        lines = [stack.enter_context(Delayed(one.host, one.port or 0, FAR)) for one in addresses]
        given = sky.SSH([evolve(one, port=line.port) for one, line in zip(addresses, lines, strict=True)])
        began, worked = time.perf_counter(), time.process_time()
        with pool_of(given, nodes=count):
            return time.perf_counter() - began, time.process_time() - worked


def whole(value: Number) -> str:
    """
    Write a number of round trips.
    """
    return shown(value, "round trips")


def jobs(quick: bool) -> dict[str, Job]:
    """
    List what has to be run.
    """
    return {f"opening {mode}": module("measure.opening", mode) for mode in MODES}


def rows(results: Results) -> list[Row]:
    """
    Judge all of it.
    """

    def of(mode: str, field: str) -> Number:
        return number(results, f"opening {mode}", field, min)

    enter, leave = of("trips", "enter"), of("trips", "exit")
    one, all_of, cpu = of("many", "enter_1_s"), of("many", f"enter_{HOSTS}_s"), of("many", f"cpu_{HOSTS}_s")
    times = [value.value for value in (one, all_of, cpu, of("many", "cpu_1_s"))]
    beyond = None
    if all(value is not None for value in times):
        first, last, its, own = (float(value or 0.0) for value in times)
        beyond = (last - its) / (first - own)
    return [
        Row(
            what="round trips until a pool is open on a prepared host, TCP's among them",
            ours=whole(enter),
            criteria=(Criterion("rounded", _rounded(enter), at_most=8, unit="round trips"),),
            bounded_by="TCP 1, SSH's versions, keys and login 1 each, a channel 1, and then 3 questions",
        ),
        Row(
            what="round trips until that pool is left",
            ours=whole(leave),
            criteria=(Criterion("rounded", _rounded(leave), at_most=2, unit="round trips"),),
            bounded_by="the node is asked to leave while a channel is opened, which then says that nothing is left",
        ),
        Row(
            what="a pool on a prepared host at 200 ms is open",
            ours=seconds(of("far", "enter_s")),
            criteria=(Criterion("in all", of("far", "enter_s").value, at_most=3, unit="s"),),
            bounded_by="8 round trips, and what the host and the client compute",
        ),
        Row(
            what=f"a pool on {HOSTS} fresh hosts at 200 ms is open (limit: on one)",
            limit=seconds(one),
            ours=seconds(all_of),
            criteria=(Criterion("one host, beyond the client's own CPU", beyond, at_most=1.5),),
            bounded_by="the client's logins; the hosts are simulated in another process",
        ),
    ]


def _rounded(value: Number) -> float | None:
    """
    Round to whole round trips, which is what there can be; the rest is what a busy machine adds.
    """
    return None if value.value is None else float(round(value.value))


if __name__ == "__main__":
    answer({"trips": trips, "far": far, "many": many}[sys.argv[1]]())
