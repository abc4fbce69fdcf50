"""
The same over SSH, to real OpenSSH servers on this machine.

usage: python -m measure.ssh chain|echo|scp|calls|busy|array|map|start|uplink
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from measure.calls import REPEATS, SINGLES, WARM, add, kilobyte, look_up
from measure.harness import HERE, Job, Results, answer, module, number
from measure.proxy import Proxy
from measure.table import MISSING, Criterion, Number, Row, milliseconds, rate, seconds

sys.path.insert(0, str(HERE.parent))

MIB = 1 << 20
BYTES = 256 * MIB
UPLINK = 20e6
"""Bits a second."""
MODES = ("chain", "echo", "scp", "calls", "busy", "array", "map", "start", "uplink")


@contextmanager
def site(count: int = 1) -> Iterator[tuple[list[Any], Path]]:
    """
    Run real SSH servers.
    """
    from tests.hosts import hosts

    with hosts(count) as made:
        yield made


def provider(made: list[Any], key: Path, ports: list[int] | None = None) -> Any:
    """
    Make the provider of these servers, perhaps behind other ports.
    """
    import skyward as sky

    ports = ports or [host.port for host in made]
    names = [f"{host.address}:{port}" for host, port in zip(made, ports, strict=True)]
    return sky.SSH(names, key=str(key), known_hosts=str(key.with_name("known_hosts")))


def addresses(made: list[Any]) -> list[tuple[str, int]]:
    """
    List where these servers listen.
    """
    return [(host.address, host.port) for host in made]


@contextmanager
def pool_of(given: Any, **options: Any) -> Iterator[Any]:
    """
    Open a pool that shows nothing.
    """
    import skyward as sky

    with sky.Compute(provider=given, console="silent", logging=False, **options) as pool:
        yield pool


def limit(script: str, *words: str) -> dict[str, float]:
    """
    Run a measuring stick against a server.
    """
    with site() as (made, key):
        host = made[0]
        command = [
            sys.executable,
            str(HERE / "limits" / script),
            *words,
            host.address,
            str(host.port),
            "root",
            str(key),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return {name: float(value) for name, value in json.loads(done.stdout.splitlines()[-1]).items()}


def scp() -> dict[str, float]:
    """
    Time scp with its own defaults.
    """
    import numpy as np

    with site() as (made, key):
        host, path = made[0], key.with_name("bytes")
        path.write_bytes(np.random.default_rng(0).bytes(BYTES))
        words = ["-q", "-P", str(host.port), "-i", str(key), "-o", "StrictHostKeyChecking=no"]
        words += ["-o", f"UserKnownHostsFile={key.with_name('known_hosts')}"]
        times = []
        for _ in range(3):
            started = time.perf_counter()
            subprocess.run(["scp", *words, str(path), f"root@{host.address}:/dev/null"], check=True)
            times.append(time.perf_counter() - started)
        return {"mib_per_s": BYTES / MIB / min(times)}


def p50(*calls: Callable[[int], object]) -> list[float]:
    """
    Take the best of three medians of each call, in milliseconds; in turn, so that none has a better time than others.
    """
    medians: list[list[float]] = [[] for _ in calls]
    for _ in range(REPEATS):
        for call, found in zip(calls, medians, strict=True):
            times = []
            for i in range(SINGLES):
                started = time.perf_counter()
                call(i)
                times.append(time.perf_counter() - started)
            found.append(statistics.median(times[WARM:]))
    return [min(found) * 1e3 for found in medians]


def calls() -> dict[str, float]:
    """
    Time a no-op, alone and with a 1 kB dict.
    """
    import skyward as sky

    plain, dicts, items = sky.function(add), sky.function(look_up), [kilobyte(i) for i in range(SINGLES)]
    with site() as (made, key), pool_of(provider(made, key), concurrency=2) as pool:
        numbers, large = p50(lambda i: plain(i) >> pool, lambda i: dicts(items[i]) >> pool)
        return {"plain_ms": numbers, "dict_ms": large}


def busy() -> dict[str, float]:
    """
    Time a no-op while 1 GiB travels over the same link.
    """
    import numpy as np

    import skyward as sky

    plain, size = sky.function(add), sky.function(len)
    with site() as (made, key), pool_of(provider(made, key), concurrency=2) as pool:
        [idle] = p50(lambda i: plain(i) >> pool)
        array = np.random.default_rng(0).integers(0, 256, 1024 * MIB, dtype=np.uint8)
        future = size(array) > pool
        times: list[float] = []
        while not future.done():
            started = time.perf_counter()
            plain(1) >> pool
            times.append(time.perf_counter() - started)
        future.result()
        # The first calls and the last ones are before and after the bytes.
        middle = times[len(times) // 10 : -len(times) // 10]
        return {"idle_ms": idle, "busy_ms": statistics.median(middle) * 1e3, "calls": float(len(times))}


def array() -> dict[str, float]:
    """
    Send 256 MiB one way.
    """
    import numpy as np

    import skyward as sky

    size = sky.function(len)
    rates = []
    with site() as (made, key), pool_of(provider(made, key)) as pool:
        size(b"") >> pool
        for i in range(4):
            content = np.random.default_rng(i).integers(0, 256, BYTES, dtype=np.uint8)
            started = time.perf_counter()
            size(content) >> pool
            rates.append(BYTES / MIB / (time.perf_counter() - started))
    return {"mib_per_s": max(rates)}


def in_flight() -> dict[str, float]:
    """
    Map 10,000 no-ops over SSH, and the same at home.
    """
    import skyward as sky

    found = {}
    with site() as (made, key):
        for name, given in (("ssh", provider(made, key)), ("local", sky.Local())):
            with pool_of(given, concurrency=2) as pool:
                pool.map(add, range(1000))
                times = []
                for _ in range(3):
                    started = time.perf_counter()
                    pool.map(add, range(10_000))
                    times.append(time.perf_counter() - started)
                found[name] = 10_000 / min(times)
    return found


def start() -> dict[str, float]:
    """
    Open and leave a pool on hosts that are prepared: one, and eight.
    """
    import skyward as sky

    found = {}
    plain = sky.function(add)
    with site(8) as (made, key):
        for count in (1, 8):
            given = provider(made[:count], key)
            with pool_of(given, nodes=count) as pool:
                plain(1) @ pool
            began = time.perf_counter()
            with pool_of(given, nodes=count) as pool:
                plain(1) >> pool
                entered = time.perf_counter()
            found[f"enter_{count}_s"] = entered - began
            found[f"exit_{count}_s"] = time.perf_counter() - entered
    return found


def uplink() -> dict[str, float]:
    """
    Count what goes up a line of 20 Mbit/s: to start on a prepared host, and for an argument that was sent before.
    """
    import numpy as np

    import skyward as sky

    size = sky.function(lambda content, i: len(content) + i)
    with site() as (made, key):
        with pool_of(provider(made, key)) as pool:
            sky.function(add)(1) >> pool
        with Proxy(addresses(made), bits_per_s=UPLINK) as proxy:
            began = time.perf_counter()
            with pool_of(provider(made, key, proxy.ports)) as pool:
                sky.function(add)(1) >> pool
                started = {"start_kb": proxy.passed()[0] / 1e3, "start_s": time.perf_counter() - began}
                content = np.random.default_rng(0).integers(0, 256, 50_000_000, dtype=np.uint8)
                found = []
                for _ in range(3):
                    before, _ = proxy.passed()
                    [size(content, i) >> pool for i in range(2)]
                    found.append((proxy.passed()[0] - before) / 1e6)
    return {**started, "first_mb": found[0], "second_mb": found[1], "third_mb": found[2]}


def shown(value: Number, unit: str) -> str:
    """
    Write a number in a unit of its own.
    """
    return value.note or MISSING if value.value is None else f"{value.value:.4g} {unit}"


def mib_per_s(value: Number) -> str:
    """
    Write a rate of bytes.
    """
    return shown(value, "MiB/s")


def jobs(quick: bool) -> dict[str, Job]:
    """
    List what has to be run.
    """
    listed = {f"ssh {mode}": module("measure.ssh", mode) for mode in MODES}
    listed["ssh calls Ray"] = module("measure.calls", "time", "Ray", "plain", needs="Ray")
    return listed


def rows(results: Results) -> list[Row]:
    """
    Judge all of it.
    """

    def of(mode: str, field: str, best: Any = statistics.median) -> Number:
        return number(results, f"ssh {mode}", field, best)

    chain, plain, dicts = of("chain", "p50_ms"), of("calls", "plain_ms"), of("calls", "dict_ms")
    ray = number(results, "ssh calls Ray", "p50_ms")
    slowest = max(plain, dicts, key=lambda value: value.value or 0)
    echo, copied, ours = of("echo", "up_MiB_per_s"), of("scp", "mib_per_s"), of("array", "mib_per_s")
    over, home = of("map", "ssh"), of("map", "local")
    idle, crowded = of("busy", "idle_ms"), of("busy", "busy_ms")
    return [
        Row(
            what="no-op `>>` over SSH, p50",
            limit=milliseconds(chain),
            ours=milliseconds(slowest),
            ray=milliseconds(ray),
            criteria=(
                Criterion("limit", slowest.over(chain), at_most=1.3),
                Criterion("Ray", slowest.over(ray), at_most=0.5),
            ),
            bounded_by="encryption in Python at our end, and the wake-ups of one more process on the way",
        ),
        Row(
            what="the same while 1 GiB travels over that link",
            limit=milliseconds(idle),
            ours=milliseconds(crowded),
            criteria=(Criterion("idle", crowded.over(idle), at_most=5),),
            bounded_by="bytes that SSH and the kernel hold already when the call comes",
        ),
        Row(
            what="256 MiB one way over SSH (limit: a bare asyncssh channel; beside it scp)",
            limit=mib_per_s(echo),
            ours=mib_per_s(ours),
            criteria=(
                Criterion("channel", ours.over(echo), at_least=0.8),
                Criterion("scp", ours.over(copied), at_least=1.2),
            ),
            bounded_by="encryption: asyncssh encrypts in one thread",
        ),
        Row(
            what="10,000 no-ops in flight over SSH (limit: the same on Local)",
            limit=rate(home),
            ours=rate(over),
            criteria=(Criterion("Local", over.over(home), at_least=0.5),),
            bounded_by="the CPU of client and SSH server, on the cores of one machine",
        ),
        *(
            Row(
                what=f"{what}, {count} prepared host{'s' if count > 1 else ''} over SSH",
                ours=seconds(of("start", f"{field}_{count}_s")),
                criteria=(Criterion("in all", of("start", f"{field}_{count}_s").value, at_most=at_most, unit="s"),),
                bounded_by="logins, and interpreters to start on the cores of one machine",
            )
            for count, bounds in ((1, (2.0, 1.0)), (8, (8.0, 4.0)))
            for (what, field), at_most in zip((("enter, first result", "enter"), ("exit", "exit")), bounds, strict=True)
        ),
        Row(
            what="bytes up a line of 20 Mbit/s to start on a prepared host",
            ours=shown(of("uplink", "start_kb"), "kB"),
            criteria=(Criterion("sent", of("uplink", "start_kb").value, at_most=300, unit="kB"),),
            bounded_by="the login, the bootstrap script, and what SSH adds",
        ),
        Row(
            what="bytes up that line for an argument of 50 MB that was sent twice before",
            ours=shown(of("uplink", "third_mb"), "MB"),
            criteria=(Criterion("sent", of("uplink", "third_mb").value, at_most=0.1, unit="MB"),),
            bounded_by="two calls; the argument is named by its digest",
        ),
    ]


if __name__ == "__main__":
    mode = sys.argv[1]
    answer(
        {
            "chain": lambda: limit("chain.py", "--ssh"),
            "echo": lambda: limit("echo_ssh.py"),
            "scp": scp,
            "calls": calls,
            "busy": busy,
            "array": array,
            "map": in_flight,
            "start": start,
            "uplink": uplink,
        }[mode]()
    )
