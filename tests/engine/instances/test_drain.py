"""A machine that is about to be taken back: its calls go on, nothing new begins there, and another takes its place."""

from __future__ import annotations

import asyncio
from typing import Any

import skyward as sky
from skyward.link.frames import Kind
from tests.simulated.engine import SimulatedEngine
from tests.simulated.host import here
from tests.simulated.pool import Heard, compute
from tests.simulated.provider import Fails, Row, ScriptedCloud


@sky.function
def work(seconds: float) -> Any:
    """Take so long, and tell where."""
    return asyncio.sleep(seconds, here.get())


def warn(engine: SimulatedEngine, row: Row, *, certain: bool = True) -> None:
    """Have a machine learn that it is taken back, or may be."""
    notice = {"reason": "rebalance", "certain": certain, "at": None}
    engine.loop.call_soon_threadsafe(row.machine.tell, Kind.NOTICE, notice)


def open_one(*script: Any, **settings: Any) -> tuple[ScriptedCloud, sky.Compute, Heard]:
    """Make a pool of one node."""
    cloud = ScriptedCloud(*script)
    return cloud, *compute(cloud, **settings)


def test_a_call_goes_on_while_the_next_ones_run_elsewhere(engine: SimulatedEngine) -> None:
    """The machine that is taken back ends its call and is given back; nothing is lost or begins again."""
    cloud, pool, heard = open_one()
    with pool:
        first = work(100.0) > pool
        engine.pass_by(1.0)
        warn(engine, cloud.rows[0])
        second = work(1.0) > pool
        assert "cloud-1" == engine.result(second)
        assert 2 == len(cloud.there)
        assert "cloud-0" == engine.result(first)
        engine.until(lambda: len(cloud.there) == 1, within=10.0)
        assert 1 == pool.current_nodes()
    assert [1, 1] == [sum(event.task_id == name for event in heard.of(sky.TaskStarted)) for name in tasks(heard)]
    assert [True] == [event.certain for event in heard.of(sky.InstancePreempted)]
    assert [("cloud-0", "cloud-1")] == [(event.old, event.new) for event in heard.of(sky.InstanceReplaced)]


def tasks(heard: Heard) -> list[str]:
    """List the tasks that began."""
    return list(dict.fromkeys(event.task_id for event in heard.of(sky.TaskStarted)))


def test_an_idle_machine_goes_at_once(engine: SimulatedEngine) -> None:
    """Before it is taken."""
    cloud, pool, _ = open_one()
    with pool:
        warn(engine, cloud.rows[0])
        assert engine.until(lambda: not cloud.rows[0].there) <= cloud.ends + 1.0
        engine.until(lambda: pool.current_nodes() == 1)


def test_a_call_on_a_machine_that_is_taken_early_begins_again_elsewhere(engine: SimulatedEngine) -> None:
    """And the machine is not counted as lost a second time."""
    cloud, pool, heard = open_one()
    with pool:
        call = work(100.0) > pool
        engine.pass_by(1.0)
        warn(engine, cloud.rows[0])
        engine.pass_by(30.0)
        engine.loop.call_soon_threadsafe(cloud.take, cloud.rows[0])
        assert "cloud-1" == engine.result(call)
    assert 1 == len(heard.of(sky.InstancePreempted))
    assert 2 == len(cloud.rows)


def test_a_mere_recommendation_is_told_and_changes_nothing(engine: SimulatedEngine) -> None:
    """The machine stays."""
    cloud, pool, heard = open_one()
    with pool:
        warn(engine, cloud.rows[0], certain=False)
        engine.pass_by(60.0)
        assert 1 == len(cloud.rows)
    assert [False] == [event.certain for event in heard.of(sky.InstancePreempted)]


def test_leaving_the_pool_waits_for_a_call_on_a_machine_that_goes(engine: SimulatedEngine) -> None:
    """As for any other call, and all machines are given back."""
    cloud, pool, _ = open_one()
    with pool:
        call = work(50.0) > pool
        engine.pass_by(1.0)
        warn(engine, cloud.rows[0])
        engine.pass_by(1.0)
    assert "cloud-0" == call.result()
    assert [] == cloud.there


def test_a_machine_that_goes_is_counted_until_it_is_given_back(engine: SimulatedEngine) -> None:
    """Although its place is another's; the cloud is slow to end it."""
    cloud, pool, _ = open_one(Fails("terminate", times=2))
    with pool:
        warn(engine, cloud.rows[0])
        engine.until(lambda: pool.current_nodes() == 1 and len(cloud.rows) == 2)
        engine.until(lambda: pool.instance_count == 1)
        assert ["cloud-1"] == [row.id for row in cloud.there]


def fall_ill(engine: SimulatedEngine, row: Row) -> None:
    """Have a machine fail its health check, which it passed before."""
    notice = {"check": "user", "reason": "it returned False", "certain": True, "passed": True, "at": None}
    engine.loop.call_soon_threadsafe(row.machine.tell, Kind.NOTICE, notice)


def test_a_node_that_failed_a_check_has_a_minute_to_end_its_calls(engine: SimulatedEngine) -> None:
    """Its machine stays until then; what still runs begins again elsewhere."""
    cloud, pool, heard = open_one()
    with pool:
        first = work(100.0) > pool
        engine.pass_by(1.0)
        fall_ill(engine, cloud.rows[0])
        assert "cloud-1" == engine.result(first)
        engine.until(lambda: len(cloud.there) == 1, within=10.0)
    assert [True] == [event.replaced for event in heard.of(sky.NodeUnhealthy)]
    assert [] == heard.of(sky.InstancePreempted)
    assert [("cloud-0", "cloud-1")] == [(event.old, event.new) for event in heard.of(sky.InstanceReplaced)]
