"""Machines end for good, with their disks: whatever Verda says at first, and whichever client asks."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from skyward.errors import CredentialsError, ProvisionError
from skyward.model.instances.machine import InstanceState
from tests.clouds.verda.client import client, refusal, run
from tests.clouds.verda.cloud import MACHINE, Cloud
from tests.waiting import until

pytestmark = [pytest.mark.clouds, pytest.mark.usefixtures("without_hosts")]


def ends(verda: Cloud) -> list[dict[str, Any]]:
    """Return the body of every end that was asked for."""
    return [json.loads(call["body"]) for call in verda.calls("PUT /v1/instances")]


def test_a_machine_ends_with_its_disk_and_not_through_the_trash(verda: Cloud) -> None:
    """The disk is named, or it would lie there for days; those that the user attached are left alone."""

    async def scenario() -> None:
        async with client(verda.provider()) as opened:
            [instance] = await opened.launch()
            [runs] = await opened.until(lambda found: found[0].state is InstanceState.RUNNING)
            await opened.end(runs.id)
            [order] = ends(verda)
            assert (True, 1) == (order["delete_permanently"], len(order["volume_ids"]))
            assert ("delete", [instance.id]) == (order["action"], order["id"])
            assert [] == verda.left()["volumes"]

    run(scenario())


def test_a_machine_that_is_being_provisioned_is_ended_as_soon_as_it_can_be(verda: Cloud) -> None:
    """Verda refuses that with the same code as an end that is done already; it is asked again until it is taken."""
    verda.fault("POST /v1/instances", "slow", seconds=2.0, times=1)

    async def scenario() -> None:
        async with client(verda.provider()) as opened:
            [instance] = await opened.launch()
            assert InstanceState.PENDING is instance.state
            await opened.end(instance.id)
            assert 2 <= len(ends(verda))
            assert [] == verda.alive()

    run(scenario())


def test_an_end_that_is_given_up_names_the_machine(verda: Cloud) -> None:
    """A right that is missing is not asked for for ever."""

    async def scenario() -> None:
        async with client(verda.provider()) as opened:
            [instance] = await opened.launch()
            await opened.until(lambda found: found[0].state is InstanceState.RUNNING)
            verda.fault("PUT /v1/instances", status=401, body={"code": "unauthorized_request", "message": "No."})
            error = await refusal(opened.end(instance.id))
            assert isinstance(error, ProvisionError)
            assert isinstance(error.__cause__, CredentialsError)
            assert instance.id in str(error)
            verda.calm()

    run(scenario())


@pytest.mark.parametrize("status", [202, 207])
def test_a_success_that_hides_a_failure_is_none(verda: Cloud, status: int) -> None:
    """The array is read, and the machine is asked to end once more."""

    async def scenario() -> None:
        async with client(verda.provider()) as opened:
            [instance] = await opened.launch()
            await opened.until(lambda found: found[0].state is InstanceState.RUNNING)
            failed = {"action": "delete", "instanceId": instance.id, "status": "error", "error": "Busy."}
            verda.fault("PUT /v1/instances", status=status, body=[{**failed, "statusCode": 500}], times=2)
            await opened.end(instance.id)
            assert 3 == len(ends(verda))
            assert [] == verda.alive()

    run(scenario())


def test_a_success_that_does_nothing_is_none(verda: Cloud) -> None:
    """Whatever the answer says, the list is what counts."""

    async def scenario() -> None:
        async with client(verda.provider()) as opened:
            [instance] = await opened.launch()
            await opened.until(lambda found: found[0].state is InstanceState.RUNNING)
            verda.fault("PUT /v1/instances", status=204, times=2)
            await opened.end(instance.id)
            assert [] == verda.alive()

    run(scenario())


def test_a_list_that_fails_is_no_empty_list(verda: Cloud) -> None:
    """Neither when machines are listed, nor when the end of one is to be confirmed."""

    async def scenario() -> None:
        async with client(verda.provider()) as opened:
            [instance] = await opened.launch()
            await opened.until(lambda found: found[0].state is InstanceState.RUNNING)
            verda.fault("GET /v1/instances", status=403, body={"code": "server_error", "message": "No list."})
            # The last list holds for a moment.
            asks = (opened.until(lambda found: False), opened.end(instance.id), opened.provider.skyward_owned())
            for asked in asks:
                assert "No list." in str(await refusal(asked))
            verda.calm()
            assert [instance.id] == [row["id"] for row in verda.alive()]

    run(scenario())


def test_an_evicted_machine_is_lost_and_its_disk_goes_with_it(verda: Cloud) -> None:
    """It leaves the list, and is not taken for one that lists do not show yet."""

    async def scenario() -> None:
        async with client(verda.provider()) as opened:
            [instance] = await opened.launch(spot=True)
            verda.interrupt(instance.id)
            until(lambda: not verda.alive())
            found = await opened.listed()
            assert [] == [each for each in found if each.state is not InstanceState.ENDED]
            assert [] == verda.left()["volumes"]

    run(scenario())


def test_a_disk_that_survives_an_eviction_is_found_and_deleted(verda: Cloud) -> None:
    """It is listed as what is left of its machine, and goes with the next end of the pool; others' disks stay."""
    verda.ask("volume", {"name": "my-data", "size": 10, "location": "FIN-01"})

    async def scenario() -> None:
        async with client(verda.provider()) as opened:
            [instance] = await opened.launch(token="0123456789abcdef")
            pool = opened.cluster.pool_id
            await opened.end(instance.id)
            made = {"size": 50, "location": "FIN-01"}
            disk = verda.ask("volume", {"name": f"skyward-{pool}-0123456789abcdef-0", **made})
            [left] = await opened.provider.skyward_owned()
            assert (disk["id"], "volume", InstanceState.ENDING) == (left.id, left.instance_type, left.state)
            assert pool == left.tags.pool_id
            await opened.end("whoever")
            assert ["my-data"] == verda.left()["volumes"]
            verda.ask("volume", {"name": f"skyward-{pool}-0123456789abcdef-0", **made})
            await opened.provider.skyward_end(await opened.provider.skyward_owned())
            assert ["my-data"] == verda.left()["volumes"]
            verda.ask("volume", {"name": f"skyward-{pool}-0123456789abcdef-0", **made})

    run(scenario())
    # The pool was released.
    assert ["my-data"] == verda.left()["volumes"]
    verda.ask("clear", {})


