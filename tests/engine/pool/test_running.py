"""An open pool: nodes that are lost are replaced and their calls begin again, until there is nothing left to try."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import skyward as sky
from skyward.testing import DiesInBootstrap, NeverBoots, NoCapacity, Preempt, SlowApi, Unreachable
from tests.simulated.engine import SimulatedEngine
from tests.simulated.host import here
from tests.simulated.pool import compute
from tests.simulated.provider import ALWAYS, SMALL, Fails, Row, ScriptedCloud


@sky.function
def work(seconds: float) -> Any:
    """Take so long, and tell where."""
    return asyncio.sleep(seconds, here.get())


def cut(engine: SimulatedEngine, row: Row) -> None:
    """Have a machine go away, unknown to its cloud."""
    engine.loop.call_soon_threadsafe(row.machine.switch_off)


def interrupted(engine: SimulatedEngine, cloud: ScriptedCloud, pool: sky.Compute) -> tuple[str, float]:
    """Have the cloud take a machine halfway through a call of 100 s; return its result and the seconds from then."""
    call = work(100.0) > pool
    engine.pass_by(50.0)
    engine.loop.call_soon_threadsafe(cloud.take, cloud.rows[0])
    began = engine.now
    return engine.result(call), engine.now - began


def test_a_machine_that_is_taken_is_replaced_and_its_call_begins_again(engine: SimulatedEngine) -> None:
    """At once: the lost link says so, before the next list."""
    cloud = ScriptedCloud()
    pool, heard = compute(cloud)
    with pool:
        where, seconds = interrupted(engine, cloud, pool)
    assert "cloud-1" == where
    # Looked for within seconds, booted, made ready, and all of the call.
    assert 116.0 <= seconds <= 116.0 + cloud.ends + 2.0
    assert [("cloud-0", "cloud-1", 0)] == [(one.old, one.new, one.node) for one in heard.of(sky.InstanceReplaced)]


def test_the_cluster_is_provisioned_once_when_all_of_its_first_machines_run(engine: SimulatedEngine) -> None:
    """With the first machine of each node, or the next one in its place; what is replaced later tells nothing."""
    cloud = ScriptedCloud(NeverBoots(times=1))
    pool, heard = compute(cloud, nodes=2, provision_timeout=60.0)
    with pool:
        call = work(100.0) > pool
        engine.pass_by(50.0)
        engine.loop.call_soon_threadsafe(cloud.take, cloud.there[0])
        engine.result(call)
    assert heard.of(sky.InstanceReplaced)
    [provisioned] = heard.of(sky.ClusterProvisioned)
    [ready] = heard.of(sky.ClusterReady)
    assert (2, 2) == (provisioned.nodes, ready.nodes)
    assert 60.0 < provisioned.elapsed <= ready.elapsed
    order = [type(event) for event in heard if isinstance(event, (sky.InstanceProvisioned, sky.ClusterProvisioned))]
    assert [sky.InstanceProvisioned] * 2 == order[: order.index(sky.ClusterProvisioned)]


def test_the_receipt_is_true_of_a_call_that_began_again(engine: SimulatedEngine) -> None:
    """Its time is computing on either machine, and the first result came of the second."""
    cloud = ScriptedCloud()
    pool, heard = compute(cloud)
    with pool:
        interrupted(engine, cloud, pool)
    receipt = pool.receipt
    assert receipt is not None
    assert [50.0, 100.0] == [pytest.approx(node.computing, abs=0.1) for node in receipt.nodes]
    assert receipt.first_result is not None
    assert 100.0 == pytest.approx(receipt.first_result.first_call, abs=0.1)
    kinds = heard.kinds
    assert kinds.index("TaskStarted", kinds.index("InstanceReplaced")) > kinds.index(
        "NodeReady", kinds.index("InstanceReplaced")
    )


def test_a_machine_that_its_cloud_goes_on_billing_is_ended(engine: SimulatedEngine) -> None:
    """A node that is lost is given back, whatever the cloud says of it."""
    cloud = ScriptedCloud()
    pool, _ = compute(cloud)
    with pool:
        cut(engine, cloud.rows[0])
        engine.until(lambda: pool.current_nodes() == 1 and len(cloud.rows) == 2)
        assert ["cloud-1"] == [row.id for row in cloud.there]


def test_a_call_begins_again_only_so_often(engine: SimulatedEngine) -> None:
    """`retry_on_interruption` times; then it fails, and the pool goes on."""
    cloud = ScriptedCloud(Preempt(after=30.0, times=2))
    pool, _ = compute(cloud, retry_on_interruption=1)
    with pool:
        call = work(100.0) > pool
        with pytest.raises(sky.NodeLostError):
            engine.result(call)
        assert "cloud-2" == engine.result(work(1.0) > pool)


@pytest.mark.parametrize(
    "fault",
    [DiesInBootstrap(times=2), Unreachable(times=2), NeverBoots(times=2), Preempt(after=2.0, times=2)],
    ids=repr,
)
def test_machines_that_never_become_nodes_are_replaced(engine: SimulatedEngine, fault: Any) -> None:
    """Each in its turn, until one holds."""
    cloud = ScriptedCloud(fault)
    pool, _ = compute(cloud, provision_timeout=60.0, bootstrap_timeout=60.0)
    with pool:
        assert "cloud-2" == work(0.0) >> pool
    assert (3, []) == (len(cloud.rows), cloud.there)


@pytest.mark.parametrize("fault", [DiesInBootstrap(times=ALWAYS), Unreachable(times=ALWAYS)], ids=["dies", "away"])
@pytest.mark.parametrize("attempts", [1, 2, None])
def test_machines_that_never_become_nodes_are_given_up(
    engine: SimulatedEngine, fault: Any, attempts: int | None
) -> None:
    """One error, after `max_provision_attempts` of them, three where nothing is said."""
    cloud = ScriptedCloud(fault)
    pool, _ = compute(cloud, bootstrap_timeout=60.0, max_provision_attempts=attempts)
    with pytest.raises(sky.ProvisionError, match="cloud-"):
        pool.open()
    assert (attempts or 3, []) == (len(cloud.rows), cloud.there)


def test_pauses_between_attempts_grow_where_machines_cannot_be_had(engine: SimulatedEngine) -> None:
    """Two seconds, four; or as the option says."""
    offers, sold_out = (SMALL,), Fails("launch", lambda: sky.CapacityError("None."), times=ALWAYS)
    for delay, pauses in ((None, [2.0, 4.0, 8.0]), (7.0, [7.0, 7.0, 7.0]), (0.0, [0.0, 0.0, 0.0])):
        cloud, began = ScriptedCloud(sold_out, offers=offers), engine.now
        pool, _ = compute(cloud, max_provision_attempts=4, provision_retry_delay=delay, allocation="spot")
        with pytest.raises(sky.CapacityError):
            pool.open()
        times = [at - began for at in cloud.times("launch")]
        assert [sum(pauses[:n]) for n in range(4)] == pytest.approx(times)


def test_a_working_pool_keeps_its_size_however_long_there_is_no_machine(engine: SimulatedEngine) -> None:
    """It works on with the nodes it has, tries again in growing pauses, and has its size as soon as it can."""
    sold_out = Fails("launch", lambda: sky.CapacityError("None."), skip=1, times=60)
    cloud = ScriptedCloud(sold_out)
    pool, heard = compute(cloud, nodes=2, allocation="spot")
    with pool:
        engine.loop.call_soon_threadsafe(cloud.take, cloud.rows[0])
        engine.until(lambda: len(heard.of(sky.LaunchDelayed)) >= 12)
        assert (2, 1) == (pool.snapshot()["desired"], pool.current_nodes())
        assert "cloud-1" == work(0.0) >> pool
        engine.until(lambda: pool.current_nodes() == 2, within=86_400.0)
        assert [0, 1] == sorted(row.node for row in cloud.there)
    delays = [event.retry_in for event in heard.of(sky.LaunchDelayed)]
    assert [2.0, 4.0, 8.0] == [pytest.approx(delay, rel=0.2) for delay in delays[:3]]
    assert max(delays) <= 360.0
    assert {(0,)} == {event.nodes for event in heard.of(sky.LaunchDelayed)}
    assert [*range(1, len(delays) + 1)] == [event.failures for event in heard.of(sky.LaunchDelayed)]
    assert [] == [event for event in heard.of(sky.Error) if event.fatal]
    assert 2 == cloud.most


def test_a_provider_that_fails_for_a_while_makes_no_pool_smaller(engine: SimulatedEngine) -> None:
    """Also where what it raises is no error of ours."""
    cloud = ScriptedCloud(Fails("launch", skip=1, times=9))
    pool, _ = compute(cloud, nodes=2)
    with pool:
        engine.loop.call_soon_threadsafe(cloud.take, cloud.rows[0])
        engine.until(lambda: len(cloud.rows) == 3)
        engine.until(lambda: pool.current_nodes() == 2)
    assert [] == cloud.there


def test_calls_wait_for_a_pool_that_has_lost_all_of_its_nodes(engine: SimulatedEngine) -> None:
    """And run as soon as there is a machine again."""
    cloud = ScriptedCloud(Fails("launch", lambda: sky.CapacityError("None."), skip=1, times=20))
    pool, _ = compute(cloud, allocation="spot")
    with pool:
        call = work(100.0) > pool
        engine.pass_by(1.0)
        engine.loop.call_soon_threadsafe(cloud.take, cloud.rows[0])
        assert "cloud-1" == engine.result(call)


def test_a_pool_that_waits_for_a_machine_is_left_at_once(engine: SimulatedEngine) -> None:
    """Whatever is left of a pause."""
    cloud = ScriptedCloud(Fails("launch", lambda: sky.CapacityError("None."), skip=1, times=ALWAYS))
    pool, heard = compute(cloud, allocation="spot")
    with pool:
        engine.loop.call_soon_threadsafe(cloud.take, cloud.rows[0])
        engine.until(lambda: any(event.retry_in > 200.0 for event in heard.of(sky.LaunchDelayed)))
        began = engine.now
    assert engine.now - began <= 10.0


def test_a_broadcast_begins_again_without_a_node_that_cannot_be_had(engine: SimulatedEngine) -> None:
    """Once its start has failed three times; one that comes takes part in the next."""
    cloud = ScriptedCloud(Fails("launch", lambda: sky.CapacityError("None."), skip=1, times=8))
    pool, _ = compute(cloud, nodes=2, allocation="spot")
    with pool:
        with engine.beside(lambda: work(100.0) @ pool, lambda: pool.snapshot()["running"] == 2) as done:
            engine.loop.call_soon_threadsafe(cloud.take, cloud.rows[0])
            engine.until(lambda: done)
        assert [["cloud-1"]] == done
        engine.until(lambda: pool.current_nodes() == 2)
        assert 2 == len(work(0.0) @ pool)


def test_a_working_pool_goes_on_with_fewer_nodes_where_that_is_asked_for(engine: SimulatedEngine) -> None:
    """`max_replacement_attempts`: one that cannot be replaced is done without; the last one is not."""
    cloud = ScriptedCloud(Fails("launch", lambda: sky.CapacityError("None."), skip=1, times=ALWAYS))
    pool, heard = compute(cloud, nodes=2, max_replacement_attempts=2)
    with pool:
        engine.loop.call_soon_threadsafe(cloud.take, cloud.rows[0])
        engine.until(lambda: pool.snapshot()["desired"] == 1)
        assert "cloud-1" == work(0.0) >> pool
        call = work(100.0) > pool
        engine.pass_by(1.0)
        engine.loop.call_soon_threadsafe(cloud.take, cloud.rows[1])
        with pytest.raises(sky.SkywardError, match="has no nodes left"):
            engine.result(call)
    assert [True] == [event.fatal for event in heard.of(sky.Error) if event.fatal]
    assert [] == cloud.there


def test_a_pool_is_usable_with_the_least_of_its_nodes(engine: SimulatedEngine) -> None:
    """Whatever becomes of the others."""
    cloud = ScriptedCloud(NeverBoots(times=2))
    pool, _ = compute(cloud, nodes=sky.Nodes(desired=4, min=2), provision_timeout=60.0)
    with pool:
        assert (16.0, 2) == (pytest.approx(engine.now), pool.current_nodes())
        engine.until(lambda: pool.current_nodes() == 4)
    assert [] == cloud.there


def test_machines_that_come_when_the_pool_is_left_are_given_back(engine: SimulatedEngine) -> None:
    """Also those that a launch under way brings."""
    cloud = ScriptedCloud(boots=100.0)
    pool, _ = compute(cloud, nodes=1)
    with pool:
        pool.resize(5)
        engine.until(lambda: len(cloud.rows) == 5)
    assert [] == cloud.there


def test_specs_are_tried_in_turn_and_what_the_first_had_is_given_back(engine: SimulatedEngine) -> None:
    """Before the next one is asked."""
    first = ScriptedCloud(DiesInBootstrap(times=ALWAYS), name="first")
    second = ScriptedCloud(name="second")
    first_left: list[int] = []
    second.when = lambda hook: first_left.append(len(first.there))
    pool, _ = compute(first, second)
    with pool:
        assert "second-0" == work(0.0) >> pool
    assert {0} == {*first_left}
    assert ([], []) == (first.there, first.open)


def test_no_spec_that_can_be_had_is_one_error(engine: SimulatedEngine) -> None:
    """With the reason of each provider."""
    clouds = [ScriptedCloud(NoCapacity(), name="first"), ScriptedCloud(Fails("offers"), name="second")]
    pool, _ = compute(*clouds)
    with pytest.raises(sky.AllProvidersFailedError, match=r"(?s)first: .*no small left.*second: .*the line is cut"):
        pool.open()


def test_a_budget_stops_a_pool_in_the_middle_of_a_call(engine: SimulatedEngine) -> None:
    """The call fails with the figures, the machines are ended in time, and the budget holds."""
    cloud = ScriptedCloud(minimum_billed_s=60.0)
    pool, heard = compute(cloud, nodes=2, budget=0.1)
    stopped = r"'pool' was stopped: it has cost .*budget is \$0\.10"
    with pytest.raises(sky.BudgetExceededError, match=stopped) as caught, pool:
        engine.result(work(1e6) > pool)
    assert 0.09 <= caught.value.cost <= pool.cost.accumulated <= 0.1
    # Two machines at 0.1 USD an hour.
    assert 1740.0 <= engine.now <= 1800.0
    assert [] == cloud.there
    assert pool.receipt is not None
    assert all(node.ended for node in pool.receipt.nodes)
    assert [] == [one for one in heard.of(sky.CostFinal) if one.total_cost > 0.1]


def test_a_stop_that_nobody_noticed_is_raised_by_leaving(engine: SimulatedEngine) -> None:
    """And one that was caught is not raised again; new calls fail in the same way."""
    cloud = ScriptedCloud()
    pool, _ = compute(cloud, budget=0.05)
    with pytest.raises(sky.BudgetExceededError, match="was stopped"), pool:  # noqa: PT012
        engine.until(lambda: not cloud.there)
        assert 0 == pool.instance_count
    pool, _ = compute(ScriptedCloud(), budget=0.05)
    with pool:
        with pytest.raises(sky.BudgetExceededError):
            engine.result(work(1e6) > pool)
        with pytest.raises(sky.BudgetExceededError):
            work(0.0) >> pool
        with pytest.raises(sky.BudgetExceededError):
            work(0.0) @ pool


def test_another_error_of_the_block_is_not_hidden_by_a_stop(engine: SimulatedEngine) -> None:
    """What the program itself raised after the stop comes out."""
    cloud = ScriptedCloud()
    pool, _ = compute(cloud, budget=0.05)
    with pytest.raises(ZeroDivisionError), pool:  # noqa: PT012
        engine.until(lambda: not cloud.there)
        _ = 1 // 0


def test_a_budget_refuses_what_it_cannot_pay_before_anything_is_rented(engine: SimulatedEngine) -> None:
    """Two machines that cost more by the time they are terminated than there is."""
    cloud = ScriptedCloud(minimum_billed_s=60.0)
    pool, heard = compute(cloud, nodes=2, budget=0.001)
    with pytest.raises(sky.BudgetExceededError, match=r"'pool' rents no more: 2 machines at \$0\.10 an hour"):
        pool.open()
    assert ([], [], 0.0) == (cloud.requests, heard.of(sky.CostUpdate), pool.cost.accumulated)


def test_a_pool_goes_on_with_the_nodes_that_its_budget_pays(engine: SimulatedEngine) -> None:
    """More of them are refused, and told of."""
    cloud = ScriptedCloud(minimum_billed_s=600.0)
    pool, heard = compute(cloud, budget=0.04)
    with pool:
        pool.resize(8)
        engine.until(lambda: pool.snapshot()["desired"] < 8)
        engine.pass_by(5.0)
        assert "cloud-0" == work(0.0) >> pool
    assert any("rents no more" in event.message for event in heard.of(sky.Error))
    assert 1 == len(cloud.rows)


def test_a_pool_within_its_budget_is_left_alone(engine: SimulatedEngine) -> None:
    """A budget that is not reached changes nothing."""
    cloud = ScriptedCloud()
    pool, heard = compute(cloud, budget=10.0)
    with pool:
        assert "cloud-0" == engine.result(work(3600.0) > pool)
    assert 0.1 <= pool.cost.accumulated < 0.11
    assert [] == heard.of(sky.Error)


def test_what_is_sold_out_is_not_asked_for_again_where_there_is_another_spec(engine: SimulatedEngine) -> None:
    """Each of its offers once, and no pause before the other one is had; the last spec is asked again."""
    first, second = ScriptedCloud(NoCapacity(), name="first"), ScriptedCloud(name="second")
    pool, _ = compute(first, second)
    with pool:
        assert 16.0 == pytest.approx(engine.now)
    assert [True, False] == [request.spot for request in first.requests]
    clouds = [ScriptedCloud(NoCapacity(), name="first"), ScriptedCloud(NoCapacity(), name="second")]
    pool, _ = compute(*clouds)
    with pytest.raises(sky.AllProvidersFailedError):
        pool.open()
    assert [2, 6] == [len(cloud.requests) for cloud in clouds]


def test_a_machine_that_is_wanted_again_is_not_asked_for_twice(engine: SimulatedEngine) -> None:
    """The pool shrank and grew again while its launch was under way."""
    cloud = ScriptedCloud()
    pool, _ = compute(cloud)
    with pool:
        cloud.script.append(SlowApi(seconds=30.0))
        for size in (2, 1, 2):
            pool.resize(size)
            engine.pass_by(1.0)
        engine.until(lambda: pool.current_nodes() == 2)
        assert [0, 1] == sorted(row.node for row in cloud.there)
    assert ([], 2) == (cloud.there, len(cloud.rows))


def test_a_machine_that_is_given_back_on_its_way_is_no_failure(engine: SimulatedEngine) -> None:
    """Nothing is reported of it, and no other takes its place."""
    cloud = ScriptedCloud()
    pool, heard = compute(cloud)
    with pool:
        pool.resize(3)
        engine.until(lambda: len(cloud.there) == 3)
        pool.resize(1)
        engine.until(lambda: len(cloud.there) == 1)
        engine.pass_by(60.0)
    assert ([], 3) == (heard.of(sky.Error), len(cloud.rows))
