"""
Times an operation of a shared collection on a node that reaches the store through the client's SSH connections.

usage: python benchmarks/store.py [--milliseconds 20] [--operations 200]

Two OpenSSH servers on this machine are two hosts, each behind a line of that length from the client; the store is on
the first one, so an operation of the second one takes two round trips of the line; needs openssh-server.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

from measure.proxy import Proxy

import skyward as sky

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.hosts import hosts  # the repository's own, found by the line before

TASKS = 10


@sky.function
def increments(operations: int) -> list[float]:
    """Return how long each increment took, in seconds."""
    counter = sky.counter("n")
    counter.increment()
    took = []
    for _ in range(operations):
        began = time.perf_counter()
        counter.increment()
        took.append(time.perf_counter() - began)
    return took


@sky.function
def first_increment() -> float:
    """Return how long the first increment of a task took, in seconds."""
    began = time.perf_counter()
    sky.counter("n").increment()
    return time.perf_counter() - began


def main() -> None:
    """Print the medians of both hosts and of the client, beside the round trips that they take at least."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--milliseconds", type=float, default=20.0, help="round trip from the client to a host")
    parser.add_argument("--operations", type=int, default=200)
    asked = parser.parse_args()
    with (
        hosts(2) as (made, key),
        Proxy([(host.address, host.port) for host in made], round_trip_s=asked.milliseconds / 1000) as line,
    ):
        names = [f"{host.address}:{port}" for host, port in zip(made, line.ports, strict=True)]
        provider = sky.SSH(hosts=names, key=str(key), known_hosts=str(key.with_name("known_hosts")))
        with sky.Compute(provider=provider, nodes=2, console="silent", logging=False) as pool:
            for target in (0, 1):
                took = [pool.run(first_increment(), target=target) * 1000 for _ in range(TASKS)]
                later = statistics.median(took[1:])
                print(f"first increment of a task on node {target}: {took[0]:.2f} ms, of later tasks {later:.2f} ms")
            print(f"{'where':<28}{'round trips':>12}{'median ms':>12}{'of these':>10}")
            for where, trips, took in (
                ("the head", 0, pool.run(increments(asked.operations), target=0)),
                ("the client", 1, _at_client(pool, asked.operations)),
                ("the other host", 2, pool.run(increments(asked.operations), target=1)),
            ):
                median = statistics.median(took) * 1000
                part = f"{median / (trips * asked.milliseconds):.2f}" if trips else ""
                print(f"{where:<28}{trips:>12}{median:>12.2f}{part:>10}")


def _at_client(pool: sky.Pool, operations: int) -> list[float]:
    counter = pool.counter("n")
    counter.increment()
    took = []
    for _ in range(operations):
        began = time.perf_counter()
        counter.increment()
        took.append(time.perf_counter() - began)
    return took


if __name__ == "__main__":
    main()
