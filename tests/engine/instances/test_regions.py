"""What the machines of one region share is made with the first of them, once, and taken away with the pool."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from attrs import evolve

import skyward as sky
from skyward.engine.instances.regions import CHECKING, RETRIES
from skyward.hookspecs import Instance, hookimpl
from skyward.testing import NoCapacity
from tests.simulated.engine import SimulatedEngine
from tests.simulated.pool import compute
from tests.simulated.provider import ALWAYS, SMALL, Fails, Hangs, ScriptedCloud

TWO = (SMALL, evolve(SMALL, region="us", zone="c", spot_price=0.3))


def test_a_region_is_opened_once_and_released_once(engine: SimulatedEngine) -> None:
    """However many machines it has, and however often one is replaced."""
    cloud = ScriptedCloud()
    pool, heard = compute(cloud, nodes=3)
    with pool:
        engine.loop.call_soon_threadsafe(cloud.take, cloud.rows[0])
        engine.until(lambda: len(cloud.rows) == 4 and pool.current_nodes() == 3)
        assert ["eu"] == cloud.open
    assert [] == cloud.open
    assert (1, 1) == (len(cloud.times("open")), len(cloud.times("release")))
    assert ["InfraCreating", "InfraCreated"] == [kind for kind in heard.kinds if kind.startswith("Infra")]


def test_only_regions_that_machines_are_asked_for_in_are_opened(engine: SimulatedEngine) -> None:
    """Each of them, also one that had no capacity in the end; all are released."""
    cloud = ScriptedCloud(NoCapacity(region="eu", left=1), offers=TWO)
    pool, _ = compute(cloud, nodes=2)
    with pool:
        assert ["eu", "us"] == cloud.open
        assert ["eu", "us"] == [row.request.cluster.offer.region for row in cloud.there]
    assert ([], []) == (cloud.open, cloud.there)
    one = ScriptedCloud(offers=TWO)
    pool, _ = compute(one)
    with pool:
        assert ["eu"] == one.open


class CarelessCloud(ScriptedCloud):
    """A cloud whose list of a pool's machines has those of all pools."""

    @hookimpl
    async def skyward_instances(self) -> Sequence[Instance]:
        return [self._instance(row) for row in self.there]


def test_another_pools_machines_are_left_alone(engine: SimulatedEngine, caplog: pytest.LogCaptureFixture) -> None:
    """Also where the provider does not filter by the pool's tag, which is logged once."""
    cloud = CarelessCloud()
    first, _ = compute(cloud, nodes=2)
    second, _ = compute(cloud, nodes=2)
    with first:
        with second:
            engine.pass_by(120.0)
            assert (2, 2, 4) == (first.current_nodes(), second.current_nodes(), len(cloud.there))
        assert 2 == first.current_nodes() == len(cloud.there)
    assert ([], 4) == (cloud.there, len(cloud.rows))
    assert 2 == sum("machines of another pool" in record.message for record in caplog.records)


def test_a_launch_that_answers_with_another_pools_machine_gives_none(engine: SimulatedEngine) -> None:
    """It is not taken, and not ended: the node gets another one."""
    cloud = ScriptedCloud()
    first, _ = compute(cloud)
    with first:

        def launch(answer: Sequence[Instance]) -> Sequence[Instance]:
            return [cloud._instance(cloud.rows[0])] if len(cloud.requests) == 2 else answer

        cloud.answer = launch
        second, _ = compute(cloud)
        with second:
            assert 2 <= len(cloud.there)
        assert ["cloud-0"] == [row.id for row in cloud.there]


def test_a_region_that_cannot_be_opened_is_passed_over_and_not_released(engine: SimulatedEngine) -> None:
    """Its offers count as refused."""
    cloud = ScriptedCloud(Fails("open", lambda: sky.OfferError("No network left."), times=2), offers=TWO)
    pool, _ = compute(cloud, allocation="spot")
    with pool:
        pass
    assert (3, 1) == (len(cloud.times("open")), len(cloud.times("release")))


def test_a_release_that_fails_is_told(engine: SimulatedEngine) -> None:
    """No machine is left, and the pool's work is done: an event, no error."""
    cloud = ScriptedCloud(Fails("release"))
    pool, heard = compute(cloud)
    with pool:
        pass
    [told] = heard.of(sky.Error)
    assert "Something of pool 'pool' may still exist at cloud: " in told.message
    assert told.fatal
    assert ([], ["eu"]) == (cloud.there, cloud.open)


def test_what_machines_share_stays_as_long_as_one_may_exist(engine: SimulatedEngine) -> None:
    """What finds and reaches them goes with the last of them."""
    cloud = ScriptedCloud(Fails("terminate", times=ALWAYS))
    pool, _ = compute(cloud, shutdown_timeout=5.0)
    with pytest.raises(sky.LeftBehindError), pool:
        pass
    assert (["eu"], []) == (cloud.open, cloud.times("release"))


def test_a_call_that_fails_is_made_again_with_growing_pauses(engine: SimulatedEngine) -> None:
    """Half a second, one, two, four, each a fifth more or less; then the last look at the pool's end."""
    cloud = ScriptedCloud(Fails("terminate", times=RETRIES))
    pool, _ = compute(cloud)
    with pool:
        pass
    times = cloud.times("terminate")
    pauses = [after - before for before, after in itertools.pairwise(times)]
    assert RETRIES == len(pauses)
    assert all(0.8 * 0.5 * 2**n <= pause <= 1.2 * 0.5 * 2**n for n, pause in enumerate(pauses))


def test_whether_machines_can_be_ended_is_asked_before_any_is_made_ready(engine: SimulatedEngine) -> None:
    """Once for each region; a key that may only rent is found out while the first machine boots."""
    cloud = ScriptedCloud(Fails("check_end", lambda: sky.CredentialsError("It may not end machines.")))
    pool, heard = compute(cloud, nodes=2)
    with pytest.raises(sky.CredentialsError, match="may not end machines"):
        pool.open()
    assert ([], 1) == (cloud.there, len(cloud.times("check_end")))
    assert [] == heard.of(sky.BootstrapRequested)


@pytest.mark.parametrize("fault", [Fails("check_end"), Hangs("check_end")], ids=["fails", "hangs"])
def test_a_cloud_that_cannot_tell_whether_machines_can_be_ended_holds_up_nobody(
    engine: SimulatedEngine, fault: Fails | Hangs
) -> None:
    """Not for more than `CHECKING` seconds."""
    cloud = ScriptedCloud(fault)
    pool, _ = compute(cloud)
    with pool:
        assert 16.0 <= engine.now <= 16.0 + CHECKING
