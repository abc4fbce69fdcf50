"""
A 256 MiB array as argument and back: the time it takes, and the memory it needs.

usage: python -m measure.arrays SYSTEM VARIANT time|memory
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from measure import held
from measure.harness import Job, Results, answer, limit, module, number, worst
from measure.peers import PEERS, SYSTEMS, System, open_system
from measure.table import NONE, Criterion, Number, Row, mebibytes, seconds

BYTES = 256 << 20
REPEATS = 12
ANOTHER = "another"
VARIANTS = {
    "plain": "the array alone",
    "all": "a 1 kB dict beside it, closures, two functions in turn, events, logs and timeouts on",
}


def back(array: Any) -> Any:
    return array


def another(array: Any) -> Any:
    from measure import held

    return held.array(array.nbytes)


def returner(names: tuple[str, ...]) -> Callable[..., Any]:
    def back_with(array: Any, settings: dict[str, int]) -> Any:
        if len(settings) != len(names):
            raise ValueError("The dict came incomplete.")
        return array

    return back_with


def workload(variant: str) -> tuple[Sequence[Callable[..., Any]], tuple[Any, ...]]:
    """
    Choose the functions and what they get besides the array.
    """
    if variant in ("plain", ANOTHER):
        return (back if variant == "plain" else another,), ()
    settings = {f"field {k}": k << 32 for k in range(50)}
    return (returner(tuple(settings)), returner(tuple(reversed(settings)))), (settings,)


def fresh(i: int) -> Any:
    """
    Make an array that nobody has seen before.
    """
    import numpy as np

    return np.random.default_rng(i).integers(0, 1 << 62, BYTES // 8, dtype=np.int64)


def round_trip(face: System, handle: Any, array: Any, extra: tuple[Any, ...]) -> tuple[float, Any]:
    """
    Send an array there and back, and touch both ends of what came.
    """
    started = time.perf_counter()
    result = face.call(handle, array, *extra)
    result[0], result[-1]
    return time.perf_counter() - started, result


def check(array: Any, result: Any) -> None:
    """
    Refuse a measurement whose array came back changed.
    """
    import numpy as np

    if not np.array_equal(array, result):
        raise RuntimeError("The array came back changed.")


def measure_time(system: str, variant: str) -> dict[str, float]:
    """
    Take the first round trip, and the median of those after it.

    They are told apart because a system that keeps its shared memory for the next array is several times faster
    once the kernel has given it the pages, and no faster before.
    """
    functions, extra = workload(variant)
    times = []
    with open_system(system, nodes=1, slots=2, watched=variant == "all") as face:
        handles = [face.prepare(function) for function in functions]
        for handle in handles:
            # The worker has numpy loaded before the clock is read.
            face.call(handle, fresh(0)[: 1 << 20].copy(), *extra)
        if variant == ANOTHER:
            face.call(handles[0], fresh(0), *extra)
        for i in range(REPEATS):
            array = fresh(i + 1)
            elapsed, result = round_trip(face, handles[i % len(handles)], array, extra)
            times.append(elapsed)
            check(held.array(BYTES) if variant == ANOTHER else array, result)
            del array, result
    return {"first_s": times[0], "later_s": statistics.median(times[1:])}


def measure_memory(system: str, variant: str) -> dict[str, float]:
    """
    Take the peak of what all processes hold above what they held with only the argument made.
    """
    functions, extra = workload(variant)
    with open_system(system, nodes=1, slots=2, watched=variant == "all") as face:
        handle = face.prepare(functions[0])
        face.call(handle, fresh(0)[: 1 << 20].copy(), *extra)
        array = fresh(1)
        watcher = subprocess.Popen(
            [sys.executable, "-m", "measure.memory", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if watcher.stdin is None or watcher.stdout is None:
            raise RuntimeError("The watcher has no pipes.")
        with watcher:
            watcher.stdout.readline()
            _, result = round_trip(face, handle, array, extra)
            watcher.stdin.close()
            peak, samples = watcher.stdout.readline().split()
        check(array, result)
    return {"peak_bytes": float(peak), "samples": float(samples)}


def jobs(quick: bool) -> dict[str, Job]:
    """
    List what has to be run.
    """
    ours = {f"arrays Skyward {variant}": module("measure.arrays", "Skyward", variant, "time") for variant in VARIANTS}
    peers = {f"arrays {peer}": module("measure.arrays", peer, "plain", "time", needs=peer) for peer in PEERS}
    others = {
        f"arrays {ANOTHER} {system}": module(
            "measure.arrays", system, ANOTHER, "time", needs=system if system in PEERS else None
        )
        for system in SYSTEMS
    }
    our_memory = {
        f"arrays memory Skyward {variant}": module("measure.arrays", "Skyward", variant, "memory")
        for variant in VARIANTS
    }
    peer_memory = {
        f"arrays memory {peer}": module("measure.arrays", peer, "plain", "memory", needs=peer) for peer in PEERS
    }
    return {"arrays limit": limit("memfd.py"), **ours, **peers, **others, **our_memory, **peer_memory}


def rows(results: Results) -> list[Row]:
    """
    Judge time and memory.
    """
    best = number(results, "arrays limit", "there_and_back_s")
    names = {meaning: f"arrays Skyward {variant}" for variant, meaning in VARIANTS.items()}
    listed = []
    for field, when in (("first_s", "the first of a pool"), ("later_s", "the later ones")):
        ours = worst(results, names, field, max)
        ray, dask = (number(results, f"arrays {peer}", field) for peer in PEERS)
        listed.append(
            Row(
                what=f"256 MiB array as argument and back, {when}",
                limit=seconds(best),
                ours=seconds(ours),
                ray=seconds(ray),
                dask=seconds(dask),
                criteria=(
                    Criterion("limit", ours.over(best), at_most=1.5),
                    Criterion("Ray", ours.over(ray), at_most=0.8),
                ),
                bounded_by="one copy into shared memory: fresh pages the first time, memory bandwidth later; "
                "what a function returns unchanged is handed on as it lies",
            )
        )
    another = {system: number(results, f"arrays {ANOTHER} {system}", "later_s") for system in SYSTEMS}
    listed.append(
        Row(
            what="256 MiB array as argument, another one of that size back, the later ones",
            limit=seconds(best),
            ours=seconds(another["Skyward"]),
            ray=seconds(another["Ray"]),
            dask=seconds(another["Dask"]),
            criteria=(Criterion("limit", another["Skyward"].over(best), at_most=1.5),),
            bounded_by="two copies into shared memory, at the bandwidth of the memory",
        )
    )
    memory_names = {meaning: f"arrays memory Skyward {variant}" for variant, meaning in VARIANTS.items()}
    peak = worst(results, memory_names, "peak_bytes", max)
    ray_peak, dask_peak = (number(results, f"arrays memory {peer}", "peak_bytes") for peer in PEERS)
    return [
        *listed,
        Row(
            what="peak extra memory of the same, all processes",
            limit=NONE,
            ours=mebibytes(peak),
            ray=mebibytes(ray_peak),
            dask=mebibytes(dask_peak),
            criteria=(Criterion("payload", peak.over(Number(float(BYTES))), at_most=2.2),),
            bounded_by="one copy, of which caller and function share what neither has written to",
        ),
    ]


if __name__ == "__main__":
    answer({"time": measure_time, "memory": measure_memory}[sys.argv[3]](sys.argv[1], sys.argv[2]))
