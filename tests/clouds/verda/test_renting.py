"""Machines are rented once, where there are any, with all that has to be on them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

import skyward as sky
from skyward.errors import CapacityError, ConfigError, CredentialsError, ProvisionError, QuotaError
from skyward.model.instances.machine import InstanceState, SSHAddress
from tests.clouds.verda.client import client, refusal, run
from tests.clouds.verda.cloud import MACHINE, Cloud

pytestmark = [pytest.mark.clouds, pytest.mark.usefixtures("without_hosts")]


def launches(verda: Cloud) -> list[dict[str, Any]]:
    """Return the body of every launch that was asked for."""
    return [json.loads(call["body"]) for call in verda.calls("POST /v1/instances") if call["name"].endswith("s")]


def test_a_spot_machine_carries_all_it_has_to(verda: Cloud) -> None:
    """What is asked for in the launch call ends its disk with it, tells whose it is, and lets in only us."""

    async def scenario() -> None:
        async with client(verda.provider(), disk_gb=77) as opened:
            [instance] = await opened.launch(3, spot=True, token="0123456789abcdef")
            [body] = launches(verda)
            pool = opened.cluster.pool_id
            name = f"skyward-{pool}-0123456789abcdef-3"
            assert name == body["hostname"]
            assert {"name": name, "size": 77, "on_spot_discontinue": "delete_permanently"} == body["os_volume"]
            assert (True, "SPOT", "FIXED_PRICE") == (body["is_spot"], body["contract"], body["pricing"])
            assert ("FIN-01", MACHINE) == (body["location_code"], body["instance_type"])
            assert "ubuntu-24.04" == body["image"]
            tags = {tag["key"]: tag["value"] for tag in body["tags"]}
            assert (pool, "3", "Me@Here.example") == (tags["skyward-pool"], tags["skyward-node"], tags["skyward-owner"])
            assert (True, 3, 0.0098, 0.0279) == (
                instance.spot,
                instance.node,
                instance.hourly_rate,
                instance.on_demand_rate,
            )
            assert instance.tags == opened.request(spot=True, token="0123456789abcdef").tags_of(3)
            [runs] = await opened.until(lambda found: found[0].state is InstanceState.RUNNING)
            assert isinstance(runs.address, SSHAddress)
            assert runs.address.host_key
            assert instance.tags == runs.tags
            assert runs.private_ip is None

    run(scenario())


def test_a_machine_on_demand_says_nothing_about_spot(verda: Cloud) -> None:
    """Verda refuses what concerns only spot machines."""

    async def scenario() -> None:
        async with client(verda.provider()) as opened:
            await opened.launch()
            [body] = launches(verda)
            assert "on_spot_discontinue" not in body["os_volume"]
            assert (False, "PAY_AS_YOU_GO", 50) == (body["is_spot"], body["contract"], body["os_volume"]["size"])

    run(scenario())


@pytest.mark.parametrize("form", ["plain", "quoted", "object"])
def test_ids_come_as_bare_text_or_as_json(verda: Cloud, form: str) -> None:
    """All three ways of writing one are read: of key, script and machine."""
    verda.ask("id_form", form)

    async def scenario() -> None:
        async with client(verda.provider()) as opened:
            [instance] = await opened.launch()
            assert [instance.id] == [row["id"] for row in verda.alive()]

    run(scenario())


@pytest.mark.parametrize("gone", ["sshkeys", "ssh-keys"])
def test_keys_are_kept_at_either_spelling_of_their_path(verda: Cloud, gone: str) -> None:
    """Where one is not there any more, the other is used, to add as well as to remove."""
    verda.ask("refuses", {"path": gone, "tags": False})

    async def scenario() -> None:
        async with client(verda.provider()) as opened:
            assert [f"skyward-{opened.cluster.pool_id}-fin-01"] == verda.left()["keys"]

    run(scenario())
    assert [] == verda.left()["keys"]


def test_an_api_that_refuses_tags_gets_names_only(verda: Cloud) -> None:
    """Pool, request and node are read from the name; it is asked for tags only once."""
    verda.ask("refuses", {"path": "", "tags": True})

    async def scenario() -> None:
        async with client(verda.provider()) as opened:
            [instance] = await opened.launch(2, token="0123456789abcdef")
            await opened.launch(3)
            assert [True, False, False] == ["tags" in body for body in launches(verda)]
            found = {each.node: each for each in await opened.listed()}
            assert {2, 3} == set(found)
            assert found[2].tags is not None
            assert (opened.cluster.pool_id, "0123456789abcdef") == (found[2].tags.pool_id, found[2].tags.token)
            # No expiry is written where none can be.
            await opened.provider.skyward_renew([instance.id], 1.9e9)

    run(scenario())


@pytest.mark.parametrize("path", ["sshkeys", "scripts"])
def test_a_key_or_script_whose_answer_is_lost_is_there_once(verda: Cloud, path: str) -> None:
    """It is looked for by its name before another one is made."""
    verda.fault(f"POST /v1/{path}", "cut", times=2)

    async def scenario() -> None:
        async with client(verda.provider()) as opened:
            left = verda.left()
            assert (1, 1) == (len(left["keys"]), len(left["scripts"]))
            await opened.launch()

    run(scenario())


def test_what_cannot_be_opened_leaves_nothing(verda: Cloud) -> None:
    """The key is removed when the script cannot be made."""
    verda.fault("POST /v1/scripts", status=400, body={"code": "invalid_request", "message": "No scripts today"})

    async def scenario() -> None:
        with pytest.raises(ConfigError, match="No scripts today"):
            async with client(verda.provider()):
                raise AssertionError

    run(scenario())
    assert {"keys": [], "scripts": [], "volumes": []} == verda.left()


def test_503_is_no_capacity_and_no_outage(verda: Cloud) -> None:
    """It is asked once, whatever the number of nodes still to come; the error names type, market and place."""
    verda.ask("spot", {"FIN-01": []})

    async def scenario() -> None:
        async with client(verda.provider()) as opened:
            error = await refusal(opened.launch(spot=True))
            assert isinstance(error, CapacityError)
            for word in ("Not enough resources", MACHINE, "(spot)", "FIN-01"):
                assert word in str(error)
            assert 1 == len(launches(verda))

    run(scenario())


def test_a_503_that_is_an_outage_says_nothing_about_capacity(verda: Cloud) -> None:
    """It is unknown what came of it, so it isn't sent again before the client has looked."""
    verda.fault("POST /v1/instances", status=503, body="<html>upstream</html>", times=1)

    async def scenario() -> None:
        async with client(verda.provider()) as opened:
            error = await refusal(opened.launch())
            assert ProvisionError is type(error)
            assert "<html>upstream" in str(error)
            assert 1 == len(launches(verda))

    run(scenario())


