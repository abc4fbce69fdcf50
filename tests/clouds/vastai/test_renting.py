"""Machines are rented once, with all that has to be on them; and what a refusal made is given back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skyward.errors import CapacityError, ConfigError, CredentialsError, ProvisionError, QuotaError
from skyward.hookspecs import InstanceState, SSHAddress
from skyward.model.spec.container import ubuntu
from skyward.model.spec.spec import Spec
from skyward.rest import reply_of
from skyward_vastai.keys import TRIES
from skyward_vastai.start import LONGEST
from tests.clouds.vastai.client import client, in_real_time, refusal, run
from tests.clouds.vastai.cloud import Cloud

pytestmark = [pytest.mark.clouds, pytest.mark.timeout(90), pytest.mark.usefixtures("without_hosts")]

CREATE = "PUT /api/v0/asks/"


def sent(vastai: Cloud) -> list[dict[str, Any]]:
    """Return what was sent with every launch."""
    return [json.loads(call["body"]) for call in vastai.calls(CREATE)]


def test_a_machine_is_rented_with_all_it_has_to_have(vastai: Cloud) -> None:
    """Its owner's mark comes in the call that makes it; the pool's key is attached, the account's are not touched."""

    async def scenario() -> None:
        provider = vastai.provider(docker_image=ubuntu("24.04"), registry="-u me -p word registry.example")
        async with client(provider, disk_gb=77) as opened:
            [instance] = await opened.launch(3)
            [body] = sent(vastai)
            assert ("ubuntu:24.04", 77, "ssh_direct") == (body["image"], body["disk"], body["runtype"])
            assert body["label"].startswith(f"skyward/{opened.cluster.pool_id}/3/")
            assert ("me", True, {}) == (body["client_id"], body["cancel_unavail"], body["env"])
            assert "-u me -p word registry.example" == body["image_login"]
            assert "price" not in body
            assert len(body["onstart"]) <= LONGEST
            [attached] = [call for call in vastai.calls() if "ssh" in call["name"]]
            assert f"POST /api/v0/instances/{instance.id}/ssh/" == attached["name"]
            assert {"ssh_key": opened.cluster.key.public} == json.loads(attached["body"])
            assert (False, 3, InstanceState.PENDING) == (instance.spot, instance.node, instance.state)
            assert instance.tags is not None
            assert "My pool, Größe 1/2" == instance.tags.pool_name
            assert opened.cluster.offer.on_demand_price == pytest.approx(instance.hourly_rate)

    run(scenario())


def test_a_price_makes_it_one_that_may_be_taken_back(vastai: Cloud) -> None:
    """The bid is for the whole machine and above the lowest that runs; nothing else says that it is one."""

    async def scenario() -> None:
        async with client(vastai.provider(bid_factor=1.5)) as opened:
            [instance] = await opened.launch(spot=True)
            [body] = sent(vastai)
            assert 0.3 == pytest.approx(body["price"])
            assert instance.spot
            [runs] = await opened.until(lambda found: found[0].state is InstanceState.RUNNING)
            assert runs.spot
            assert opened.cluster.offer.spot_price == pytest.approx(runs.hourly_rate)
            assert opened.cluster.offer.on_demand_price == runs.on_demand_rate

    run(scenario())


@pytest.mark.usefixtures("with_hosts")
def test_a_machine_lets_us_in_at_a_mapped_port_and_no_terminal_is_in_the_way(vastai: Cloud) -> None:
    """The pool's key is where SSH looks for it, also after Vast.ai wrote that anew; logins land in no tmux."""
    vastai.ask("account_key", "ssh-ed25519 AAAA of the account")

    async def scenario() -> None:
        async with client(vastai.provider()) as opened:
            await opened.launch()
            [runs] = await opened.until(lambda found: found[0].state is InstanceState.RUNNING)
            [row] = vastai.alive()
            assert isinstance(runs.address, SSHAddress)
            assert (row["address"], vastai.port, "root") == (runs.address.host, runs.address.port, runs.address.user)
            home = Path(row["base"], "home")
            keys, own = home / ".ssh" / "authorized_keys", opened.cluster.key.public
            # What Vast.ai wrote ended without a newline.
            assert {"ssh-ed25519 AAAA of the account", own} == set(keys.read_text().splitlines())
            vastai.ask("refresh", {})
            assert ["ssh-ed25519 AAAA of the account", own] == keys.read_text().splitlines()
            assert (home / ".no_auto_tmux").exists()

    in_real_time(scenario())


