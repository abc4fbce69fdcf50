"""
Lives of pools on real hosts with faults at random moments: each result once, and nothing is left.

    SEEDS=2466274646 .venv/bin/python -m pytest -m chaos -n 0 tests/ssh/test_drawn_faults.py     one seed again
"""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from skyward.engine.instances.detached_records import DETACHED
from tests.seeds import seeds, share
from tests.ssh.street import Street, Troubled, street
from tests.waiting import until

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(120)]

SEEDS = 170
CALLS = 24
NODES = 2
QUICK: dict[str, Any] = {
    "suspect_timeout": 1.0,
    "lost_timeout": 3.0,
    "reconcile_tick_interval": 0.5,
    "provision_retry_delay": 0.1,
    "shutdown_timeout": 30.0,
    "retry_on_interruption": 100,
    "console": "silent",
    "logging": False,
    "ttl": 30,
}
TTL, LEASE = 4, 60
WATCHDOG = 25.0
"""Seconds after which the watchdogs of a client that was killed have ended its machines."""


@sky.function
def answer(number: int, size: int, seconds: float) -> tuple[int, bytes]:
    """Take so long, and return so much."""
    time.sleep(seconds)
    return number, number.to_bytes(4, "little") * size


@pytest.fixture(scope="module")
def shared() -> Iterator[Street]:
    """Run the hosts that all seeds share."""
    with street() as made:
        yield made


@pytest.fixture
def hosts(shared: Street, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Street]:
    """Give hosts on which nothing is wrong, to a user with a state of its own."""
    monkeypatch.setenv("SKYWARD_STATE", str(tmp_path / "state"))
    shared.clean()
    shared.happened.clear()
    with shared.wall_clock():
        yield shared
    shared.clean()


@pytest.mark.parametrize("seed", seeds("faults on hosts", share(SEEDS)))
def test_a_life_with_faults(seed: int, hosts: Street, tmp_path: Path) -> None:
    """Of a pool that is left, of one that is detached and attached in between, or of a client that is killed."""
    drawing = random.Random(seed)
    provider = hosts.provider(tmp_path)
    life = drawing.choices([_stays, _leaves, _is_killed], [7, 3, 1])[0]
    print(f"{seed=} {life.__name__}")
    try:
        life(drawing, hosts, provider)
    finally:
        print(dict(hosts.happened))
    assert [] == DETACHED.heads()


class Results:
    """Count what comes of calls."""

    def __init__(self) -> None:
        self.values: Counter[int] = Counter()
        self.lost: list[BaseException] = []

    def take(self, future: Future[Any]) -> None:
        """Take what came of a call; a worker that is killed takes its call along."""
        if (error := future.exception(60)) is not None:
            self.lost.append(error)
            return
        number, value = future.result()
        assert value[:4] == number.to_bytes(4, "little")
        self.values[number] += 1


def _send(pool: Any, drawing: random.Random) -> list[Future[Any]]:
    sizes = [drawing.choice([1, 1, 1000, 100_000]) for _ in range(CALLS)]
    return [pool.run_async(answer(number, sizes[number], drawing.uniform(0.0, 0.3))) for number in range(CALLS)]


def _disturb(drawing: random.Random, hosts: Street, provider: Troubled) -> None:
    """Let two to four things go wrong within a second or two."""
    for _ in range(drawing.randint(2, 4)):
        end = time.monotonic() + drawing.uniform(0.0, 0.6)
        while time.monotonic() < end:
            hosts.undo()
            time.sleep(0.02)
        hosts.let(drawing, provider)


def _get_over(hosts: Street, done: Any) -> None:
    until(lambda: (hosts.undo(), done())[1], 60.0, what="it does not get over it")


def _stays(drawing: random.Random, hosts: Street, provider: Troubled) -> None:
    results, completed = Results(), Counter[str]()
    pool = sky.Compute(provider=provider, nodes=NODES, concurrency=2, **QUICK)
    pool.on(sky.TaskCompleted, lambda event: completed.update([event.task_id] if event.success else []))
    with pool:
        futures = _send(pool, drawing)
        _disturb(drawing, hosts, provider)
        _get_over(hosts, lambda: all(future.done() for future in futures))
        for future in futures:
            results.take(future)
        # Its size is what it was.
        _get_over(hosts, lambda: not hosts.disturbed and NODES == len(sky.function(os.getpid)() @ pool))
        assert NODES == pool.current_nodes()
    assert [] == provider.rented()
    _check(results, hosts)
    assert {1} >= set(completed.values()), "a result was delivered twice"
    _check_money(pool, provider)


def _leaves(drawing: random.Random, hosts: Street, provider: Troubled) -> None:
    results = Results()
    # The lease ends by the client's clock, too.
    hosts.jump = LEASE / 6
    with sky.Compute(provider=provider, nodes=NODES, concurrency=2, **QUICK) as first:
        futures = _send(first, drawing)
        time.sleep(drawing.uniform(0.0, 0.5))
        name = first.detach(lease=LEASE)
    for future in futures:
        if not isinstance(future.exception(), sky.PoolClosedError):
            results.take(future)
    _disturb(drawing, hosts, provider)
    hosts.undo(all_=True)
    with sky.attach(name, console="silent", logging=False) as second:
        for call in second.calls():
            results.take(call.future)
    assert CALLS == sum(results.values.values()) + len(results.lost)
    assert [] == provider.rented()
    _check(results, hosts, left=True)


def _is_killed(drawing: random.Random, hosts: Street, provider: Troubled) -> None:
    script = f"""
        import time
        import skyward as sky
        from tests.ssh.street import Troubled
        from tests.ssh.test_drawn_faults import NODES, QUICK, answer
        provider = {provider!r}
        with sky.Compute(provider=provider, nodes=NODES, **{{**QUICK, "ttl": {TTL}}}) as pool:
            print("open", flush=True)
            while True:
                answer(1, 1000, 0.1) @ pool
    """
    client = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=Path(__file__).parents[2],
    )
    with client:
        assert client.stdout is not None
        # Clients that are killed before that are `test_chaos`'s.
        assert client.stdout.readline() == b"open\n"
        _disturb(drawing, hosts, provider)
        client.kill()
    hosts.undo(all_=True)
    # One that had no bootstrap yet has no watchdog: a real cloud brings it along.
    until(lambda: not hosts.guarded(provider), WATCHDOG, what="a machine outlives its client")
    until(lambda: not any(map(hosts.agents, hosts.hosts)), WATCHDOG, what="a node outlives its client")


def _check(results: Results, hosts: Street, *, left: bool = False) -> None:
    assert {1} >= set(results.values.values()), "a result came twice"
    kinds = (sky.WorkerDiedError, sky.NodeLostError) if left else (sky.WorkerDiedError,)
    unexpected = [error for error in results.lost if not isinstance(error, kinds)]
    assert [] == unexpected
    if not left:
        assert len(results.lost) <= 2 * hosts.happened["kill_worker"], results.lost
        assert CALLS == len(results.values) + len(results.lost)


def _check_money(pool: sky.Compute, provider: Troubled) -> None:
    receipt = pool.receipt
    assert receipt is not None
    billed = provider.billed()
    assert len(billed) == len(receipt.nodes)
    assert all(node.ended for node in receipt.nodes)
    assert receipt.total_cost == pytest.approx(math.fsum(node.cost for node in receipt.nodes))
    # A machine that is taken back is known to be gone some seconds later.
    assert math.fsum(billed) <= math.fsum(node.seconds for node in receipt.nodes) + 1.0 * len(billed)
