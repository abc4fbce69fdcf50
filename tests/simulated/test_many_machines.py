"""
A hundred machines of a cloud are ready hardly later than the slowest of them is, and all gone when the pool is left.

The launch path, the SSH servers and the link are real; the machines behind them are simulated, on a virtual clock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import pairwise

import pytest

import skyward as sky
from skyward.engine.instances.launch import BATCH
from skyward.engine.pool import event_loop as loops
from skyward.engine.pool.event_loop import EngineLoop
from skyward.ssh.dial import AT_ONCE
from tests.seeds import seeds
from tests.simulated.cloud import QUICK, SLOW, SimulatedCloud, Times
from tests.simulated.loop import VirtualLoop

SEED = seeds("simulated machines", 1)[0]
NODES = 100


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[EngineLoop]:
    """An engine of its own, on a virtual clock."""
    engine = EngineLoop(VirtualLoop)
    monkeypatch.setattr(loops, "_current", [engine])
    yield engine
    asyncio.run_coroutine_threadsafe(engine.loop.shutdown_default_executor(), engine.loop).result(20)
    engine.close()


@pytest.mark.slow
@pytest.mark.timeout(200)
@pytest.mark.parametrize(
    "times",
    [pytest.param(SLOW, id="slow", marks=pytest.mark.everything), pytest.param(QUICK, id="quick")],
)
def test_a_hundred_machines_come_and_go_side_by_side(engine: EngineLoop, times: Times) -> None:
    """Launched in batches, dialled so many at a time, ended at once."""
    cloud, ready, left = SimulatedCloud(SEED, times), [0.0], 0.0
    pool = sky.Compute(provider=cloud, nodes=NODES, console="silent", logging=False)
    pool.on(sky.ClusterReady, lambda event: ready.append(event.elapsed))
    begin = engine.loop.time()
    with pool:
        assert NODES == pool.current_nodes()
        left = engine.loop.time()
    slowest = max(machine.ready_at for machine in cloud.rented) - begin
    print(f"slowest {slowest:.1f} s, ready after {ready[-1]:.1f} s, dialled at once {cloud.most_entering}")
    assert [BATCH, BATCH, BATCH, NODES % BATCH] == cloud.batches
    assert cloud.most_entering <= AT_ONCE
    assert ready[-1] <= 1.1 * slowest

    assert {} == cloud.machines
    assert NODES == len(cloud.endings)
    longest = max(end - began for began, end in cloud.endings)
    over = max(end for _, end in cloud.endings) - left
    print(f"longest end {longest:.1f} s, all over after {over:.1f} s")
    assert over <= 1.1 * longest


@pytest.mark.slow
@pytest.mark.parametrize(("nodes", "taken"), [(1, 1), (6, 3)])
def test_machines_that_go_in_their_bootstrap_are_missed_at_once(engine: EngineLoop, nodes: int, taken: int) -> None:
    """The cloud is asked when their links break, and not more often otherwise."""
    cloud = SimulatedCloud(SEED, SLOW, taken=taken)
    with sky.Compute(
        provider=cloud, nodes=nodes, reconcile_tick_interval=300.0, console="silent", logging=False
    ) as pool:
        assert nodes == pool.current_nodes()
    gone = sorted(machine.gone_at for machine in cloud.rented[:taken] if machine.gone_at is not None)
    again = sorted(cloud.asked_at[1:])
    print(f"gone at {gone}, others asked for at {again}")
    assert taken == len(gone) == len(again)
    assert max(after - before for before, after in zip(gone, again, strict=True)) <= 5.0
    assert min(after - before for before, after in pairwise(cloud.looks)) >= 0.999
