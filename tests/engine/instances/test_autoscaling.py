"""An elastic pool grows while calls wait and shrinks when nodes have nothing to do, not too fast and within bounds."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

import skyward as sky
from skyward.hookspecs import Topology
from tests.simulated.engine import SimulatedEngine
from tests.simulated.host import here
from tests.simulated.pool import compute
from tests.simulated.provider import ALWAYS, Fails, ScriptedCloud


@sky.function
def work(seconds: float) -> Any:
    """Take so long."""
    return asyncio.sleep(seconds, seconds)


@sky.function
def place() -> str:
    """Tell which machine this is."""
    return here.get()


def test_it_grows_from_the_first_second_and_shrinks_when_idle(engine: SimulatedEngine) -> None:
    """To what the queue keeps busy, by how long its calls have run; down to the least when idle for long enough."""
    cloud = ScriptedCloud()
    pool, _ = compute(cloud, nodes=(1, 8), autoscale_cooldown=30.0, autoscale_idle_timeout=60.0)
    with pool:
        calls = [work(200.0) > pool for _ in range(40)]
        grown = engine.until(lambda: len(cloud.rows) == 8)
        for call in calls:
            engine.result(call)
        idle = engine.until(lambda: pool.snapshot()["desired"] == 1)
        engine.until(lambda: len(cloud.there) == 1)
        assert [0] == [row.node for row in cloud.there]
    assert grown <= 5.0
    assert 60.0 <= idle <= 60.0 + 2.0
    assert (8, 8) == (cloud.most, len(cloud.rows))


def test_it_does_not_grow_for_what_is_done_before_a_machine_has_booted(engine: SimulatedEngine) -> None:
    """However many calls that are."""
    cloud = ScriptedCloud(boots=100.0)
    pool, _ = compute(cloud, nodes=(1, 8))
    with pool:
        engine.result(work(0.5) > pool)
        for call in [work(0.5) > pool for _ in range(100)]:
            engine.result(call)
    assert 1 == len(cloud.rows)


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


def test_it_does_not_shrink_during_the_cooldown(engine: SimulatedEngine) -> None:
    """Which begins when it grows; growing has none."""
    cloud = ScriptedCloud()
    pool, _ = compute(cloud, nodes=(1, 4), autoscale_cooldown=500.0, autoscale_idle_timeout=10.0)
    with pool:
        calls = [work(100.0) > pool for _ in range(8)]
        engine.until(lambda: len(cloud.rows) == 4, within=10.0)
        for call in calls:
            engine.result(call)
        kept = engine.until(lambda: pool.snapshot()["desired"] < 4)
    assert 200.0 <= kept <= 500.0


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
    """It works on with those it has, and tells so; it goes on asking, until nothing has waited for a while."""
    cloud = ScriptedCloud(Fails("launch", lambda: sky.CapacityError("None."), skip=1, times=ALWAYS))
    pool, heard = compute(cloud, nodes=(1, 2), autoscale_cooldown=1.0, autoscale_idle_timeout=60.0)
    with pool:
        calls = [work(60.0) > pool for _ in range(4)]
        assert [60.0] * 2 == [engine.result(call) for call in calls[:2]]
        assert 2 == pool.snapshot()["desired"]
        assert [60.0] * 2 == [engine.result(call) for call in calls[2:]]
        engine.until(lambda: pool.snapshot()["desired"] == 1, within=70.0)
        asked = len(cloud.requests)
        engine.pass_by(1000.0)
        assert asked == len(cloud.requests)
    assert any("None." in event.message for event in heard.of(sky.Error))
    delays = [event.retry_in for event in heard.of(sky.LaunchDelayed)]
    assert len(delays) >= 4
    assert delays == sorted(delays)
    assert 1 == len(cloud.rows)


def test_a_pool_that_cannot_pay_for_more_does_not_ask_each_second(engine: SimulatedEngine) -> None:
    """What its budget refused is asked for again in growing pauses."""
    cloud = ScriptedCloud(minimum_billed_s=600.0)
    pool, heard = compute(cloud, nodes=(1, 8), budget=0.04)
    with pool:
        calls = [work(100.0) > pool for _ in range(8)]
        engine.result(calls[-1])
    assert 2 == len(cloud.rows)
    refused = [event.at for event in heard.of(sky.Error) if "rents no more" in event.message]
    assert 1 <= len(refused) <= 8 * 8


LAZY = sky.Nodes(min=0, max=4)
THREE = ["cloud-0", "cloud-1", "cloud-2"]


def test_a_pool_that_may_drain_to_zero_starts_with_its_first_call(engine: SimulatedEngine) -> None:
    """It opens without a machine, rents one for the call, ends it when idle, and starts again with the next."""
    cloud = ScriptedCloud()
    pool, _ = compute(cloud, nodes=LAZY, autoscale_cooldown=0.0, autoscale_idle_timeout=60.0)
    with pool:
        engine.pass_by(600.0)
        assert ([], 0, True) == (cloud.rows, pool.current_nodes(), pool.is_active)
        for number in (1, 2):
            began = engine.now
            assert 5.0 == engine.result(work(5.0) > pool)
            # Boot, bootstrap, and the call: nothing waits for a tick.
            assert engine.now - began <= 22.0
            assert number == len(cloud.rows)
            engine.until(lambda: not cloud.there, within=65.0)
            assert 0 == pool.snapshot()["desired"]
    assert [] == cloud.there


def test_a_pool_that_is_never_called_costs_nothing(engine: SimulatedEngine) -> None:
    """For as long as it is open."""
    cloud = ScriptedCloud()
    pool, _ = compute(cloud, nodes=LAZY)
    with pool:
        engine.pass_by(36_000.0)
    assert ([], 0.0) == (cloud.requests, pool.cost.accumulated)


def test_a_broadcast_starts_as_many_nodes_as_are_desired(engine: SimulatedEngine) -> None:
    """And reaches all of them."""
    cloud = ScriptedCloud()
    pool, _ = compute(cloud, nodes=sky.Nodes(3, min=0, max=8))
    with pool:
        with engine.beside(lambda: place() @ pool, lambda: pool.snapshot()["desired"] == 3) as done:
            engine.until(lambda: done)
        assert [THREE] == [sorted(each) for each in done]
    assert 3 == len(cloud.rows)


def test_a_call_for_the_head_of_a_pool_without_nodes_starts_it(engine: SimulatedEngine) -> None:
    """Node 0 is the first that it gets; a node that it does not have is refused."""
    cloud = ScriptedCloud()
    pool, _ = compute(cloud, nodes=LAZY)
    with pool:
        with pytest.raises(sky.ConfigError, match='target must be "head" or a node from 0 to 0, not 3'):
            pool.run_async(place(), target=3)
        assert "cloud-0" == engine.result(pool.run_async(place(), target="head"))
        assert "cloud-0" == engine.result(pool.run_async(place(), target=0))


def test_a_port_of_a_pool_without_nodes_is_refused(engine: SimulatedEngine) -> None:
    """With what to do; it can be forwarded once there is one."""
    pool, _ = compute(ScriptedCloud(), nodes=LAZY)
    with pool:
        with pytest.raises(sky.UsageError, match=r"pool\.forward needs a node.*has none now.*Call a function first"):
            pool.forward(8888)
        pool.resize(1)
        engine.until(lambda: pool.current_nodes() == 1)
        pool.forward(8888).close()


def test_a_pool_without_nodes_that_cannot_have_one_fails_its_calls(engine: SimulatedEngine) -> None:
    """After as many attempts as opening it would have taken, with the reason as itself."""
    cloud = ScriptedCloud(Fails("launch", lambda: sky.CapacityError("None."), times=ALWAYS))
    pool, _ = compute(cloud, nodes=LAZY, allocation="spot")
    with pool:
        call = work(1.0) > pool
        with pytest.raises(sky.CapacityError, match="None"):
            engine.result(call)
        with pytest.raises(sky.CapacityError, match="None"):
            place() @ pool
    assert 3 == len(cloud.requests)


def test_a_pool_that_is_left_starts_for_the_calls_that_it_waits_for(engine: SimulatedEngine) -> None:
    """They were sent before the end of the block."""
    cloud = ScriptedCloud()
    pool, _ = compute(cloud, nodes=LAZY)
    with pool:
        call = work(5.0) > pool
    assert (5.0, []) == (call.result(), cloud.there)


def test_nodes_that_come_later_take_part_in_later_broadcasts(engine: SimulatedEngine) -> None:
    """One that runs keeps its members."""
    cloud = ScriptedCloud()
    pool, _ = compute(cloud, nodes=1)
    with pool:
        assert ["cloud-0"] == place() @ pool
        pool.resize(3)
        engine.until(lambda: pool.current_nodes() == 3)
        assert sorted(THREE) == sorted(place() @ pool)


JOB = sky.Plugin.create("job").with_topology(lambda cluster: Topology(collective=True))


def test_a_pool_whose_ranks_form_a_job_is_not_resized_while_one_runs(engine: SimulatedEngine) -> None:
    """What was asked for meanwhile comes when it has ended."""
    cloud = ScriptedCloud(nodes_reach_each_other=True)
    pool, _ = compute(cloud, nodes=2, plugins=[JOB])
    with pool:
        with engine.beside(lambda: work(100.0) @ pool, lambda: pool.snapshot()["running"] == 2) as done:
            pool.resize(1)
            engine.pass_by(50.0)
            assert (2, []) == (pool.current_nodes(), done)
            engine.until(lambda: len(cloud.there) == 1, within=60.0)
        assert [[100.0, 100.0]] == done


def test_a_pool_that_is_being_left_is_not_resized(engine: SimulatedEngine) -> None:
    """Nor one that was; the error says so, and nothing is rented."""
    cloud = ScriptedCloud()
    pool, _ = compute(cloud)
    refused: list[Exception] = []

    def resize(event: sky.PoolStopping) -> None:
        try:
            pool.resize(4)
        except sky.PoolClosedError as error:
            refused.append(error)

    pool.on(sky.PoolStopping, resize)
    with pool:
        pass
    with pytest.raises(sky.PoolClosedError, match="is closed"):
        pool.resize(4)
    assert 1 == len(cloud.rows)
    assert all("left" in str(error) or "closed" in str(error) for error in refused)
    assert 1 == len(refused)


@pytest.mark.parametrize("seed", range(6))
def test_there_are_never_more_machines_than_were_asked_for(engine: SimulatedEngine, seed: int) -> None:
    """However many answers are lost, machines taken and sizes changed; in the end there are as many as asked for."""
    chance = Random(seed)
    lost = [
        Fails("launch", times=chance.randint(1, 3), skip=chance.randint(1, 6), done=chance.random() < 0.7)
        for _ in range(4)
    ]
    none = Fails("launch", lambda: sky.CapacityError("None."), times=chance.randint(1, 9), skip=chance.randint(1, 6))
    cloud = ScriptedCloud(*lost, none, Fails("instances", times=3, skip=chance.randint(0, 9)))
    pool, _ = compute(cloud, nodes=sky.Nodes(1, min=0, max=4), autoscale_cooldown=0.0, autoscale_idle_timeout=30.0)
    with pool:
        calls = [work(1.0) > pool]
        engine.result(calls[0])
        for _ in range(12):
            match chance.randrange(4):
                case 0:
                    pool.resize(chance.randint(1, 4))
                case 1 if cloud.there:
                    engine.loop.call_soon_threadsafe(cloud.take, chance.choice(cloud.there))
                case _:
                    calls += [work(chance.uniform(1.0, 100.0)) > pool for _ in range(chance.randint(1, 6))]
            engine.pass_by(chance.uniform(0.0, 40.0))
            # One whose answer was lost is known again with the next, before another one is asked for.
            assert len(cloud.there) <= 4 + len([row for row in cloud.there if row.asked_at is not None])
        for call in calls:
            engine.result(call)
        engine.until(lambda: not cloud.there)
    assert [] == cloud.there
