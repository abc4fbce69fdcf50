"""What is wrong with a wish or the account is reported before anything is rented."""

from __future__ import annotations

import itertools
import logging
import re
from pathlib import Path
from typing import Any

import pytest

from skyward.engine.instances.provider_handle import ProviderHandle
from skyward.errors import ConfigError, CredentialsError, NoCredentialsError, ProvisionError, SkywardError
from skyward.model.spec.spec import Spec
from skyward.rest import Limit
from skyward_digitalocean.account import LIMITS
from skyward_digitalocean.keys import close_keys
from tests.clouds.digitalocean.client import client, refusal, run
from tests.clouds.digitalocean.cloud import GPU, TOKEN, VPC, Cloud

RENTING = (
    *("droplet:create", "droplet:read", "droplet:update", "droplet:delete", "image:read", "regions:read", "sizes:read"),
    *("ssh_key:create", "ssh_key:read", "ssh_key:delete", "tag:create", "tag:read", "tag:delete"),
)

pytestmark = [pytest.mark.clouds, pytest.mark.usefixtures("without_hosts")]


def asked(provider: Any, **wishes: Any) -> SkywardError:
    """Return the error of the preflight."""
    return run(refusal(provider.skyward_preflight(Spec(provider=provider, **wishes))))


def test_no_token(ocean: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error lists where it was looked for."""
    monkeypatch.delenv("DIGITALOCEAN_TOKEN")
    error = asked(ocean.provider())
    assert NoCredentialsError is type(error)
    assert "token=, DIGITALOCEAN_TOKEN, DIGITALOCEAN_ACCESS_TOKEN" in str(error)
    assert [] == ocean.calls()


def test_the_token_of_doctl_will_do(ocean: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both names are in use, and what is written down wins."""
    monkeypatch.delenv("DIGITALOCEAN_TOKEN")
    monkeypatch.setenv("DIGITALOCEAN_ACCESS_TOKEN", f" {TOKEN}\n")
    run(ocean.provider().skyward_preflight(Spec()))
    assert CredentialsError is type(asked(ocean.provider(token="dop_v1_wrong")))


def test_a_token_that_may_not_look_at_the_account_may_be_good_for_the_rest(ocean: Cloud) -> None:
    """Scopes that are not needed are not asked for."""
    ocean.set(scopes=RENTING)
    run(ocean.provider().skyward_preflight(Spec()))


def test_the_scopes_that_are_documented_will_do(ocean: Cloud) -> None:
    """All that a pool does of its own accord; the page names the same."""
    page = Path(__file__).parents[3].joinpath("docs", "digitalocean.md").read_text(encoding="utf-8")
    needs = page.partition("A token of custom scopes needs")[2].partition("\n\n")[0]
    named = set(re.findall(r"`(\w+:\w+)`", needs))
    assert {*RENTING, "vpc:read", "block_storage:read"} == named
    ocean.set(scopes=sorted(named))

    async def scenario() -> None:
        async with client(ocean.provider(vpc=VPC, region="nyc3"), region=None) as opened:
            [droplet] = await opened.launch()
            asked = {"cluster": opened.cluster, "infra": opened.infra, "ids": [droplet.id]}
            await ProviderHandle(opened.provider).call("skyward_renew", **asked, expires_at=1.9e9, timeout=20)
            assert ["1900000000"] == [tag.rpartition(":")[2] for tag in ocean.alive()[0]["tags"] if ":expires:" in tag]
            await opened.provider.skyward_end(await opened.provider.skyward_owned())

    run(scenario())


@pytest.mark.parametrize(
    ("missing", "settings", "said"),
    [
        ("droplet:update", {}, "Give the token tag:create and droplet:update"),
        ("tag:create", {}, "Give the token tag:create and droplet:update"),
        ("vpc:read", {"vpc": VPC}, "Give the token vpc:read"),
    ],
)
def test_a_scope_that_is_needed_only_later_is_missed_before_renting(
    ocean: Cloud, missing: str, settings: dict[str, str], said: str
) -> None:
    """A token that can rent, and cannot say that the client still lives, would have droplets look left behind."""
    ocean.set(scopes=[each for each in (*RENTING, "vpc:read", "account:read") if each != missing])
    error = asked(ocean.provider(**settings))
    assert CredentialsError is type(error)
    assert said in str(error)
    assert missing in str(error)


def test_a_pool_without_a_ttl_needs_no_right_to_renew(ocean: Cloud) -> None:
    """There is no expiry on its droplets."""
    ocean.set(scopes=[each for each in RENTING if each != "droplet:update"])
    run(ocean.provider().skyward_preflight(Spec(ttl=0)))


def test_a_network_that_does_not_exist(ocean: Cloud) -> None:
    """The error comes before anything is rented."""
    error = asked(ocean.provider(vpc="00000000-0000-4000-8000-000000000000"))
    assert ConfigError is type(error)
    assert "DigitalOcean has no VPC '00000000-" in str(error)


def test_keys_are_listed_as_rarely_as_digitalocean_wants(ocean: Cloud) -> None:
    """Ten times a minute for all callers together; more would be refused for a minute."""
    assert (Limit(10, 60.0),) == LIMITS["keys"]

    async def scenario() -> list[float]:
        account = ocean.provider()._account
        for _ in range(4):
            await close_keys(account, ["p1"])
        return [call["at"] for call in ocean.calls("GET /v2/account/keys")]

    times = run(scenario())
    # Two at once, and then one in 6.7 seconds, of which a fiftieth is slept here.
    assert [True, True] == [later - earlier > 0.1 for earlier, later in itertools.pairwise(times)][1:]


def test_a_locked_account(ocean: Cloud) -> None:
    """It is reported with DigitalOcean's own reason."""
    ocean.set(status="locked")
    error = asked(ocean.provider())
    assert CredentialsError is type(error)
    assert "is locked: Ask support." in str(error)


@pytest.mark.parametrize("wish", ["provider", "spec"])
def test_a_region_that_does_not_exist(ocean: Cloud, wish: str) -> None:
    """The nearest one is offered."""
    error = asked(ocean.provider(region="nyc9")) if wish == "provider" else asked(ocean.provider(), region="nyc9")
    assert ConfigError is type(error)
    assert "DigitalOcean has no region 'nyc9'. Did you mean 'nyc" in str(error)


def test_spot_is_refused_plainly(ocean: Cloud) -> None:
    """There is no such market; who can do without gets what there is."""
    error = asked(ocean.provider(), allocation="spot")
    assert ConfigError is type(error)
    assert "DigitalOcean has no spot market" in str(error)
    run(ocean.provider().skyward_preflight(Spec(allocation="spot-if-available")))


def test_offers_are_sizes_in_regions_that_take_orders(ocean: Cloud) -> None:
    """One with no region is not for sale; memory of cards is that of one."""
    offers = run(ocean.provider().skyward_offers(Spec()))
    found = {(offer.instance_type, offer.region): offer for offer in offers}
    assert {"nyc2", "tor1"} == {region for name, region in found if name == GPU}
    assert not {name for name, _ in found} & {"m-2vcpu-16gb", "gpu-6000adax1-48gb"}
    eight = found["gpu-h100x8-640gb", "nyc2"]
    assert ("h100", 8, 80) == (eight.accelerator_name, eight.accelerator_count, eight.accelerator_memory_gb)
    assert (47.6, 1920.0, 160, 2046) == (eight.on_demand_price, eight.memory_gb, eight.vcpus, eight.disk_gb)
    amd = found["gpu-mi300x1-192gb", "tor1"]
    assert ("MI300X", "AMD", 192) == (
        amd.normalised().accelerator_name,
        amd.accelerator_manufacturer,
        amd.accelerator_memory_gb,
    )
    assert {None} == {offer.spot_price for offer in offers}
    assert {"nyc3"} == {offer.region for offer in run(ocean.provider(region="nyc3").skyward_offers(Spec()))}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"price_hourly": "6.74"}, "'price_hourly' is not a number of at least 0 but '6.74'"),
        ({"price_hourly": None}, "the field 'price_hourly' is missing"),
        ({"regions": None}, "the field 'regions' is missing"),
        ({"sizes": {}}, "'sizes' is not a list but an object"),
    ],
)
def test_offers_that_cannot_be_read_are_an_error_that_shows_them(
    ocean: Cloud, changes: dict[str, Any], reason: str
) -> None:
    """Nothing is guessed, and nothing is sold that is not understood."""
    ocean.fault("GET /v2/sizes", "edit", body=changes)
    error = run(refusal(ocean.provider().skyward_offers(Spec())))
    assert ProvisionError is type(error)
    assert reason in str(error)
    assert "The answer: " in str(error)


def test_html_instead_of_json(ocean: Cloud) -> None:
    """A proxy's page is no list of anything."""
    ocean.fault("GET /v2/droplets", status=200, body="<html><title>Sign in</title></html>")
    error = run(refusal(ocean.provider().skyward_owned()))
    assert ProvisionError is type(error)
    assert "<title>Sign in</title>" in str(error)


def test_one_size_that_cannot_be_read_spoils_no_other(ocean: Cloud, caplog: pytest.LogCaptureFixture) -> None:
    """It is left out with a warning."""
    size = {"slug": "odd", "available": True, "price_hourly": "free", "regions": ["nyc1"]}
    good = {"slug": "s", "memory": 1024, "vcpus": 1, "disk": 25, "price_hourly": 0.1, "available": True}
    ocean.fault("GET /v2/sizes", status=200, body={"sizes": [size, {**good, "regions": ["nyc1"]}], "links": {}})
    with caplog.at_level(logging.WARNING):
        offers = run(ocean.provider().skyward_offers(Spec()))
    assert ["s"] == [offer.instance_type for offer in offers]
    assert "'vcpus' is missing" in caplog.text
