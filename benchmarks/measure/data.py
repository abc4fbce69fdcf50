"""
Data that many calls use: the same array in a hundred calls, many arrays in one, and what is kept of them afterwards.

usage: python -m measure.data hundred SYSTEM WAY MIB
       python -m measure.data many SYSTEM
       python -m measure.data kept MIB
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

from measure.harness import Job, Results, answer, limit, module, number, worst_of
from measure.memory import open_memfds, tree
from measure.peers import open_ray, open_system
from measure.ssh import pool_of, shown
from measure.table import Criterion, Number, Row, seconds

MIB = 1 << 20
CALLS = 100
SLOTS = 2
ENOUGH_S = 15.0
"""Seconds after which no further call is begun; the time of all is then taken from those that were."""
ARRAYS, ARRAY_BYTES = 3_000, 60 << 10
SHARE = 0.1
"""Share of a machine's memory that may be kept."""
IN_TURN, IN_FLIGHT = "one call after the other", "calls in flight"
BY_HAND = {
    IN_TURN: {"calls": "`>>`"},
    IN_FLIGHT: {"futures": "futures", "closure": "a map of a closure over it"},
}
AIM = {IN_TURN: 0.5, IN_FLIGHT: 1.0}
"""Of Ray's time; half of that in flight would be less than the one copy takes that both make."""
PUT = {IN_TURN: "put calls", IN_FLIGHT: "put futures"}
GIVEN = {IN_TURN: "given calls", IN_FLIGHT: "given futures"}
"""Ray's calls without `ray.put`: it copies the array for each."""
GIVEN_CALLS = 10
"""Of those, as many as its memory takes; the time of a hundred is taken from them."""
WAYS = (*(way for ways in BY_HAND.values() for way in ways), *PUT.values())
RAYS = (*PUT.values(), *GIVEN.values())


def at(array: Any, i: int) -> int:
    return int(array[i]) + len(array)


def size_of(arrays: Any) -> int:
    return sum(array.nbytes for array in arrays)


