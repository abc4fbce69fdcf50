"""What is sold: each market in each location, and answers that are not what they were."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

import skyward as sky
from skyward.errors import ConfigError, ProvisionError
from skyward.model.instances.machine import InstanceState
from skyward.model.spec.spec import Spec
from skyward.plan.offers.choice import choose, in_order
from tests.clouds.verda.client import client, refusal, run
from tests.clouds.verda.cloud import MACHINE, Cloud

pytestmark = [pytest.mark.clouds, pytest.mark.usefixtures("without_hosts")]


def offers(verda: Cloud, spec: Spec | None = None, **provider: Any) -> dict[tuple[str, str | None], Any]:
    """Return the offers by type and location."""
    found = asyncio.run(verda.provider(**provider).skyward_offers(spec or Spec()))
    assert len(found) == len({(each.instance_type, each.region) for each in found})
    return {(each.instance_type, each.region): each for each in found}


def test_each_market_has_a_stock_of_its_own(verda: Cloud) -> None:
    """Both are asked for, in both spellings of the flag; what is sold as spot only is sold so."""
    found = offers(verda)
    b200 = found["1B200.30V", "ICE-01"]
    assert (None, 1.3965, True) == (b200.on_demand_price, b200.spot_price, b200.available)
    both = found["1A100.22V", "FIN-01"]
    assert (1.2894, 0.4513) == (both.on_demand_price, both.spot_price)
    assert not found["1B200.30V", "FIN-01"].available
    flags = [call["query"] for call in verda.calls("GET /v1/instance-availability")]
    assert [("false", "false"), ("true", "true")] == sorted((each["isSpot"], each["is_spot"]) for each in flags)
    assert [{"currency": "usd"}] == [call["query"] for call in verda.calls("GET /v1/instance-types")]


@pytest.mark.parametrize(
    ("asked", "rented"),
    [
        ("A100", "1A100.40S.22V"),
        (sky.accelerators.A100(), "1A100.22V"),
        (sky.accelerators.A100(memory="40GB"), "1A100.40S.22V"),
    ],
    ids=str,
)
def test_a_name_takes_the_cheapest_variant(verda: Cloud, asked: Any, rented: str) -> None:
    """A factory takes the usual one, or the one it says."""
    spec = Spec(accelerator=asked, allocation="on-demand")
    assert rented == in_order(spec, choose(spec, offers(verda, spec).values()))[0].offer.instance_type


def test_what_is_sold_takes_four_calls(verda: Cloud) -> None:
    """Side by side, whatever the number of types and locations."""
    offers(verda)
    before = len(verda.calls("GET"))
    assert 4 == before
    verda.fault("GET *", "late", seconds=3.0)
    began = time.monotonic()
    offers(verda)
    assert time.monotonic() - began < 4 * 3.0


def test_a_region_narrows_what_is_offered(verda: Cloud) -> None:
    """That of the spec before that of the provider."""
    assert {"FIN-02"} == {place for _, place in offers(verda, region="FIN-02")}
    assert {"FIN-03"} == {place for _, place in offers(verda, Spec(region="FIN-03"), region="FIN-02")}


def test_unknown_types_and_locations_are_refused_with_the_nearest(verda: Cloud) -> None:
    """Before anything is rented."""

    async def scenario() -> None:
        error = await refusal(verda.provider().skyward_offers(Spec(machine="1A100.22")))
        assert isinstance(error, ConfigError)
        assert "'1A100.22V'" in str(error)
        error = await refusal(verda.provider(region="FIN-1").skyward_preflight(Spec()))
        assert isinstance(error, ConfigError)
        assert "'FIN-01'" in str(error)
        error = await refusal(verda.provider().skyward_preflight(Spec(region="MARS")))
        assert "There are FIN-01" in str(error)

    run(scenario())


def test_an_image_that_does_not_fit_is_refused_with_the_nearest(verda: Cloud) -> None:
    """Before anything is rented; the id of one that fits is as good as its name."""

    async def scenario() -> None:
        async with client(verda.provider(image="ubuntu-24.4")) as opened:
            error = await refusal(opened.launch())
            assert isinstance(error, ConfigError)
            assert "'ubuntu-24.04'" in str(error)
        async with client(verda.provider(image="image-0")) as opened:
            await opened.launch()

    run(scenario())


def test_types_without_a_price_are_an_error_and_no_empty_market(verda: Cloud) -> None:
    """The field vanished from all of them."""
    verda.fault("GET /v1/instance-types", "edit", body={"spot_price": None}, times=1)
    with pytest.raises(ProvisionError, match="'spot_price' is missing"):
        offers(verda)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("instance-types", "<html>maintenance</html>"),
        ("instance-types", {"error": "moved"}),
        ("instance-availability", [{"location": "FIN-01"}]),
        ("locations", {}),
    ],
)
def test_an_answer_that_is_none_is_shown(verda: Cloud, path: str, body: Any) -> None:
    """HTML, another shape, a field that vanished: an error with the answer, and never an empty market."""
    verda.fault(f"GET /v1/{path}", status=200, body=body)

    async def scenario() -> None:
        error = await refusal(verda.provider().skyward_offers(Spec()))
        assert ProvisionError is type(error)
        assert f"GET /{path}" in str(error)
        assert "cannot be read" in str(error)

    run(scenario())


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"status": None}, InstanceState.ENDING),
        ({"price_per_hour": "free"}, InstanceState.RUNNING),
        ({"instance_type": None}, InstanceState.RUNNING),
    ],
    ids=["status", "price", "type"],
)
def test_a_machine_that_cannot_be_read_is_not_left_out(
    verda: Cloud, changes: dict[str, Any], expected: InstanceState
) -> None:
    """A field that is missing or of another type is not guessed, and the machine is listed."""

    async def scenario() -> None:
        async with client(verda.provider()) as opened:
            [instance] = await opened.launch()
            await opened.until(lambda found: found[0].state is InstanceState.RUNNING)
            verda.fault("GET /v1/instances", "edit", body=changes)
            [found] = await opened.until(lambda found: found[0].state is expected)
            assert (instance.id, None) == (found.id, found.hourly_rate if "price_per_hour" in changes else None)
            verda.calm()

    run(scenario())


def test_a_rate_limit_is_waited_for(verda: Cloud) -> None:
    """As long as Verda says; the text of the refusal may be no JSON."""
    verda.fault("GET /v1/balance", status=429, body="Too many requests", headers={"Retry-After": "1"}, times=1)
    began = time.monotonic()
    asyncio.run(verda.provider().skyward_preflight(Spec()))
    assert time.monotonic() - began >= 1.0
    assert 2 == len(verda.calls("GET /v1/balance"))


def test_offers_are_found_through_sky_offers(verda: Cloud) -> None:
    """With the accelerators as everybody calls them."""
    [offer] = sky.offers([verda.provider()]).accelerator("B200").spot().region("ICE-01").cheapest(1)
    assert ("1B200.30V", "B200") == (offer.instance_type, offer.accelerator_name)
    assert offer.provider == "verda"
    assert MACHINE != offer.instance_type
