"""A machine is given back until its end is confirmed; what could not be ended is reported, by name."""

from __future__ import annotations

from concurrent.futures import CancelledError

import pytest

import skyward as sky
from skyward.engine.instances.regions import RETRIES
from skyward.testing import ListingLag, NeverBoots
from tests.simulated.engine import SimulatedEngine
from tests.simulated.pool import compute
from tests.simulated.provider import ALWAYS, Fails, Hangs, ScriptedCloud

NO = Fails("terminate", lambda: sky.CredentialsError("You may not."), times=ALWAYS)
END = ("poweroff",)


def test_a_machine_of_a_node_that_cannot_leave_is_given_back(engine: SimulatedEngine) -> None:
    """Whatever is wrong with what runs on it."""

    async def fails(patience: float) -> None:
        raise RuntimeError("it would not leave")

    cloud = ScriptedCloud()
    pool, heard = compute(cloud, nodes=2)
    with pool:
        for row in cloud.rows:
            row.machine.hosts[0].end = fails  # type: ignore[method-assign]  # this machine's is broken
    assert [] == cloud.there
    assert 2 == len(heard.of(sky.InstanceDestroyed))


def test_nodes_have_their_time_to_leave_in_good_order(engine: SimulatedEngine) -> None:
    """And hosts are let go of, once the machine is confirmed to be gone."""
    cloud = ScriptedCloud()
    pool, _ = compute(cloud)
    with pool:
        [host] = cloud.rows[0].machine.hosts
    assert (2.0, True) == (host.patience, host.closed)


def test_a_call_that_fails_twice_is_made_a_third_time(engine: SimulatedEngine) -> None:
    """Nothing is reported: all was ended."""
    cloud = ScriptedCloud(Fails("terminate", times=2))
    pool, heard = compute(cloud)
    with pool:
        pass
    assert ([], 3) == (cloud.there, len(cloud.times("terminate")))
    assert [] == heard.of(sky.Error)
    assert 1 == len(heard.of(sky.InstanceDestroyed))


def test_a_call_whose_answer_is_lost_is_made_again(engine: SimulatedEngine) -> None:
    """To end what has ended is no error."""
    cloud = ScriptedCloud(Fails("terminate", done=True))
    pool, _ = compute(cloud)
    with pool:
        pass
    assert ([], 2) == (cloud.there, len(cloud.times("terminate")))


def test_what_is_refused_is_not_asked_for_again_and_ends_itself(engine: SimulatedEngine) -> None:
    """A key that may not end machines is not asked five times; the machine hears of it, and the cloud confirms."""
    cloud = ScriptedCloud(Fails("terminate", lambda: sky.CredentialsError("You may not.")), end_command=END)
    pool, heard = compute(cloud)
    with pool:
        began = engine.now
    assert [] == cloud.there
    assert engine.now - began <= 2.0
    assert ["cloud-0 could not be ended, and has ended itself: You may not."] == [
        event.message for event in heard.of(sky.Error)
    ]


def test_a_machine_that_does_not_run_yet_is_waited_for_to_end_itself(engine: SimulatedEngine) -> None:
    """As long as that is worth it."""
    cloud = ScriptedCloud(
        Fails("terminate", lambda: sky.CredentialsError("You may not."), times=2), end_command=END, boots=20.0
    )
    pool, heard = compute(cloud, nodes=2)
    cloud.when = lambda hook: pool.break_off() if len(cloud.times("instances")) == 3 else None
    with pytest.raises(CancelledError):
        pool.open()
    assert [] == cloud.there
    assert 2 <= len([event for event in heard.of(sky.Error) if "has ended itself" in event.message])


@pytest.mark.parametrize("ends_itself", [False, True])
def test_what_nothing_ends_is_told_with_its_name(engine: SimulatedEngine, ends_itself: bool) -> None:
    """The pool is left by an error that names the machine, why, and what becomes of it."""
    cloud = ScriptedCloud(NO, end_command=END if ends_itself else (), ends_itself=False)
    pool, heard = compute(cloud, ttl=600)
    with pytest.raises(sky.LeftBehindError, match=r"billed for cloud-0: You may not\.") as caught, pool:
        pass
    assert ("cloud-0",) == caught.value.instances
    fate = "terminates itself at the latest 600 s" if ends_itself else "Nothing else ends what is left"
    assert fate in str(caught.value)
    assert ["eu"] != cloud.open or cloud.there
    assert [] == heard.of(sky.InstanceDestroyed)
    assert pool.receipt is not None
    assert [False] == [node.ended for node in pool.receipt.nodes]


def test_an_error_of_the_block_bears_what_is_left_as_a_note(engine: SimulatedEngine) -> None:
    """And comes out as itself."""
    cloud = ScriptedCloud(NO)
    pool, _ = compute(cloud)
    with pytest.raises(ZeroDivisionError) as caught, pool:
        _ = 1 // 0
    assert any("may go on being billed for cloud-0" in note for note in caught.value.__notes__)


def test_an_end_that_is_confirmed_late_is_one(engine: SimulatedEngine) -> None:
    """All attempts failed while the node left; the last look at the end of the pool ends the machine."""
    cloud = ScriptedCloud(Fails("terminate", times=RETRIES + 1))
    pool, heard = compute(cloud)
    with pool:
        pass
    assert [] == cloud.there
    [gone] = heard.of(sky.InstanceDestroyed)
    assert "confirmed when the pool was left" in gone.reason
    assert pool.receipt is not None
    assert pool.receipt.nodes[0].ended


