"""A provider's list of machines, looked at often while one is on its way and seldom otherwise; what it means."""

from __future__ import annotations

from itertools import pairwise

import pytest

import skyward as sky
from skyward.engine.instances.instance_watch import LATER, RUNNING_WITHIN, SOON
from skyward.engine.instances.launch import LIFE
from skyward.hookspecs import InstanceState
from skyward.plan.instances.instance_list import APPEARING, ORPHANED_FOR
from skyward.testing import ListingLag, NeverBoots, Unreachable
from tests.simulated.engine import SimulatedEngine
from tests.simulated.pool import compute
from tests.simulated.provider import ALWAYS, Fails, Hangs, ScriptedCloud

EVERY = sky.Options().reconcile_tick_interval


def pauses(cloud: ScriptedCloud, begin: float, end: float) -> list[float]:
    """List the seconds between looks within a time."""
    return [after - before for before, after in pairwise(cloud.times("instances")) if begin <= before < after <= end]


def test_machines_on_their_way_are_looked_for_often_and_then_seldom(engine: SimulatedEngine) -> None:
    """First each second, then in proportion to how long they take, and in the long run as the option says."""
    cloud = ScriptedCloud(boots=300.0)
    pool, _ = compute(cloud)
    with pool:
        ready = engine.now
        engine.pass_by(600.0)
        then = engine.now
    assert [pytest.approx(SOON)] * 9 == pauses(cloud, 0.0, 10.0)
    assert all(pause == pytest.approx(LATER) for pause in pauses(cloud, 150.0, 299.0))
    assert 300.0 <= ready <= 300.0 + LATER + 7.0
    assert all(pause == pytest.approx(EVERY) for pause in pauses(cloud, ready + EVERY, then))
    assert len(cloud.times("instances")) <= 10 + 300 / SOON * 0.4 + 600 / EVERY


def test_a_machine_that_is_missing_once_is_not_lost(engine: SimulatedEngine) -> None:
    """One list may come from a replica that lags."""
    cloud = ScriptedCloud()
    pool, heard = compute(cloud)
    with pool:
        hide(engine, cloud, lists=1)
        engine.pass_by(5 * EVERY)
        assert 1 == pool.current_nodes()
    assert ([], 1) == (heard.of(sky.InstancePreempted), len(cloud.rows))


def test_a_machine_that_is_missing_twice_is_lost_and_replaced(engine: SimulatedEngine) -> None:
    """The node goes on with another machine, and the one that is listed again is ended."""
    cloud = ScriptedCloud()
    pool, heard = compute(cloud)
    with pool:
        hide(engine, cloud, lists=2)
        took = engine.until(lambda: pool.current_nodes() == 1 and len(cloud.rows) == 2)
        assert took <= 3 * EVERY + cloud.boots + 10.0
    [lost] = heard.of(sky.InstancePreempted)
    assert "the provider lists it no more" in lost.reason
    assert ["cloud-0"] == [event.old for event in heard.of(sky.InstanceReplaced)]


def hide(engine: SimulatedEngine, cloud: ScriptedCloud, *, lists: int) -> None:
    """Leave the first machine out of some lists."""
    seen, cloud.rows[0].hidden = len(cloud.times("instances")), True
    engine.until(lambda: len(cloud.times("instances")) == seen + lists)
    cloud.rows[0].hidden = False


@pytest.mark.parametrize("state", [InstanceState.ENDING, InstanceState.ENDED])
def test_a_machine_that_its_cloud_takes_back_is_replaced_whatever_its_link_says(
    engine: SimulatedEngine, state: InstanceState
) -> None:
    """By the next look."""
    cloud = ScriptedCloud()
    pool, heard = compute(cloud, nodes=2)
    with pool:
        cloud.rows[0].state = state
        engine.until(lambda: len(cloud.rows) == 3, within=2 * EVERY)
        engine.until(lambda: pool.current_nodes() == 2)
    assert ["cloud-0"] == [event.instance_id for event in heard.of(sky.InstancePreempted)]


def test_a_pools_error_says_why_the_provider_calls_a_machine_useless(engine: SimulatedEngine) -> None:
    """Instead of that it ended; the event of a node that was ready says it, too."""
    cloud = ScriptedCloud(NeverBoots())
    pool, _ = compute(cloud, max_provision_attempts=1)

    def fail(hook: str) -> None:
        for row in cloud.rows:
            row.state, row.reason = InstanceState.ENDING, "the image could not be pulled"

    cloud.when = fail
    with pytest.raises(sky.ProvisionError, match="was lost: the provider says: the image could not be pulled"):
        pool.open()
    assert [] == cloud.there
    cloud = ScriptedCloud()
    pool, heard = compute(cloud)
    with pool:
        cloud.rows[0].state, cloud.rows[0].reason = InstanceState.ENDED, "out of credit."
        engine.until(lambda: len(cloud.rows) == 2, within=2 * EVERY)
    assert ["the provider says: out of credit"] == [event.reason for event in heard.of(sky.InstancePreempted)]