def test_a_key_that_cannot_be_attached_is_attached_later(vastai: Cloud, caplog: pytest.LogCaptureFixture) -> None:
    """The machine is rented all the same; it is tried with each list, and given up with a warning."""

    async def scenario() -> None:
        async with client(vastai.provider()) as opened:
            vastai.fault("POST /api/v0/instances/*/ssh/", status=400, body={"success": False, "error": "no"}, times=3)
            await opened.launch()
            assert [[]] == [row["lets_in"] for row in vastai.alive()]
            for _ in range(3):
                await opened.listed()
            assert [[opened.cluster.key.public]] == [row["lets_in"] for row in vastai.alive()]
            await opened.listed()
            assert 4 == len(vastai.calls("POST /api/v0/instances/"))

    run(scenario())
    assert "key.not_attached" not in [record.message[:16] for record in caplog.records if record.levelname == "WARNING"]


@pytest.mark.parametrize(("status", "tries"), [(400, TRIES), (403, 1)])
def test_a_key_that_is_refused_for_good_is_a_warning(
    vastai: Cloud, status: int, tries: int, caplog: pytest.LogCaptureFixture
) -> None:
    """It says what may come of it; a key of the account without the right is not tried again."""
    vastai.fault("POST /api/v0/instances/*/ssh/", status=status, body={"success": False, "error": "no", "msg": "No."})

    async def scenario() -> None:
        async with client(vastai.provider()) as opened:
            [instance] = await opened.launch()
            for _ in range(TRIES + 2):
                await opened.listed()
            assert tries == len(vastai.calls("POST /api/v0/instances/"))
            said = [line for line in caplog.messages if "may let in no new connection" in line]
            assert 1 == len(said)
            assert instance.id in said[0]
            vastai.calm()

    run(scenario())


def test_a_host_key_is_remembered_for_one_machine_only(vastai: Cloud) -> None:
    """Addresses and ports go from one container to the next, so that the user's own file is left alone."""

    async def scenario() -> None:
        async with client(vastai.provider()) as opened:
            await opened.launch()
            [runs] = await opened.until(lambda found: found[0].state is InstanceState.RUNNING)
            assert isinstance(runs.address, SSHAddress)
            assert ("first-use", runs.id) == (runs.address.trust, Path(str(runs.address.known_hosts)).name)
            assert 0o700 == Path(str(runs.address.known_hosts)).parent.stat().st_mode & 0o777

    run(scenario())


def test_a_listing_that_is_gone_has_no_machine(vastai: Cloud) -> None:
    """Whether it was taken meanwhile or is not known any more: the next one is to be tried."""

    async def scenario() -> None:
        async with client(vastai.provider()) as opened:
            await opened.launch()
            gone = await refusal(opened.launch())
            assert (CapacityError, 410) == (type(gone), reply_of(gone).status)  # type: ignore[union-attr]
            said = {"success": False, "error": "invalid_args", "msg": "error 404/3603: no_such_ask Instance type by id"}
            vastai.fault(f"{CREATE}*", status=404, body=said)
            unknown = await refusal(opened.launch())
            assert (CapacityError, 404) == (type(unknown), reply_of(unknown).status)  # type: ignore[union-attr]
            assert 1 == len(vastai.alive())

    run(scenario())


def test_a_bid_that_fails_leaves_no_contract(vastai: Cloud) -> None:
    """The refusal has made a stopped machine that is billed for its disk: it is destroyed before anything is tried."""

    async def scenario() -> None:
        async with client(vastai.provider()) as opened:
            vastai.listing(opened.cluster.offer.data["ask"], min_bid=0.9)
            before = len(vastai.instances())
            low = await refusal(opened.launch(spot=True))
            assert isinstance(low, CapacityError)
            assert "raise bid_factor" in str(low)
            assert [] == vastai.alive()
            assert before + 1 == len(vastai.instances())

    run(scenario())


def test_what_a_failed_bid_made_and_cannot_be_destroyed_is_named(vastai: Cloud) -> None:
    """It is no lack of machines: no caller may take it for nothing rented."""

    async def scenario() -> None:
        async with client(vastai.provider()) as opened:
            vastai.listing(opened.cluster.offer.data["ask"], min_bid=0.9)
            vastai.fault("DELETE *", status=403, body={"success": False, "error": "forbidden", "msg": "no"})
            failed = await refusal(opened.launch(spot=True))
            [left] = vastai.alive()
            assert type(failed) is ProvisionError
            assert f"{left['id']} may still be running and billed" in str(failed)
            assert "It was made by a launch that was refused" in str(failed)
            vastai.calm()

    run(scenario())


def test_an_answer_without_a_number_is_shown_without_the_machines_key(vastai: Cloud) -> None:
    """Vast.ai hands out a key with every machine, which no error may show."""

    async def scenario() -> None:
        async with client(vastai.provider()) as opened:
            vastai.fault(f"{CREATE}*", "edit", body={"new_contract": None})
            error = await refusal(opened.launch())
            [row] = vastai.alive()
            assert "'new_contract' is missing" in str(error)
            assert row["key"] not in f"{error} {error!r} {vars(error)}"

    run(scenario())