def test_a_machine_that_could_not_be_ended_is_ended_by_the_watch(engine: SimulatedEngine) -> None:
    """It belongs to no pool then, and does not wait for the end of the pool."""
    cloud = ScriptedCloud(Fails("terminate", times=RETRIES + 1))
    pool, heard = compute(cloud, nodes=2)
    with pool:
        pool.resize(1)
        engine.until(lambda: len(cloud.there) == 1, within=120.0)
        assert RETRIES + 2 == len(cloud.times("terminate"))
    assert any("may still exist" in event.message for event in heard.of(sky.Error))


def test_a_silent_cloud_is_waited_for_no_longer_than_the_option_says(engine: SimulatedEngine) -> None:
    """`shutdown_timeout` holds for the node's machine, and once more for the last look."""
    cloud = ScriptedCloud(Hangs("terminate", times=ALWAYS))
    pool, _ = compute(cloud, shutdown_timeout=30.0)
    pool.open()
    began = engine.now
    with pytest.raises(sky.LeftBehindError, match="gave no answer to skyward_terminate within"):
        pool.close()
    assert 30.0 <= engine.now - began <= 2 * 30.0 + 15.0
    assert 1 == len(cloud.there)


def test_machines_that_are_listed_after_their_end_are_not_ended_again(engine: SimulatedEngine) -> None:
    """Lists lag behind, and no alarm is raised."""
    cloud = ScriptedCloud(ListingLag(seconds=20.0))
    pool, heard = compute(cloud, nodes=2)
    with pool:
        pool.resize(1)
        engine.until(lambda: len(cloud.there) == 1)
        engine.pass_by(60.0)
    assert [] == cloud.there
    assert 2 == len(cloud.times("terminate"))
    assert [] == heard.of(sky.Error)


def test_a_machine_nobody_knows_of_is_ended_with_the_pool(engine: SimulatedEngine) -> None:
    """Although no list was looked at since it is there."""
    cloud = ScriptedCloud(forgets=True)
    pool, _ = compute(cloud, reconcile_tick_interval=1e6)

    async def unseen() -> None:
        cloud.add(cloud.requests[0], 0)

    with pool:
        engine.run(unseen())
    assert ([], 2) == (cloud.there, len(cloud.rows))
    assert pool.receipt is not None
    assert {"cloud-0", "cloud-1"} == {node.instance_id for node in pool.receipt.nodes}


def test_a_last_list_that_fails_is_told(engine: SimulatedEngine) -> None:
    """Nodes' machines are ended; what else there may be is an event, and no error."""
    cloud = ScriptedCloud()
    pool, heard = compute(cloud)
    with pool:
        cloud.script.append(Fails("instances", times=ALWAYS))
    assert [] == cloud.there
    [told] = heard.of(sky.Error)
    assert "Something of pool 'pool' may still exist at cloud" in told.message


def test_a_machine_given_up_before_it_ran_is_given_back_before_another_is_had(engine: SimulatedEngine) -> None:
    """Within the time that ending takes there may be one more than was asked for, and never two."""
    cloud = ScriptedCloud(NeverBoots(times=2), ends=30.0)
    pool, _ = compute(cloud, provision_timeout=30.0, provision_retry_delay=0.0)
    with pool:
        pass
    assert (3, 2) == (len(cloud.rows), cloud.most)


def test_disks_are_flushed_before_their_machine_ends(engine: SimulatedEngine) -> None:
    """After all that ran on it has ended, and only where a pool has any."""
    cloud = ScriptedCloud(disks=2)
    pool, heard = compute(cloud, volumes=[sky.Disk("data"), sky.Disk("work", mount="/workspace")])
    with pool:
        [host] = cloud.rows[0].machine.hosts
    assert ("/mnt/data", "/workspace") == host.unmounted
    assert host.patience is not None
    assert [] == heard.of(sky.Error)
    other, _ = compute(cloud)
    with other:
        [host] = cloud.rows[1].machine.hosts
    assert () == host.unmounted


def test_disks_that_could_not_be_flushed_are_reported_and_their_machine_ends(engine: SimulatedEngine) -> None:
    """A machine that goes on costs money, and would not have them flushed either."""
    cloud = ScriptedCloud(disks=1)
    pool, heard = compute(cloud, volumes=[sky.Disk("data")])
    with pool:
        cloud.rows[0].machine.unmount_fails = "/mnt/data could not be flushed"
    [error] = heard.of(sky.Error)
    assert "may lack what was written last: /mnt/data could not be flushed" in error.message
    assert [] == cloud.there


def test_a_machine_that_was_lost_is_not_asked_for_its_disks(engine: SimulatedEngine) -> None:
    """It does not answer; another one takes its place."""
    cloud = ScriptedCloud(disks=1)
    pool, _ = compute(cloud, volumes=[sky.Disk("data")])
    with pool:
        first = cloud.rows[0].machine
        first.switch_off()
        engine.until(lambda: len(cloud.rows) == 2 and pool.current_nodes() == 1, within=300.0)
    assert () == first.hosts[0].unmounted
