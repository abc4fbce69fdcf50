"""
What it costs to be able to leave a pool, and how long it takes to come back: on SSH servers of this machine.

    python benchmarks/leaving.py cost      # no-op calls with and without a lease, in turns
    python benchmarks/leaving.py attach 20 # a pool of so many nodes whose client is killed, and attached
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import skyward as sky  # found by what is above
from tests.hosts import hosts

CALLS, ROUNDS = 4000, 15


@sky.function
def nothing() -> None:
    """Return."""


@sky.function
def sleeps(seconds: float) -> float:
    """Return later."""
    time.sleep(seconds)
    return seconds


def _rate(pool: sky.Compute) -> tuple[float, float]:
    """Return calls in a second, and microseconds of a processor that this process used for each."""
    began, spent = time.perf_counter(), time.process_time()
    for future in [pool.run_async(nothing()) for _ in range(CALLS)]:
        future.result()
    return CALLS / (time.perf_counter() - began), 1e6 * (time.process_time() - spent) / CALLS


def cost() -> None:
    """Compare the rate of no-op calls, each round of both in another order."""
    with hosts(2) as (made, key):
        places = [f"{host.address}:{host.port}" for host in made]
        pools = {
            name: sky.Compute(
                provider=sky.SSH([place], key=str(key), known_hosts="/dev/null"),
                console="silent",
                logging=False,
                lease=lease,
            )
            for name, place, lease in (("without", places[0], None), ("with", places[1], 3600.0))
        }
        rates: dict[str, list[tuple[float, float]]] = {name: [] for name in pools}
        with pools["without"], pools["with"]:
            for pool in pools.values():
                _rate(pool)
            for number in range(ROUNDS):
                for name in sorted(pools, reverse=bool(number % 2)):
                    rates[name].append(_rate(pools[name]))
        for name, found in rates.items():
            calls, spent = (statistics.median(each) for each in zip(*found, strict=True))
            print(f"{name:8} a lease: {calls:,.0f} calls/s, {spent:.1f} us of this process each")
        for number, what in enumerate(("rate", "processor time")):
            pairs = [one[number] / other[number] for one, other in zip(rates["with"], rates["without"], strict=True)]
            print(f"{what} with / without: median {statistics.median(pairs):.3f} of {len(pairs)} pairs")


_CLIENT = """
import sys, time
sys.path.insert(0, {root!r})
import skyward as sky
from benchmarks.leaving import sleeps
with sky.Compute(provider=sky.SSH({places!r}, key={key!r}, known_hosts="/dev/null"), nodes={nodes},
                 console="silent", logging=False, lease=600, bootstrap_timeout=600) as pool:
    calls = [pool.run_async(sleeps(0.1 if n % 2 else 600.0), target=n) for n in range({nodes})]
    time.sleep(3.0)
    print("there", flush=True)
    time.sleep(600)
"""


def attach(nodes: int) -> None:
    """Kill the client of a pool, and measure how long another one takes to have its nodes and calls."""
    with hosts(nodes) as (made, key), tempfile.TemporaryDirectory() as state:
        os.environ["SKYWARD_STATE"] = state
        places = [f"{host.address}:{host.port}" for host in made]
        text = _CLIENT.format(root=str(Path(__file__).resolve().parents[1]), places=places, key=str(key), nodes=nodes)
        client = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True)
        assert client.stdout is not None
        began = time.perf_counter()
        assert client.stdout.readline() == "there\n"
        print(f"opened in {time.perf_counter() - began:.1f} s")
        client.kill()
        client.wait()
        began, spent = time.perf_counter(), time.process_time()
        with sky.attach("pool", console="silent", logging=False) as pool:
            took, spent = time.perf_counter() - began, time.process_time() - spent
            there = pool.current_nodes()
            done = sum(call.done for call in pool.calls())
            print(f"attached {there} nodes with {len(pool.calls())} calls, {done} of them done, in {took:.2f} s, "
                  f"of which this process used {spent:.2f} s of a processor")  # fmt: skip
            for call in pool.calls():
                call.future.cancel()


if __name__ == "__main__":
    attach(int(sys.argv[2])) if sys.argv[1] == "attach" else cost()
