"""A day with up to a thousand nodes and whatever can go wrong: nothing is lost, left, billed twice or grows."""

from __future__ import annotations

import faulthandler
import logging
import math
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import skyward as sky
from tests.seeds import seeds, some
from tests.simulated.day import CALM, HOUR, STEP, Books, Calls, Faults, grown, tables, wall_clock
from tests.simulated.engine import SimulatedEngine

LONGEST = 3600.0
"""Seconds that a call takes at most."""
WARM_HOURS = 2.0
"""After so long, tables are as large as they get."""


@pytest.fixture(autouse=True)
def _no_logs(caplog: pytest.LogCaptureFixture) -> None:
    """Keep no log records, which hold the errors that they tell of."""
    caplog.set_level(logging.CRITICAL, logger="skyward")


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("elastic", some("kinds of days", [False, True]))
@pytest.mark.parametrize("seed", seeds("a short day", 1))
def test_four_hours_of_thirty_nodes(engine: SimulatedEngine, seed: int, elastic: bool) -> None:
    """With a fault every two minutes."""
    _live(engine, seed, nodes=30, hours=4.0, every=120.0, elastic=elastic)


@pytest.mark.everything
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("seed", seeds("a day", 1))
def test_a_day_of_a_thousand_nodes(engine: SimulatedEngine, seed: int) -> None:
    """With a thousand faults, one in ten of which is the loss of up to a hundred machines, or the cloud's."""
    _live(engine, seed, nodes=1000, hours=24.0, every=86.4, elastic=False)


@pytest.mark.everything
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", seeds("an elastic day", 1))
def test_an_elastic_day_of_up_to_sixty_nodes(engine: SimulatedEngine, seed: int) -> None:
    """The load comes and goes twice."""
    _live(engine, seed, nodes=60, hours=24.0, every=86.4, elastic=True)


def _live(engine: SimulatedEngine, seed: int, *, nodes: int, hours: float, every: float, elastic: bool) -> None:
    # A day may take longer than the other tests, of which it dumps where they hang.
    faulthandler.cancel_dump_traceback_later()
    drawing = random.Random(seed)
    cloud = Books(random.Random(drawing.random()))
    faults = Faults(cloud, engine, random.Random(drawing.random()), every)
    completed: Counter[str] = Counter()
    causes: Counter[str] = Counter()
    pool = sky.Compute(
        provider=cloud,
        nodes=(nodes // 10, nodes) if elastic else nodes,
        budget=1e6,
        # Three times as long as by default: a thousand nodes are looked at 28 million times a day otherwise.
        suspect_timeout=45.0,
        lost_timeout=180.0,
        reconcile_tick_interval=45.0,
        retry_on_interruption=1000,
        console=False,
        logging=False,
    )
    pool.on(sky.TaskCompleted, lambda event: completed.update([event.task_id] if event.success else []))
    pool.on(sky.InstancePreempted, lambda event: causes.update([event.cause]))
    full = nodes + nodes // 10
    load: Callable[[], int] = lambda: full
    if elastic:
        load = lambda: int(full * (0.5 - 0.5 * math.cos(4 * math.pi * engine.now / (24 * HOUR)))) + 1
    with wall_clock(engine, faults), pool:
        calls = Calls(pool, random.Random(drawing.random()), LONGEST)
        warm = _go_on(engine, calls, faults, WARM_HOURS, load)
        before = _calm(engine, pool, cloud, calls, nodes, full)
        _ = _go_on(engine, calls, faults, hours - WARM_HOURS - 2 * CALM / HOUR, load)
        after = _calm(engine, pool, cloud, calls, nodes, full)
        while calls.settle():
            engine.pass_by(STEP)
    print(f"{seed=} {warm=} {dict(faults.happened)} lost {dict(causes)}, {cloud.rented} machines, {calls.sent} calls")

    # Every result once.
    assert [] == calls.failed
    assert {1} == set(calls.results.values())
    assert calls.sent == len(calls.results) + calls.cancelled
    assert {1} == set(completed.values())
    # A call may end in the moment it is cancelled, while its result is under way.
    assert len(calls.results) <= len(completed) <= len(calls.results) + calls.cancelled
    # No machine is left, and the money is what the cloud's own books say.
    assert [] == cloud.there
    receipt = pool.receipt
    assert receipt is not None
    assert receipt.total_cost == pytest.approx(math.fsum(node.cost for node in receipt.nodes))
    assert receipt.total_cost == pytest.approx(math.fsum(cloud.billed.values()), rel=0.005)
    assert all(node.ended for node in receipt.nodes)
    # Nothing grows.
    more = grown(before, after, nodes)
    assert {} == more, more


def _go_on(engine: SimulatedEngine, calls: Calls, faults: Faults, hours: float, load: Callable[[], int]) -> int:
    """Send calls for so long while faults happen, and return how many were sent."""
    engine.run(faults.begin())
    end = engine.now + hours * HOUR
    while engine.now < end:
        calls.send(load())
        engine.pass_by(STEP)
    engine.run(faults.end())
    return calls.sent


def _calm(engine: SimulatedEngine, pool: Any, cloud: Books, calls: Calls, nodes: int, full: int) -> dict[str, int]:
    """Let what went wrong pass, see that the pool has its size again, and return what it holds."""
    end = engine.now + CALM
    while engine.now < end:
        calls.send(full)
        engine.pass_by(STEP)
    assert nodes == pool.current_nodes()
    places = sorted(row.node for row in cloud.there)
    assert nodes == len(places) == len(set(places)), places
    return tables()
