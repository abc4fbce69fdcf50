"""One owner knows each instance from the request to the confirmed end, and lets nodes, bill and handlers know."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from attrs import evolve

import skyward as sky
from skyward.engine.instances.regions import RETRIES
from skyward.hookspecs import Instance, InstanceState, hookimpl
from skyward.model.instances.cluster import Cluster
from skyward.plan.instances.instance_list import ORPHANED_FOR
from skyward.testing import NoCapacity
from tests.simulated.engine import SimulatedEngine
from tests.simulated.pool import compute
from tests.simulated.provider import ALWAYS, Fails, Row, ScriptedCloud

EVERY = sky.Options().reconcile_tick_interval


def test_a_late_confirmation_is_reported_when_it_comes(engine: SimulatedEngine) -> None:
    """All attempts failed, the watch tried again: the bill ends there, and not when the pool is left."""
    cloud = ScriptedCloud(Fails("terminate", times=RETRIES + 1))
    pool, heard = compute(cloud, nodes=2)
    with pool:
        pool.resize(1)
        engine.until(lambda: len(cloud.there) == 1, within=120.0)
        engine.pass_by(600.0)
    late, left = heard.of(sky.InstanceDestroyed)
    assert ("cloud-1", "its end was confirmed late") == (late.instance_id, late.reason)
    assert "cloud-0" == left.instance_id
    assert pool.receipt is not None
    [first, second] = sorted(pool.receipt.nodes, key=lambda node: node.instance_id)
    assert first.seconds > second.seconds + 500.0


def test_a_machine_that_is_listed_as_ending_and_was_no_node_s_is_terminated(engine: SimulatedEngine) -> None:
    """Before the pool is left: what its cloud says of it may be wrong, and it may be billed."""
    cloud = ScriptedCloud(forgets=True)
    pool, _ = compute(cloud)

    async def fails() -> Row:
        row = cloud.add(cloud.requests[0], 0)
        row.state = InstanceState.ENDING
        return row

    with pool:
        row = engine.run(fails())
        engine.until(lambda: not row.there, within=ORPHANED_FOR + 2 * EVERY + cloud.ends)
        assert 1 == pool.current_nodes()


def test_machines_of_failed_launches_are_counted_until_they_are_gone(engine: SimulatedEngine) -> None:
    """`instance_count` has what is booting, drained and being terminated, and not what is confirmed to be gone."""
    cloud = ScriptedCloud(NoCapacity(left=1), ends=30.0)
    pool, _ = compute(cloud)
    with pool:
        assert 1 == pool.instance_count
        cloud.script.clear()
        pool.resize(2)
        engine.until(lambda: len(cloud.rows) == 2)
        engine.until(lambda: pool.instance_count == 2, within=5.0)
        engine.until(lambda: pool.current_nodes() == 2)
        pool.resize(1)
        engine.pass_by(20.0)
        assert (2, 1) == (pool.instance_count, pool.current_nodes())
        engine.until(lambda: pool.instance_count == 1, within=30.0)


class Renamed(ScriptedCloud):
    """A cloud whose lists call it by another name than its launches and facts."""

    @hookimpl
    async def skyward_instances(self, cluster: Cluster, infra: str | None) -> Sequence[Instance]:
        return [evolve(row, provider="other") for row in await super().skyward_instances(cluster, infra)]


def test_a_cloud_that_names_itself_otherwise_in_lists_loses_nothing(engine: SimulatedEngine) -> None:
    """Instances are known by the name that the provider's facts give."""
    cloud = Renamed()
    pool, heard = compute(cloud)
    with pool:
        engine.pass_by(2 * ORPHANED_FOR + 3 * EVERY)
        assert (1, 1) == (pool.current_nodes(), len(cloud.there))
    assert [] == heard.of(sky.InstancePreempted)


@pytest.mark.parametrize("extra", [1, 3])
def test_a_cloud_that_rents_more_than_was_asked_for(engine: SimulatedEngine, extra: int) -> None:
    """A node gets one of them, and the others are terminated and on the bill."""
    cloud = ScriptedCloud()

    def more(answer: Any) -> Any:
        rows = [cloud.add(cloud.requests[0], 0) for _ in range(extra)]
        return [*answer, *(evolve(answer[0], id=row.id) for row in rows)]

    cloud.answer = more
    pool, _ = compute(cloud)
    with pool:
        engine.until(lambda: len(cloud.there) == 1, within=ORPHANED_FOR + 3 * EVERY)
        assert "cloud-0" == cloud.there[0].id
    assert pool.receipt is not None
    assert 1 + extra == len(pool.receipt.nodes)
    assert all(node.ended for node in pool.receipt.nodes)


def test_a_handler_that_fails_keeps_no_orphan_from_being_terminated(
    engine: SimulatedEngine, caplog: pytest.LogCaptureFixture
) -> None:
    """The failure is logged, and everything else that a list asks for is done."""
    cloud = ScriptedCloud(forgets=True)
    pool, _ = compute(cloud)

    def fails(machine: Instance, rate: float | None) -> None:
        raise ZeroDivisionError

    with pool:
        assert pool._open is not None
        pool._open.meter.bill.orphaned = fails  # type: ignore[method-assign]  # the bill is broken
        engine.run(_twice(cloud))
        engine.until(lambda: len(cloud.there) == 1, within=ORPHANED_FOR + 3 * EVERY)
    assert "instances.command_failed" in caplog.text


async def _twice(cloud: ScriptedCloud) -> None:
    cloud.add(cloud.requests[0], 0)


def test_an_orphan_that_cannot_be_listed_any_more_is_named(engine: SimulatedEngine) -> None:
    """It was seen, and the last lists fail: it may be billed, so that the pool is left by an error with its id."""
    cloud = ScriptedCloud(forgets=True)
    pool, _ = compute(cloud)
    pool.open()
    engine.run(_twice(cloud))
    looks = len(cloud.times("instances"))
    engine.until(lambda: len(cloud.times("instances")) == looks + 1)
    cloud.script.append(Fails("instances", times=ALWAYS))
    with pytest.raises(sky.LeftBehindError, match=r"billed for cloud-1: Its end is not confirmed\.") as caught:
        pool.close()
    assert ("cloud-1",) == caught.value.instances


def test_a_second_interrupt_hurries_nodes_that_are_being_given_back(engine: SimulatedEngine) -> None:
    """Those that do not say that they have left are waited for no longer."""
    cloud = ScriptedCloud()
    pool, _ = compute(cloud, nodes=2)
    pool.open()
    assert pool._open is not None
    running = pool._open.running
    for row in cloud.rows:
        [host] = row.machine.hosts
        assert host.agent is not None
        host.agent.say = lambda frame: None  # type: ignore[method-assign]  # it never says that it stopped

    async def leave() -> float:
        closing = asyncio.ensure_future(running.close(60.0))
        await asyncio.sleep(1.0)
        began = running.instances.now()
        await running.abort(10.0)
        await closing
        return running.instances.now() - began

    assert engine.run(leave()) <= cloud.ends + 1.0
    assert [] == cloud.there
    pool.close()
