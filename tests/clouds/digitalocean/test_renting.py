"""Droplets are rented once, where there are any, with all that has to be on them; and deleted for good."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
from attrs import evolve

import skyward as sky
from skyward.errors import CapacityError, ConfigError, CredentialsError, ProvisionError
from skyward.model.events import event as events
from skyward.model.instances.machine import InstanceState, SSHAddress
from skyward_digitalocean.account import LISTS_HOLD
from tests.clouds.digitalocean.client import client, in_real_time, refusal, run
from tests.clouds.digitalocean.cloud import CPU, GPU, Cloud

pytestmark = [pytest.mark.clouds, pytest.mark.usefixtures("without_hosts")]

LAUNCH = "POST /v2/droplets"


def launches(ocean: Cloud) -> list[dict[str, Any]]:
    """Return the bodies of all launches."""
    return [json.loads(call["body"]) for call in ocean.calls() if call["name"] == LAUNCH]


def test_droplets_carry_all_they_have_to(ocean: Cloud) -> None:
    """One call makes ten of them, tells whose they are, and lets in only us."""

    async def scenario() -> None:
        async with client(ocean.provider()) as opened:
            found = await opened.launch(*range(12), token="0123456789abcdef")
            assert [*range(12)] == sorted(each.node for each in found)
            first, second = sorted(launches(ocean), key=lambda body: -len(body["names"]))
            pool = opened.cluster.pool_id
            assert [f"skyward-{pool}-{node}" for node in range(10)] == first["names"]
            assert [f"skyward-{pool}-{node}" for node in (10, 11)] == second["names"]
            assert ["skyward", f"skyward:{pool}"] == first["tags"][:2]
            assert all(re.fullmatch("[a-z0-9:_-]{1,255}", tag) for tag in first["tags"])
            [key] = ocean.ssh_keys()
            assert [key["fingerprint"]] == first["ssh_keys"]
            config = json.loads(first["user_data"].split("\n", 1)[1])
            assert [f"{opened.cluster.key.public} skyward"] == config["ssh_authorized_keys"]
            assert not config["ssh_pwauth"]
            [one] = [each for each in found if each.node == 11]
            assert one.tags is not None
            assert ("My pool, Größe 1/2", "Me@Here.example", "0123456789abcdef", 11) == (
                one.tags.pool_name,
                one.tags.owner,
                one.tags.token,
                one.tags.node,
            )
            assert (0.03571, False, InstanceState.PENDING) == (one.hourly_rate, one.spot, one.state)

    run(scenario())


def test_a_droplet_has_the_address_that_is_public(ocean: Cloud) -> None:
    """The private one comes first in the answer, and goes to the other nodes."""

    async def scenario() -> None:
        async with client(ocean.provider()) as opened:
            await opened.launch()
            [runs] = await opened.until(lambda found: found[0].state is InstanceState.RUNNING)
            assert isinstance(runs.address, SSHAddress)
            assert ("root", ocean.port) == (runs.address.user, runs.address.port)
            assert runs.address.host == runs.ip
            assert runs.ip is not None
            assert runs.ip.startswith("127.")
            assert runs.private_ip is not None
            assert runs.private_ip.startswith("127.16.")
            assert runs.address.host_key

    run(scenario())


def test_a_lost_answer_to_a_launch_of_gpus_is_found_in_their_own_list(ocean: Cloud) -> None:
    """That list knows no tags: what came of the launch is found all the same, and not asked for again."""

    async def scenario() -> None:
        async with client(ocean.provider(), machine=GPU) as opened:
            ocean.fault(LAUNCH, "cut", times=1)
            error = await refusal(opened.launch(0, 1, token="lost"))
            assert ProvisionError is type(error)
            assert 1 == len(launches(ocean))
            found = await opened.launch(0, 1, token="lost")
            assert {row["id"] for row in ocean.alive()} == {each.id for each in found}
            assert 1 == len(launches(ocean))

    run(scenario())


@pytest.mark.parametrize(
    "message",
    [
        "Region is not available",
        "Size gpu-h100x1-80gb is temporarily unavailable.",
        "Size is not available in this region.",
        "Droplets of this size are currently sold out",
    ],
)
def test_no_capacity_is_told_from_other_refusals_by_its_words(ocean: Cloud, message: str) -> None:
    """The status is that of a wrong body; the next offer is tried."""

    async def scenario() -> None:
        async with client(ocean.provider()) as opened:
            ocean.fault(LAUNCH, status=422, body={"id": "unprocessable_entity", "message": message})
            error = await refusal(opened.launch())
            assert CapacityError is type(error)
            assert message.rstrip(".") in str(error)
            assert f"1 × {CPU} in ams3" in str(error)

    run(scenario())


def test_a_refusal_that_nobody_knows_is_taken_for_no_capacity_once(ocean: Cloud) -> None:
    """The second one in a row means that what we ask for is wrong."""

    async def scenario() -> None:
        async with client(ocean.provider()) as opened:
            ocean.fault(LAUNCH, status=422, body={"id": "unprocessable_entity", "message": "Moon is full"})
            assert CapacityError is type(await refusal(opened.launch()))
            error = await refusal(opened.launch())
            assert ConfigError is type(error)
            assert "Moon is full" in str(error)

    run(scenario())


def test_a_missing_scope_is_named(ocean: Cloud) -> None:
    """The error is one of credentials, and names what the call needs."""

    async def scenario() -> None:
        async with client(ocean.provider()) as opened:
            body = {"id": "forbidden", "message": "You are not authorized to perform this operation"}
            ocean.fault(LAUNCH, status=403, body=body)
            error = await refusal(opened.launch())
            assert CredentialsError is type(error)
            assert "Give the token droplet:create, tag:create, ssh_key:read and image:read" in str(error)

    run(scenario())


def test_a_launch_that_was_accepted_and_failed_is_seen_by_the_droplet_vanishing(ocean: Cloud) -> None:
    """It is in no list, as one that lists do not show yet; asked for by its id, it is gone."""

    async def scenario() -> None:
        async with client(ocean.provider()) as opened:
            opened.provider._account.inventory.lag = 0.1
            ocean.fault(LAUNCH, "dies", times=1)
            [instance] = await opened.launch()
            assert InstanceState.PENDING is instance.state
            await opened.until(lambda found: not found, 15.0)

    run(scenario())


def test_many_are_ended_by_a_list_and_what_is_no_droplet_is_no_error(ocean: Cloud) -> None:
    """Twelve are not asked for one by one; an id that is gone, never was, or is no number keeps none from ending."""

    async def scenario() -> None:
        async with client(ocean.provider()) as opened:
            ids = [each.id for each in await opened.launch(*range(12))]
            await opened.end(*ids, "99999999", "no-number")
            assert [] == ocean.alive()
            await opened.end(*ids)

    run(scenario())


def test_a_droplet_that_refuses_to_be_deleted_for_a_while_is_deleted(ocean: Cloud) -> None:
    """One that is still being made is locked."""

    async def scenario() -> None:
        async with client(ocean.provider()) as opened:
            [instance] = await opened.launch()
            locked = {"id": "unprocessable_entity", "message": "Droplet already has a pending event."}
            ocean.fault("DELETE /v2/droplets/*", status=422, body=locked, times=3)
            await opened.end(instance.id)
            assert [] == ocean.alive()

    run(scenario())


def test_a_deletion_whose_list_fails_is_not_taken_for_done(ocean: Cloud) -> None:
    """Twelve droplets are looked for in a list; a list that fails is not an empty one."""

    async def scenario() -> None:
        async with client(ocean.provider()) as opened:
            ids = [each.id for each in await opened.launch(*range(12))]
            ocean.fault("DELETE /v2/droplets/*", status=422, body={"message": "pending event"}, times=12)
            ocean.fault("GET /v2/droplets", status=403, body={"id": "forbidden", "message": "no"}, times=1)
            error = await refusal(opened.end(*ids))
            assert all(name in str(error) for name in ids)
            await opened.end(*ids)
            assert [] == ocean.alive()

    run(scenario())


def test_a_droplet_that_switches_itself_off_is_billed_and_counts_as_ending(ocean: Cloud) -> None:
    """It is still there in the books, until it is deleted."""

    async def scenario() -> None:
        async with client(ocean.provider()) as opened:
            [instance] = await opened.launch()
            await opened.until(lambda found: found[0].state is InstanceState.RUNNING)
            ocean.ask(f"shutdown?id={instance.id}")
            await opened.until(lambda found: found[0].state is InstanceState.ENDING)
            assert [instance.id] == [row["id"] for row in ocean.alive()]
            await opened.end(instance.id)
            assert [] == ocean.alive()

    run(scenario())


def test_the_error_of_a_pool_says_what_digitalocean_says_of_its_droplet(ocean: Cloud) -> None:
    """DigitalOcean has no more than a word for it, which is in the pool's error."""
    options = {"machine": CPU, "console": False, "max_provision_attempts": 1}

    def switch_off(event: object) -> None:
        if isinstance(event, events.InstanceLaunched):
            for row in ocean.alive():
                ocean.ask(f"shutdown?id={row['id']}")

    ocean.fault(LAUNCH, "never")
    with pytest.raises(sky.SkywardError, match="its status is off"):
        sky.Compute(provider=ocean.provider(), on_event=switch_off, **options).open()
    assert [] == ocean.alive()


