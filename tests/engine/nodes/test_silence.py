"""Nodes that fall silent in a pool: suspected, used again, or lost; on a virtual clock."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import skyward as sky
from tests.simulated.engine import SimulatedEngine
from tests.simulated.host import here
from tests.simulated.pool import Heard, compute
from tests.simulated.provider import Row, ScriptedCloud


@sky.function
def work(seconds: float) -> Any:
    """Take so long, and tell where."""
    return asyncio.sleep(seconds, here.get())


def fall_silent(engine: SimulatedEngine, *rows: Row, cut_off: bool = False) -> None:
    """Freeze the agents of machines, or cut the machines off."""
    for row in rows:
        engine.loop.call_soon_threadsafe(lambda row=row: row.machine.fall_silent(cut_off=cut_off))


def be_heard(engine: SimulatedEngine, *rows: Row) -> None:
    """Let through what has waited."""
    for row in rows:
        engine.loop.call_soon_threadsafe(row.machine.be_heard)


def suspected(heard: Heard) -> list[int]:
    """List the nodes that were suspected, in order."""
    return [event.node for event in heard.of(sky.NodeSuspected)]


def silent(pool: sky.Pool) -> list[int]:
    """List the nodes that get no new calls at this moment, whatever handlers have seen."""
    dispatch = pool._running.dispatch
    return [index for index, member in dispatch.members.items() if dispatch.silent.suspected(member)]


@pytest.mark.parametrize("cut_off", [False, True])
def test_a_silent_node_is_noticed_and_its_call_runs_elsewhere(engine: SimulatedEngine, cut_off: bool) -> None:
    """Within 20 s, and a second after that."""
    cloud = ScriptedCloud()
    pool, heard = compute(cloud, nodes=2)
    with pool:
        engine.pass_by(10.0)
        calls = [work(300.0) > pool for _ in range(2)]
        engine.pass_by(1.0)
        calls.append(work(1.0) > pool)
        fall_silent(engine, cloud.rows[0], cut_off=cut_off)
        noticed = engine.until(lambda: silent(pool), within=30.0)
        assert noticed <= 20.0
        assert [0] == silent(pool)
        assert 1 == len(pool._running.dispatch.silent.attempts)
        assert len({engine.result(call) for call in calls}) >= 1
    assert [0] == suspected(heard)
    assert [] == heard.of(sky.NodeRecovered)


def test_a_node_that_is_heard_again_is_used_again(engine: SimulatedEngine) -> None:
    """Its result counts, and no machine is rented for it."""
    cloud = ScriptedCloud()
    pool, heard = compute(cloud, nodes=2)
    with pool:
        engine.pass_by(10.0)
        calls = [work(100.0) > pool for _ in range(2)]
        engine.pass_by(1.0)
        fall_silent(engine, cloud.rows[0])
        engine.until(lambda: silent(pool), within=30.0)
        engine.pass_by(5.0)
        be_heard(engine, cloud.rows[0])
        assert {"cloud-0", "cloud-1"} == {engine.result(call) for call in calls}
        assert 2 == len(cloud.rows)
        assert {"cloud-0", "cloud-1"} == {engine.result(work(1.0) > pool) for _ in range(4)}
    assert [0] == [event.node for event in heard.of(sky.NodeRecovered)]
    assert [] == heard.of(sky.InstancePreempted)


def test_a_node_that_stays_silent_is_lost_and_replaced(engine: SimulatedEngine) -> None:
    """A minute after it was last heard, in words that tell silence from other losses."""
    cloud = ScriptedCloud()
    pool, heard = compute(cloud, nodes=2)
    with pool:
        engine.pass_by(10.0)
        fall_silent(engine, cloud.rows[0], cut_off=True)
        took = engine.until(lambda: pool.current_nodes() < 2, within=90.0)
        assert 57.0 <= took <= 67.0
        engine.until(lambda: pool.current_nodes() == 2 and len(cloud.there) == 2, within=60.0)
        assert "cloud-2" in {engine.result(work(1.0) > pool) for _ in range(4)}
    [lost] = heard.of(sky.InstancePreempted)
    assert ("silence", 0) == (lost.cause, lost.node)
    assert "nothing has come from it for" in lost.reason


def test_where_all_are_cut_off_they_are_waited_for(engine: SimulatedEngine) -> None:
    """The client's line may be to blame: the lease is how long they live, and calls are not begun twice."""
    cloud = ScriptedCloud()
    pool, heard = compute(cloud, nodes=2, ttl=600)
    with pool:
        engine.pass_by(10.0)
        calls = [work(100.0) > pool for _ in range(2)]
        engine.pass_by(1.0)
        fall_silent(engine, *cloud.rows, cut_off=True)
        engine.pass_by(400.0)
        assert [0, 1] == silent(pool)
        be_heard(engine, cloud.rows[1])
        engine.pass_by(3.0)
        be_heard(engine, cloud.rows[0])
        assert {"cloud-0", "cloud-1"} == {engine.result(call) for call in calls}
        assert 2 == len(cloud.rows)
    assert 2 == len(heard.of(sky.TaskStarted))


def test_a_frozen_agent_alone_is_lost_although_no_other_node_is_heard(engine: SimulatedEngine) -> None:
    """Its machine answers, so it is not the line."""
    cloud = ScriptedCloud()
    pool, heard = compute(cloud, ttl=600)
    with pool:
        engine.pass_by(10.0)
        call = work(10.0) > pool
        fall_silent(engine, cloud.rows[0])
        assert "cloud-1" == engine.result(call)
    assert ["silence"] == [event.cause for event in heard.of(sky.InstancePreempted)]


def test_a_broadcast_is_among_those_that_are_heard(engine: SimulatedEngine) -> None:
    """A silent node takes no part in one that begins meanwhile."""
    cloud = ScriptedCloud()
    pool, _ = compute(cloud, nodes=3)
    with pool:
        engine.pass_by(10.0)
        fall_silent(engine, cloud.rows[1])
        engine.until(lambda: silent(pool), within=30.0)
        with engine.clock.passing():
            assert ["cloud-0", "cloud-2"] == work(1.0) @ pool


@pytest.mark.parametrize(("seconds", "expected"), [(None, []), (6.0, [0])])
def test_how_long_is_said(engine: SimulatedEngine, seconds: float | None, expected: list[int]) -> None:
    """`suspect_timeout` is how long a node may be silent; None is for ever."""
    cloud = ScriptedCloud()
    pool, heard = compute(cloud, nodes=2, suspect_timeout=seconds, lost_timeout=30.0)
    with pool:
        engine.pass_by(10.0)
        fall_silent(engine, cloud.rows[0])
        engine.pass_by(10.0)
        assert expected == silent(pool)
        assert 2 == pool.current_nodes()
        engine.pass_by(40.0)
    assert bool(expected) == bool(heard.of(sky.InstancePreempted))


def test_nodes_that_are_heard_are_never_suspected(engine: SimulatedEngine) -> None:
    """However idle they are."""
    cloud = ScriptedCloud()
    pool, heard = compute(cloud, nodes=3)
    with pool:
        engine.pass_by(3600.0)
    assert [] == suspected(heard)