def some_array(mib: int) -> Any:
    import numpy as np

    return np.random.default_rng(0).integers(0, 1 << 62, mib * MIB // 8, dtype=np.int64)


def in_time(steps: Iterable[Callable[[], object]]) -> float:
    """
    Take the seconds of all steps, or of as many as there is time for, as if all had been taken.
    """
    done, began = 0, time.perf_counter()
    for step in steps:
        step()
        done += 1
        if time.perf_counter() - began > ENOUGH_S:
            break
    return (time.perf_counter() - began) * CALLS / done


def hundred(way: str, mib: int) -> dict[str, float]:
    """
    Use the same array in a hundred calls.
    """
    import skyward as sky

    array, remote = some_array(mib), sky.function(at)
    with pool_of(sky.Local(), concurrency=SLOTS) as pool:
        [f.result() for f in [remote(array[:1], 0) > pool for _ in range(2 * SLOTS)]]
        began = time.perf_counter()
        if way == "calls":
            return {"seconds": in_time(lambda i=i: remote(array, i) >> pool for i in range(CALLS))}
        if way == "futures":
            futures: list[Any] = []
            sending = in_time(lambda i=i: futures.append(remote(array, i) > pool) for i in range(CALLS))
            [future.result() for future in futures]
            return {"seconds": max(sending, (time.perf_counter() - began) * CALLS / len(futures))}
        if way == "closure":
            assert len(pool.map(lambda i: at(array, i), range(CALLS))) == CALLS
        else:
            ref = pool.put(array)
            if way == "put calls":
                [remote(ref, i) >> pool for i in range(CALLS)]
            else:
                [f.result() for f in [remote(ref, i) > pool for i in range(CALLS)]]
        return {"seconds": time.perf_counter() - began}


def hundred_ray(way: str, mib: int) -> dict[str, float]:
    """
    Do so with Ray: put once, and referred to, or given to each call.
    """
    array = some_array(mib)
    with open_ray(1, SLOTS, False) as face:
        ray, remote = face.ray, face.prepare(at)  # type: ignore[attr-defined]
        ray.get([remote.remote(array[:1], 0) for _ in range(2 * SLOTS)])
        began = time.perf_counter()
        given, count = (ray.put(array), CALLS) if way.startswith("put ") else (array, GIVEN_CALLS)
        if way.endswith(" calls"):
            [ray.get(remote.remote(given, i)) for i in range(count)]
        else:
            ray.get([remote.remote(given, i) for i in range(count)])
        return {"seconds": (time.perf_counter() - began) * CALLS / count}


def many(system: str) -> dict[str, float]:
    """
    Send a list of 3,000 arrays, others each time: the first of a pool, and the best of those after it.
    """
    import numpy as np

    times = []
    with open_system(system, slots=SLOTS) as face:
        handle = face.prepare(size_of)
        face.call(handle, [np.ones(10)])
        for turn in range(5):
            arrays = list(np.random.default_rng(turn).integers(0, 256, (ARRAYS, ARRAY_BYTES), dtype=np.uint8))
            began = time.perf_counter()
            assert face.call(handle, arrays) == ARRAYS * ARRAY_BYTES
            times.append(time.perf_counter() - began)
    return {"first_s": times[0], "later_s": min(times[1:])}


def memfds(pids: Iterable[int]) -> float:
    """
    Count the bytes of shared memory that processes have open, in MiB.
    """
    found: dict[tuple[int, int], int] = {}
    for pid in pids:
        try:
            found.update(open_memfds(pid))
        except OSError:
            continue
    return sum(found.values()) / MIB


def kept(mib: int) -> dict[str, float]:
    """
    Send four arrays and let go of them, and count what is kept of them: while the pool is open, and after it.
    """
    import skyward as sky

    remote, client = sky.function(at), os.getpid()
    with pool_of(sky.Local(), concurrency=SLOTS) as pool:
        for turn in range(4):
            array = some_array(mib) + turn
            remote(array, 1) >> pool
            del array
        open_client = memfds([client])
        nodes = memfds(pid for pid in tree(client) if pid != client)
    assert not pool.is_active  # and its object is still there
    return {"open_client": open_client, "open_nodes": nodes, "after": memfds([client]), "mib": float(mib)}


def memory_mib() -> float:
    """
    Read how much memory this machine has, in MiB.
    """
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / MIB


def jobs(quick: bool) -> dict[str, Job]:
    """
    List what has to be run.
    """
    mib = "96" if quick else "256"
    listed = {f"data hundred {way}": module("measure.data", "hundred", "Skyward", way, mib) for way in WAYS}
    listed["data limit"] = limit("memfd.py")
    for way in RAYS:
        listed[f"data hundred Ray {way}"] = module("measure.data", "hundred", "Ray", way, mib, needs="Ray")
    listed["data many"] = module("measure.data", "many", "Skyward")
    listed["data many Ray"] = module("measure.data", "many", "Ray", needs="Ray")
    listed["data kept"] = module("measure.data", "kept", mib)
    return listed


def hundred_rows(results: Results, how: str, array: str, copy: Number) -> list[Row]:
    """
    Judge a hundred calls with one array that are made in one way, beside Ray's that are made in the same.
    """

    def of(name: str) -> Number:
        return number(results, f"data hundred {name}", "seconds")

    by_hand = worst_of({meaning: of(way) for way, meaning in BY_HAND[how].items()}, max)
    ref, put, given = of(PUT[how]), of(f"Ray {PUT[how]}"), of(f"Ray {GIVEN[how]}")
    return [
        Row(
            what=f"the same array of {array} in {CALLS} calls, given to each, {how} (limit: one copy of it; Ray: "
            f"`ray.put` and calls; without it: {seconds(given)})",
            limit=seconds(copy),
            ours=seconds(by_hand),
            ray=seconds(put),
            criteria=(Criterion("Ray", by_hand.over(put), at_most=AIM[how]),),
            bounded_by="one copy into shared memory; 0.3 ms a call in which the kernel says that nothing was written "
            "since",
        ),
        Row(
            what=f"the same with `pool.put`, {how}",
            limit=seconds(copy),
            ours=seconds(ref),
            ray=seconds(put),
            criteria=(Criterion("Ray", ref.over(put), at_most=AIM[how]),),
            bounded_by="one copy into shared memory",
        ),
    ]


def rows(results: Results) -> list[Row]:
    """
    Judge what is used many times, and what is kept.
    """
    both = number(results, "data limit", "there_and_back_s")
    copy = Number(both.value / 2 if both.value else None, note=both.note)
    many = {
        which: tuple(number(results, f"data {name}", field) for name in ("many", "many Ray"))
        for which, field in (("the first of a pool", "first_s"), ("the later ones", "later_s"))
    }
    open_client, nodes, after = (
        number(results, "data kept", field) for field in ("open_client", "open_nodes", "after")
    )
    array = f"{number(results, 'data kept', 'mib').value or 0:.0f} MiB"
    share = SHARE * memory_mib()
    return [
        *(row for how in (IN_TURN, IN_FLIGHT) for row in hundred_rows(results, how, array, copy)),
        *(
            Row(
                what=f"{ARRAYS:,} arrays of 60 KiB in one argument, {which}",
                ours=seconds(ours),
                ray=seconds(theirs),
                criteria=(Criterion("Ray", ours.over(theirs), at_most=1),),
                bounded_by="one copy into shared memory, and a buffer to be found for each array",
            )
            for which, (ours, theirs) in many.items()
        ),
        Row(
            what=f"buffers kept of four arrays of {array} that are gone, while the pool is open: at the client "
            f"(on its node: {shown(nodes, 'MiB')})",
            ours=shown(open_client, "MiB"),
            criteria=(
                Criterion("at the client", open_client.value, at_most=round(share), unit="MiB"),
                Criterion("on the node", nodes.value, at_most=round(share), unit="MiB"),
            ),
            bounded_by="a tenth of this machine's memory",
        ),
        Row(
            what="the same when the pool is over, and its object still there",
            ours=shown(after, "MiB"),
            criteria=(Criterion("at the client", after.value, at_most=1, unit="MiB"),),
            bounded_by="nothing",
        ),
    ]


if __name__ == "__main__":
    what, *words = sys.argv[1:]
    if what == "hundred":
        system, way, size = words
        answer((hundred if system == "Skyward" else hundred_ray)(way, int(size)))
    elif what == "many":
        answer(many(words[0]))
    else:
        answer(kept(int(words[0])))