def test_whoever_asks_finds_every_droplet_of_ours_and_can_end_it(ocean: Cloud) -> None:
    """Those with GPUs are in a list of their own; what the pools left goes too, and nothing of others."""

    async def scenario() -> None:
        async with client(ocean.provider()) as here, client(ocean.provider(), machine=GPU) as there:
            rented = [*await here.launch(0, 1), *await there.launch()]
            stranger = ocean.provider()
            found = list(await stranger.skyward_owned())
            assert {each.id for each in rented} == {each.id for each in found}
            assert {here.cluster.pool_id, there.cluster.pool_id} == {each.tags.pool_id for each in found if each.tags}
            mine = [each for each in found if each.tags and each.tags.pool_id == here.cluster.pool_id]
            await stranger.skyward_end(mine)
            assert {rented[2].id} == {row["id"] for row in ocean.alive()}
            names = {key["name"] for key in ocean.ssh_keys()}
            assert {f"skyward:{there.cluster.pool_id}"} == names
            assert [] == [tag for tag in ocean.tags() if here.cluster.pool_id in tag]
            assert [] != [tag for tag in ocean.tags() if there.cluster.pool_id in tag]

    run(scenario())


def test_an_expiry_is_written_anew_and_the_earlier_one_is_gone(ocean: Cloud) -> None:
    """Both droplets have the later time; an id that is gone keeps no other from it."""

    async def scenario() -> None:
        async with client(ocean.provider(), machine=GPU) as opened:
            ids = [each.id for each in await opened.launch(0, 1)]
            for moment in (1900000000.0, 1900003600.0):
                await opened.provider.skyward_renew(opened.cluster, [*ids, "99999999"], moment)
            expiries = [tag for row in ocean.alive() for tag in row["tags"] if ":expires:" in tag]
            assert [f"skyward:{opened.cluster.pool_id}:expires:1900003600"] * 2 == expiries
            assert 1 == len([tag for tag in ocean.tags() if opened.cluster.pool_id in tag and ":expires:" in tag])

    run(scenario())