def test_launches_keep_the_distance_that_is_asked_for(vastai: Cloud) -> None:
    """The emulator refuses those that come faster, and has none to refuse."""
    vastai.paced(True)

    async def scenario() -> None:
        async with client(vastai.provider()) as opened:
            await opened.launch(token="a")
            await refusal(opened.launch(token="b"))
            first, second = (call["at"] for call in vastai.calls(CREATE))
            assert second - first >= 4.4

    in_real_time(scenario())


def test_searches_of_a_day_that_are_used_up_are_not_tried_again(vastai: Cloud) -> None:
    """Only midnight brings new ones."""
    headers = {"X-RateLimit-Reset": "1900000000"}
    vastai.fault("POST /api/v0/bundles/", status=429, body={"error": "search_quota_exceeded"}, headers=headers)
    error = run(refusal(vastai.provider().skyward_offers(Spec(accelerator="RTX 4090"))))
    assert isinstance(error, QuotaError)
    assert "midnight UTC" in str(error)
    assert 1 == len(vastai.calls("POST /api/v0/bundles/"))


def test_a_wrong_key_is_told_as_one_though_it_comes_as_not_found(vastai: Cloud) -> None:
    """And the key itself is nowhere in what is said."""
    error = run(refusal(vastai.provider(api_key="wrong-key-of-mine").skyward_preflight(Spec())))
    assert isinstance(error, CredentialsError)
    assert "Invalid user key" in str(error)
    assert "wrong-key-of-mine" not in f"{error} {error!r} {vars(error)}"


def test_a_key_that_may_rent_and_not_ask_whose_it_is_will_do(vastai: Cloud) -> None:
    """Keys may have few rights."""
    vastai.fault("GET /api/v0/users/current/", status=403, body={"success": False, "error": "forbidden"})
    run(vastai.provider().skyward_preflight(Spec()))


def test_an_account_without_credit_is_told_so(vastai: Cloud) -> None:
    """No other listing would help."""

    async def scenario() -> None:
        async with client(vastai.provider()) as opened:
            vastai.credit(0.0)
            error = await refusal(opened.launch())
            assert isinstance(error, CredentialsError)
            assert "Add credit" in str(error)

    run(scenario())


def test_a_region_is_the_code_of_a_country(vastai: Cloud) -> None:
    """What is none is refused before anything is asked."""
    error = run(refusal(vastai.provider().skyward_preflight(Spec(region="us-east-1"))))
    assert isinstance(error, ConfigError)
    assert [] == vastai.calls()


def test_offers_are_what_can_be_reached_and_lasts_long_enough(vastai: Cloud) -> None:
    """Verified, direct, with our number of GPUs, and there for as long as the pool may last."""

    async def scenario() -> None:
        # Each with a key of its own, because searches have to keep a distance.
        keys = (f"{vastai.key}{number}" for number in range(9))
        found = await vastai.provider(api_key=next(keys)).skyward_offers(Spec(accelerator="RTX 4090"))
        offers = [offer for offer in found if offer.accelerator_name == "RTX 4090"]
        assert {"US", "DE", None} == {offer.region for offer in offers}
        assert {"1x RTX 4090"} == {offer.instance_type for offer in offers}
        assert min(offer.on_demand_price for offer in offers) > 0.4
        old = vastai.provider(docker_image=ubuntu(), api_key=next(keys))
        wish: dict[str, Any] = {"accelerator": "RTX 3090", "region": "CA"}
        assert 2 == len(await old.skyward_offers(Spec(**wish)))
        assert 1 == len(await old.skyward_offers(Spec(**wish, timeout=86400)))
        assert 1 == len(await vastai.provider(api_key=next(keys)).skyward_offers(Spec(**wish)))
        both = await vastai.provider(verified=False, api_key=next(keys)).skyward_offers(
            Spec(accelerator="RTX 4090", region="US")
        )
        assert min(offer.on_demand_price for offer in both) < 0.12

    run(scenario())


@pytest.mark.parametrize("name", ["min_bid", "cpu_cores", "geolocation", "disk_space", "gpu_ram"])
def test_a_field_that_is_missing_and_does_not_matter_hides_no_offer(vastai: Cloud, name: str) -> None:
    """What is not known is None."""
    vastai.fault("POST /api/v0/bundles/", "edit", body={name: None})
    assert run(vastai.provider().skyward_offers(Spec(accelerator="A100:2")))


@pytest.mark.parametrize("body", ["<html><title>Down</title></html>", {"offers": None}, {"success": True}, "", []])
def test_an_answer_that_lists_nothing_is_no_empty_list(vastai: Cloud, body: Any) -> None:
    """It is shown as it is."""
    vastai.fault("POST /api/v0/bundles/", status=200, body=body)
    error = run(refusal(vastai.provider().skyward_offers(Spec())))
    assert type(error) is ProvisionError
    assert "cannot be read" in str(error)