@pytest.mark.usefixtures("with_hosts")
def test_the_next_location_is_tried(verda: Cloud) -> None:
    """A pool whose first location has none left gets its machine at the next."""
    verda.fault(
        "POST /v1/instances",
        status=503,
        body={"code": "service_unavailable", "message": "Not enough resources to deploy it"},
        where={"location_code": "FIN-01"},
    )
    with sky.Compute(
        provider=verda.provider(region=["FIN-01", "FIN-02"]),
        machine=MACHINE,
        allocation="on-demand",
        console=False,
        bootstrap_timeout=20,
    ):
        assert ["FIN-02"] == [row["region"] for row in verda.alive()]


@pytest.mark.parametrize(
    ("status", "code", "message", "kind"),
    [
        (400, "invalid_request", "Quota for 8 GPU instances reached", QuotaError),
        (401, "unauthorized_request", "Token is not valid", CredentialsError),
    ],
)
def test_each_refusal_of_a_launch_has_its_own_error(
    verda: Cloud, status: int, code: str, message: str, kind: type[Exception]
) -> None:
    """Of one kind each, so that core stops, goes on, or looks; and Verda's words are in it."""
    verda.fault("POST /v1/instances", status=status, body={"code": code, "message": message})

    async def scenario() -> None:
        async with client(verda.provider()) as opened:
            error = await refusal(opened.launch())
            assert kind is type(error)
            assert message in str(error)

    run(scenario())


def test_capacity_can_fail_after_the_launch(verda: Cloud) -> None:
    """Such a machine will not come up; it counts as ending, and is deleted."""
    verda.ask("next_status", "no_capacity")

    async def scenario() -> None:
        async with client(verda.provider()) as opened:
            await opened.launch()
            [listed] = await opened.listed()
            assert InstanceState.ENDING is listed.state

    run(scenario())


def test_the_error_of_a_pool_says_what_verda_says_of_its_machine(verda: Cloud) -> None:
    """Verda has no more than a word for it, which is in the pool's error instead of the fact alone that it ended."""
    verda.ask("next_status", "no_capacity")
    options = {"machine": MACHINE, "console": False, "max_provision_attempts": 1}
    with pytest.raises(sky.SkywardError, match="its status is no_capacity"):
        sky.Compute(provider=verda.provider(), **options).open()
    assert [] == verda.alive()


def test_a_list_from_before_a_launch_is_not_taken_for_one_after_it(verda: Cloud) -> None:
    """It is shared for a moment; the machine is there all the same, also once a newer list had it."""

    async def scenario() -> None:
        async with client(verda.provider()) as opened:
            assert [] == await opened.listed()
            [instance] = await opened.launch()
            assert [instance.id] == [each.id for each in await opened.listed()]
            assert [instance.id] == [each.id for each in await opened.provider.skyward_owned()]
            assert [instance.id] == [each.id for each in await opened.listed()]

    run(scenario())


@pytest.mark.usefixtures("with_hosts")
def test_older_gpus_get_an_older_image(verda: Cloud) -> None:
    """The newest that the type boots, with CUDA; a machine's GPUs are found on it."""
    with sky.Compute(
        provider=verda.provider(), accelerator="V100", allocation="on-demand", console=False, bootstrap_timeout=20
    ):
        assert ["1V100.6V"] == [row["type"] for row in verda.alive()]
        assert "ubuntu-22.04-cuda-12.4" == launches(verda)[0]["image"]


def test_pools_of_one_account_list_their_machines_in_one_call(verda: Cloud) -> None:
    """Asked at once by many, the account is asked once in the time that a list holds; what each gets is its own."""
    verda.lists_hold = hold = 0.5

    async def scenario() -> None:
        async with client(verda.provider()) as one, client(verda.provider()) as other:
            await one.launch()
            await other.launch()
            await one.until(lambda found: found[0].state is InstanceState.RUNNING)
            before = len(verda.calls("GET /v1/instances"))
            began = asyncio.get_running_loop().time()
            found = await asyncio.gather(*(each.listed() for each in (one, other) * 10))
            took = asyncio.get_running_loop().time() - began
            assert {1} == {len(each) for each in found}
            assert 2 == len({each[0].id for each in found})
            assert 1 + took // hold >= len(verda.calls("GET /v1/instances")) - before

    run(scenario())