def test_a_key_that_was_there_before_stays(ocean: Cloud) -> None:
    """Keys are the whole team's: one that another client put there is used and never removed."""

    async def scenario() -> None:
        async with client(ocean.provider()) as opened:
            provider, cluster = opened.provider, opened.cluster
            await provider.skyward_release(cluster, opened.infra)
            body = {"name": "a colleague's", "public_key": f"{cluster.key.public} me@laptop"}
            await provider._account.api.post("/v2/account/keys", json=body)
            infra = await provider.skyward_open(cluster)
            assert not infra.own
            await provider.skyward_release(cluster, infra)
            assert ["a colleague's"] == [key["name"] for key in ocean.ssh_keys()]
            await provider.skyward_release(cluster, evolve(infra, own=True))

    run(scenario())


def test_a_key_that_somebody_removed_is_put_back(ocean: Cloud) -> None:
    """The launch is refused for it once, and then is not."""

    async def scenario() -> None:
        async with client(ocean.provider()) as opened:
            await opened.provider._account.api.delete(f"/v2/account/keys/{opened.infra.id}")
            await opened.launch()
            assert 1 == len(ocean.ssh_keys())

    run(scenario())


def test_pools_of_one_account_share_their_lists(ocean: Cloud) -> None:
    """Twenty pools that poll as fast as they can cost two calls in the time that a list holds: two seconds, usually."""
    assert 5000 > 2 * 3600 / LISTS_HOLD
    ocean.lists_hold = hold = 0.4

    async def scenario() -> None:
        async with client(ocean.provider()) as opened:
            await opened.launch()
            pools = [type(opened)(ocean.provider(), evolve(opened.cluster, pool_id=f"q{n}"), None) for n in range(20)]
            before, clock = len(ocean.calls("GET /v2/droplets")), asyncio.get_running_loop().time
            began = clock()
            while clock() < began + 1.2:
                await asyncio.gather(*(pool.listed() for pool in pools))
                await asyncio.sleep(0.05)
            rounds = 1 + (clock() - began) // hold
            assert 2 * rounds >= len(ocean.calls("GET /v2/droplets")) - before > 0

    in_real_time(scenario())
