"""An elastic pool grows while calls wait and shrinks when nodes have nothing to do, not too fast and within bounds."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

import skyward as sky
from tests.simulated.engine import SimulatedEngine
from tests.simulated.pool import compute
from tests.simulated.provider import ALWAYS, Fails, ScriptedCloud


@sky.function
def work(seconds: float) -> Any:
    """Take so long."""
    return asyncio.sleep(seconds, seconds)


def test_it_grows_while_calls_wait_and_shrinks_when_idle(engine: SimulatedEngine) -> None:
    """At most twice as large at once, one change each cooldown; down to the least when idle for long enough."""
    cloud = ScriptedCloud()
    pool, _ = compute(cloud, nodes=(1, 8), autoscale_cooldown=30.0, autoscale_idle_timeout=60.0)
    with pool:
        begun = engine.now
        calls = [work(200.0) > pool for _ in range(40)]
        engine.until(lambda: sum(len(one.nodes) for one in cloud.requests) == 8)
        grown = engine.now - begun
        times = zip(cloud.times("launch"), cloud.requests, strict=True)
        asked = [(round(at - begun), len(one.nodes)) for at, one in times][1:]
        for call in calls:
            engine.result(call)
        idle = engine.until(lambda: pool.snapshot()["desired"] == 1)
        engine.until(lambda: len(cloud.there) == 1)
    assert [1, 2, 4] == [count for _, count in asked]
    assert all(after - before >= 29 for (before, _), (after, _) in pairwise(asked))
    assert grown <= 3 * 32.0
    assert 60.0 <= idle <= 60.0 + 2 * 32.0
    assert 8 == cloud.most


def test_a_node_that_works_does_not_go(engine: SimulatedEngine) -> None:
    """However long that is; an idle one does."""
    cloud = ScriptedCloud()
    pool, _ = compute(cloud, nodes=(1, 2), autoscale_cooldown=1.0, autoscale_idle_timeout=10.0)
    with pool:
        calls = [work(100.0) > pool, work(300.0) > pool, work(0.0) > pool, work(0.0) > pool]
        engine.until(lambda: pool.current_nodes() == 2)
        for call in calls:
            engine.result(call)
        assert 2 >= len(cloud.rows)


def test_it_keeps_its_size_during_the_cooldown(engine: SimulatedEngine) -> None:
    """Which begins with each change."""
    cloud = ScriptedCloud()
    pool, _ = compute(cloud, nodes=(1, 4), autoscale_cooldown=500.0)
    with pool:
        _ = [work(2000.0) > pool for _ in range(8)]
        engine.pass_by(400.0)
        assert 1 == pool.snapshot()["desired"]
        engine.until(lambda: pool.snapshot()["desired"] == 2, within=100.0)
        engine.pass_by(490.0)
        assert 2 == pool.snapshot()["desired"]
        engine.until(lambda: pool.snapshot()["desired"] == 4, within=20.0)


def test_a_pool_of_a_fixed_size_does_not_change_by_itself(engine: SimulatedEngine) -> None:
    """Whatever waits."""
    cloud = ScriptedCloud()
    pool, _ = compute(cloud, nodes=1, autoscale_cooldown=0.0)
    with pool:
        calls = [work(60.0) > pool for _ in range(8)]
        for call in calls:
            engine.result(call)
    assert 1 == len(cloud.rows)


@pytest.mark.parametrize(("size", "machines"), [(4, 4), (1, 2), (2, 2)])
def test_a_pool_is_resized(engine: SimulatedEngine, size: int, machines: int) -> None:
    """Up or down, and each machine that is too many is given back."""
    cloud = ScriptedCloud()
    pool, _ = compute(cloud, nodes=2)
    with pool:
        pool.resize(size)
        engine.until(lambda: len(cloud.there) == size and pool.current_nodes() == size, within=60.0)
    assert (machines, []) == (len(cloud.rows), cloud.there)


def test_idle_nodes_go_first(engine: SimulatedEngine) -> None:
    """The call on the other one goes on."""
    cloud = ScriptedCloud()
    pool, _ = compute(cloud, nodes=3)
    with pool:
        call = pool.run_async(work(100.0), target=0)
        engine.pass_by(1.0)
        pool.resize(1)
        engine.until(lambda: len(cloud.there) == 1)
        assert [0] == [row.node for row in cloud.there]
        assert 100.0 == engine.result(call)


def test_machines_on_their_way_go_before_idle_nodes(engine: SimulatedEngine) -> None:
    """A pool that grows and shrinks again is never without the node that it had."""
    cloud = ScriptedCloud(boots=100.0)
    pool, _ = compute(cloud, nodes=1)
    with pool:
        pool.resize(2)
        engine.until(lambda: len(cloud.there) == 2)
        pool.resize(1)
        engine.until(lambda: len(cloud.there) == 1)
        assert (["cloud-0"], 1) == ([row.id for row in cloud.there], pool.current_nodes())


def test_a_pool_that_is_resized_may_become_elastic(engine: SimulatedEngine) -> None:
    """And stops to be."""
    cloud = ScriptedCloud()
    pool, _ = compute(cloud, nodes=1, autoscale_cooldown=1.0)
    with pool:
        calls = [work(300.0) > pool for _ in range(4)]
        pool.resize((1, 2))
        engine.until(lambda: pool.current_nodes() == 2)
        pool.resize(sky.Nodes(1))
        engine.until(lambda: len(cloud.there) == 1)
        for call in calls:
            engine.result(call)
    assert ([], 2) == (cloud.there, len(cloud.rows))


def test_an_elastic_pool_that_is_resized_stays_elastic(engine: SimulatedEngine) -> None:
    """It has that many nodes at once, whatever the cooldown, and goes on growing and shrinking from there."""
    cloud = ScriptedCloud()
    pool, _ = compute(cloud, nodes=(1, 4), autoscale_cooldown=30.0, autoscale_idle_timeout=60.0)
    with pool:
        engine.pass_by(100.0)
        pool.resize(3)
        engine.until(lambda: pool.current_nodes() == 3, within=30.0)
        calls = [work(200.0) > pool for _ in range(8)]
        engine.until(lambda: pool.current_nodes() == 4)
        for call in calls:
            engine.result(call)
        pool.resize(2)
        engine.until(lambda: len(cloud.there) == 2, within=30.0)
        engine.until(lambda: len(cloud.there) == 1)
    assert [] == cloud.there


def test_a_number_of_nodes_that_the_bounds_exclude_is_refused(engine: SimulatedEngine) -> None:
    """At once, by the bounds that were said last, and the pool stays as it is."""
    cloud = ScriptedCloud()
    pool, _ = compute(cloud, nodes=(1, 2))
    with pool:
        with pytest.raises(sky.ConfigError, match=r"1 to 2 nodes; it cannot be resized to 3"):
            pool.resize(3)
        pool.resize(sky.Nodes(1, max=3))
        pool.resize(3)
        with pytest.raises(sky.ConfigError, match=r"1 to 3 nodes; it cannot be resized to 4"):
            pool.resize(4)
        engine.until(lambda: pool.current_nodes() == 3)


def test_nodes_that_were_asked_for_are_waited_for(engine: SimulatedEngine) -> None:
    """However long they take: a node is not idle while it waits for others, and they don't go before they have come."""
    cloud = ScriptedCloud(boots=600.0)
    pool, _ = compute(cloud, nodes=(1, 3), autoscale_cooldown=5.0, autoscale_idle_timeout=60.0)
    with pool:
        engine.pass_by(500.0)
        pool.resize(3)
        engine.until(lambda: pool.current_nodes() == 3)
        stayed = engine.until(lambda: pool.snapshot()["desired"] < 3)
    assert 60.0 <= stayed <= 65.0
    assert 3 == len(cloud.rows)


def test_machines_that_an_elastic_pool_cannot_have_are_done_without(engine: SimulatedEngine) -> None:
    """It works on with those it has, and tells so; it asks again later."""
    cloud = ScriptedCloud(Fails("launch", lambda: sky.CapacityError("None."), skip=1, times=ALWAYS))
    pool, heard = compute(cloud, nodes=(1, 2), autoscale_cooldown=1.0, max_provision_attempts=2)
    with pool:
        calls = [work(60.0) > pool for _ in range(4)]
        assert [60.0] * 4 == [engine.result(call) for call in calls]
    assert any("None." in event.message for event in heard.of(sky.Error))
    assert 1 == len(cloud.rows)
