"""The autoscaler over load curves, on a virtual clock: what it costs and how long calls wait, beside hindsight."""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import mean

import pytest

from skyward.model.spec.nodes import Nodes

ROOT = Path(__file__).parent.parent.parent

sys.path.insert(0, str(ROOT / "benchmarks"))
try:
    from elastic.hindsight import clairvoyant, least_cost
    from elastic.loads import Load, Sent, loads
    from elastic.simulation import FormerSizing, Market, Run, SimulatedPool, simulate
finally:
    sys.path.remove(str(ROOT / "benchmarks"))

MARKET = Market()
LAZY = Nodes(min=0, max=16)
SHORT = tuple(load for load in loads() if load.name != "day")
_runs: dict[str, Run] = {}


def run_of(load: Load) -> Run:
    """Run a load once for all tests."""
    if load.name not in _runs:
        _runs[load.name] = simulate(load, LAZY, MARKET)
    return _runs[load.name]


def by_name(name: str) -> Load:
    """Find a load."""
    return next(load for load in loads() if load.name == name)


@pytest.mark.parametrize("load", SHORT, ids=lambda load: load.name)
def test_every_call_runs_and_no_machine_is_left(load: Load) -> None:
    """Within the bounds of the pool, at any time."""
    run = run_of(load)
    assert len(load.calls) == len(run.waits)
    assert min(run.waits) >= 0
    assert max(machines for _, machines in run.machines) <= 16
    assert 0 == run.machines[-1][1]


@pytest.mark.parametrize("load", SHORT, ids=lambda load: load.name)
def test_hindsight_is_a_bound(load: Load) -> None:
    """No pool has calls wait for less than one that knew them, and none costs less than the calls alone."""
    run, best = run_of(load), clairvoyant(load, MARKET, 0, 16)
    assert mean(best.waits) <= mean(run.waits)
    for each in (run, best):
        assert least_cost(load, MARKET, 0) <= each.cost(MARKET) + 1e-6


@pytest.mark.parametrize(
    ("name", "money", "wait"),
    [
        ("steady", 2.0, 120.0),
        ("bursts", 2.0, 300.0),
        ("queue", 1.2, 300.0),
        ("sweep", 1.4, 300.0),
        ("interactive", 3.0, 60.0),
    ],
)
def test_the_autoscaler_is_not_far_from_hindsight(name: str, money: float, wait: float) -> None:
    """In money by a factor, in waiting by seconds, for each kind of load."""
    load = by_name(name)
    run, best = run_of(load), clairvoyant(load, MARKET, 0, 16)
    assert run.cost(MARKET) <= money * best.cost(MARKET)
    assert mean(run.waits) <= mean(best.waits) + wait


def test_a_pool_that_is_idle_costs_nothing() -> None:
    """Hours between two calls are not billed."""
    far = Load("far", "", (Sent(10.0, b"f", 5.0), Sent(36_000.0, b"f", 5.0)), 0.0)
    run = simulate(far, LAZY, MARKET)
    assert 2 == len(run.lives)
    assert sum(end - begin for begin, end in run.lives) <= 2 * (90.0 + 5.0 + 60.0 + 5.0)


def test_the_former_rule_runs_the_same_loads() -> None:
    """The column of the table that shows what has changed."""
    load = by_name("bursts")
    former = simulate(load, Nodes(1, max=16), MARKET, made=FormerSizing)
    now = simulate(load, Nodes(1, max=16), MARKET)
    assert mean(now.waits) <= mean(former.waits)


def counted(pool: SimulatedPool) -> int:
    """Count the calls of functions of Python in one decision."""
    calls = 0

    def profile(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    pool.sizing.decide()
    sys.setprofile(profile)
    try:
        pool.sizing.decide()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("calls", [0, 500, 100_000])
def test_a_decision_costs_little_in_a_large_pool(calls: int) -> None:
    """A thousand nodes, idle, half busy and busy: some thousand operations, which are less than a millisecond."""
    pool = SimulatedPool(Load("large", "", (), 0.0), Nodes(1000, min=1, max=2000), MARKET)
    pool.fill(1000, calls)
    assert counted(pool) <= 5000