def test_a_machine_that_was_never_listed_is_given_up(engine: SimulatedEngine) -> None:
    """After `APPEARING` seconds, for lists lag behind."""
    cloud = ScriptedCloud(ListingLag(seconds=APPEARING - 20.0))
    pool, _ = compute(cloud)
    with pool:
        assert 1 == len(cloud.rows)
    never = ScriptedCloud(ListingLag(seconds=100 * APPEARING))
    pool, _ = compute(never, max_provision_attempts=1)
    with pytest.raises(sky.ProvisionError, match="the provider never listed it"):
        pool.open()
    assert [] == never.there
    assert APPEARING <= (never.rows[0].ended_at or 0.0) - never.rows[0].since <= APPEARING + LATER + never.ends


def test_a_machine_has_its_time_to_run_where_no_option_says_one(engine: SimulatedEngine) -> None:
    """`RUNNING_WITHIN` seconds, and not one more."""
    cloud = ScriptedCloud(NeverBoots())
    pool, _ = compute(cloud, provision_retry_delay=0.0)
    with pool:
        pass
    life = (cloud.rows[0].ended_at or 0.0) - cloud.rows[0].since
    assert RUNNING_WITHIN <= life <= RUNNING_WITHIN + LATER + cloud.ends


def test_an_orphan_is_ended_after_its_time_and_paid_for(engine: SimulatedEngine) -> None:
    """A machine that no node has: not before `ORPHANED_FOR` seconds, and no later than two looks after that."""
    cloud = ScriptedCloud(forgets=True)
    pool, _ = compute(cloud)
    with pool:
        engine.run(_twice(cloud))
        orphan = cloud.rows[1]
        engine.until(lambda: not orphan.there)
        assert 1 == pool.current_nodes()
    assert ORPHANED_FOR <= (orphan.ended_at or 0.0) - orphan.since <= ORPHANED_FOR + 2 * EVERY + cloud.ends
    assert pool.receipt is not None
    assert {"cloud-0", "cloud-1"} == {node.instance_id for node in pool.receipt.nodes}
    assert all(node.ended and node.cost > 0 for node in pool.receipt.nodes)
    assert sum(node.cost for node in pool.receipt.nodes) == pytest.approx(pool.cost.accumulated)


async def _twice(cloud: ScriptedCloud) -> None:
    cloud.add(cloud.requests[0], 0)


def test_machines_whose_launch_is_not_answered_yet_are_no_orphans(engine: SimulatedEngine) -> None:
    """However long the answer takes."""
    cloud = ScriptedCloud()
    pool, _ = compute(cloud)
    with pool:
        cloud.script.append(Hangs("launch", skip=1))
        pool.resize(2)
        engine.until(lambda: len(cloud.requests) == 2)
        engine.run(_unanswered(cloud))
        engine.pass_by(ORPHANED_FOR + 3 * EVERY)
        assert cloud.rows[1].there
    assert [] == cloud.there


async def _unanswered(cloud: ScriptedCloud) -> None:
    cloud.add(cloud.requests[1], 1)


def test_lists_that_fail_change_nothing(engine: SimulatedEngine) -> None:
    """The pool works on, and the next list that comes counts."""
    cloud = ScriptedCloud(Fails("instances", times=3), Fails("instances", skip=40, times=ALWAYS))
    pool, heard = compute(cloud)
    with pool:
        engine.pass_by(100 * EVERY)
        assert 1 == pool.current_nodes()
        cloud.script.pop()
    assert ([], 1) == (heard.of(sky.InstancePreempted), len(cloud.rows))


def test_a_machine_that_does_not_answer_is_asked_after_less_and_less(engine: SimulatedEngine) -> None:
    """Each failed attempt to get in wakes the watch, which doubles its pauses up to a few seconds."""
    cloud = ScriptedCloud(Unreachable())
    pool, _ = compute(cloud, bootstrap_timeout=120.0, reconcile_tick_interval=300.0, provision_retry_delay=0.0)

    def hurry(hook: str) -> None:
        for row in cloud.rows:
            row.machine.redials = 0.5

    cloud.when = hurry
    with pool:
        pass
    waited = pauses(cloud, 9.5, 120.0)
    assert [SOON, 2 * SOON, 4 * SOON] == pytest.approx(waited[:3], abs=0.6)
    assert all(pause == pytest.approx(LATER, abs=0.6) for pause in waited[3:])


def test_expiry_is_written_anew_before_half_of_it_is_over(engine: SimulatedEngine) -> None:
    """On all machines, and again each time; a renewal that fails is tried at the next look."""
    # Whether it can be written at all is tried with the first machine.
    cloud = ScriptedCloud(Fails("renew", skip=2))
    pool, _ = compute(cloud, nodes=2)
    with pool:
        engine.pass_by(2.2 * LIFE)
    times = [at for at, _ in cloud.renewals]
    assert 5 == len(cloud.renewals)
    assert [("cloud-0",), *[("cloud-0", "cloud-1")] * 4] == [ids for _, ids in cloud.renewals]
    assert max(after - before for before, after in pairwise(times)) <= LIFE / 2 + 2 * EVERY + 10.0


def test_what_a_machine_does_before_it_runs_is_told(engine: SimulatedEngine) -> None:
    """Once for each thing it does."""
    cloud = ScriptedCloud(boots=30.0)
    pool, heard = compute(cloud)

    def look(hook: str) -> None:
        for row in cloud.rows:
            row.doing = "image pull" if len(cloud.times("instances")) < 9 else "image unpack"

    cloud.when = look
    with pool:
        pass
    assert ["image pull", "image unpack"] == [event.step for event in heard.of(sky.BootstrapProgress)]
