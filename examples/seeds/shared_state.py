"""Shared state of a pool's tasks, as in the user's documents."""

from __future__ import annotations

import tempfile
from pathlib import Path

import skyward as sky

NODES = 4


@sky.function
def worker(item: str, folder: str) -> str | None:
    def save_progress() -> None:
        saved = Path(folder, "progress")
        saved.write_text(str(int(saved.read_text()) + 1))

    processed = sky.counter("processed")
    seen = sky.set("seen")
    if item in seen:
        return None
    seen.add(item)
    processed.increment()
    with sky.lock("checkpoint"):
        save_progress()
    return item


@sky.function
def phased() -> tuple[int, int]:
    arrived = sky.counter("arrived", consistency="strong")

    def do_part_one() -> int:
        return arrived.increment()

    def do_part_two() -> int:
        return arrived.value

    b = sky.barrier("sync", n=4)
    one = do_part_one()
    b.wait()
    return one, do_part_two()


@sky.function
def everything() -> list[object]:
    d = sky.dict("d", consistency="eventual")
    d["k"] = 1
    d.update({"more": 2})
    known = ["k" in d, d["k"], d.get("none", default=None), d.pop("more", default=None)]
    del d["k"]
    s = sky.set("s")
    s.add("v")
    s.discard("v")
    c = sky.counter("c")
    c.increment(n=3)
    c.decrement(n=1)
    number = [c.value, int(c), len(s), "v" in s]
    c.reset(value=0)
    q = sky.queue("q")
    q.put("job")
    waiting = [q.empty(), len(q), q.get(timeout=None)]
    lock = sky.lock("l", timeout=30)
    lock.acquire()
    lock.release()
    return [*known, *number, *waiting]


@sky.function
async def without_blocking() -> int:
    counter = sky.counter("asynchronous")
    await counter.increment_async()
    d = sky.dict("asynchronous too")
    return counter.value + await d.get_async("none", 1)


with tempfile.TemporaryDirectory() as folder:
    Path(folder, "progress").write_text("0")
    with sky.Compute(nodes=NODES) as pool:
        done = [worker(item, folder) >> pool for item in ("a", "b", "a")]
        phases = phased() @ pool
        told = everything() >> pool
        both = without_blocking() >> pool
    saved = Path(folder, "progress").read_text()

assert sorted(first for first, _ in phases) == [1, 2, 3, 4]
assert {second for _, second in phases} == {4}
assert told == [True, 1, None, 2, 2, 2, 0, False, False, 1, "job"]
try:
    sky.counter("processed").increment()
except sky.NoPoolError as error:
    off_pool = "no pool is open here" in str(error)
print(done, "| saved:", saved, "| all had arrived: True | both ways:", both, "| refused off the pool:", off_pool)