def test_a_machine_that_is_listed_as_deleted_is_gone(verda: Cloud) -> None:
    """Its end is confirmed, it is in no list, and what its pool registered is removed."""
    verda.ask("ended_as", "deleted")

    async def scenario() -> None:
        async with client(verda.provider()) as opened:
            [instance] = await opened.launch()
            await opened.until(lambda found: found[0].state is InstanceState.RUNNING)
            await opened.provider.skyward_end(await opened.provider.skyward_owned())
            assert [(instance.id, "deleted")] == [
                (row["id"], row["state"]) for row in verda.instances() if row["id"] == instance.id
            ]
            assert [InstanceState.ENDED] == [each.state for each in await opened.listed()]
            assert [] == list(await opened.provider.skyward_owned())
            assert ([], []) == (verda.left()["keys"], verda.left()["scripts"])

    run(scenario())


def test_a_machine_that_verda_knows_no_more_is_gone(verda: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its id is answered as a request that is wrong; that is no error, and after a while no machine either."""
    monkeypatch.setattr("skyward_verda.account.LAG", 1.0)

    async def scenario() -> None:
        async with client(verda.provider()) as opened:
            verda.lag(60.0)
            [instance] = await opened.launch()
            assert [instance.id] == [each.id for each in await opened.listed()]
            verda.terminate(instance.id)
            await asyncio.to_thread(until, lambda: not verda.alive())
            verda.ask("forget", instance.id)
            # For a while lists may just trail it.
            assert {instance.id} >= {each.id for each in await opened.listed()}
            await opened.end(instance.id)
            assert [] == await opened.listed()

    run(scenario())


def test_a_disk_whose_machine_lives_is_let_be(verda: Cloud) -> None:
    """Ending one machine of a pool takes nothing from the others."""

    async def scenario() -> None:
        async with client(verda.provider()) as opened:
            one, other = await opened.launch(0, 1)
            await opened.end(one.id)
            assert [other.id] == [row["id"] for row in verda.alive()]
            assert 1 == len(verda.left()["volumes"])

    run(scenario())


def test_a_machine_that_is_off_counts_as_ending(verda: Cloud) -> None:
    """It is billed as if it ran, so it is replaced and deleted."""

    async def scenario() -> None:
        async with client(verda.provider()) as opened:
            [instance] = await opened.launch()
            await opened.until(lambda found: found[0].state is InstanceState.RUNNING)
            await asyncio.to_thread(verda.ask, f"shutdown?id={instance.id}")
            await opened.until(lambda found: found[0].state is InstanceState.ENDING)
            assert [instance.id] == [row["id"] for row in verda.alive()]

    run(scenario())


@pytest.mark.usefixtures("with_hosts")
def test_a_machine_that_nobody_comes_to_switches_itself_off(verda: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """That does not end its bill, but a client that lists it deletes it then."""
    # Two minutes outside of tests.
    monkeypatch.setattr("skyward.plan.bootstrap.first_boot.LEAST_DEADLINE", 1.0)

    async def scenario() -> None:
        async with client(verda.provider(), ttl=1) as opened:
            [instance] = await opened.launch()
            await opened.until(lambda found: found[0].state is InstanceState.ENDING)
            [row] = verda.alive()
            assert (instance.id, "offline") == (row["id"], row["state"])

    run(scenario())


def test_whoever_asks_finds_every_machine_of_ours_and_can_end_it(verda: Cloud) -> None:
    """A client that knows nothing lists machines by their names alone, and removes all their pools left."""

    async def scenario() -> None:
        async with client(verda.provider()) as here, client(verda.provider(), region="FIN-02") as there:
            rented = [*await here.launch(), *await there.launch()]
            stranger = verda.provider()
            found = await stranger.skyward_owned()
            assert {(each.id, each.region) for each in rented} == {(each.id, each.region) for each in found}
            assert {here.cluster.pool_id, there.cluster.pool_id} == {each.tags.pool_id for each in found}
            assert 2 == len(verda.left()["scripts"])
            await stranger.skyward_end(found)
            assert [] == verda.alive()
            assert [] == list(await stranger.skyward_owned())
            assert {"keys": [], "scripts": [], "volumes": []} == verda.left()

    run(scenario())


@pytest.mark.everything
@pytest.mark.usefixtures("with_hosts")
def test_a_spot_machine_that_is_taken_back_is_replaced(verda: Cloud) -> None:
    """The call that ran on it runs again elsewhere, and nothing is left."""
    with sky.Compute(
        provider=verda.provider(),
        machine=MACHINE,
        allocation="spot",
        console=False,
        bootstrap_timeout=20,
        reconcile_tick_interval=1,
    ) as pool:
        [first] = verda.alive()
        future = wait_unless(first["base"]) > pool
        until(Path(first["base"], "begun").exists)
        verda.interrupt(first["id"])
        assert future.result(timeout=50) not in ("", first["base"])
    assert [] == verda.alive()


@sky.function
def wait_unless(base: str) -> str:
    """Wait on the machine of that directory, and tell where else we are."""
    here = str(Path(os.environ["HOME"]).parent)
    if here == base:
        Path(base, "begun").touch()
        time.sleep(60)
    return here
