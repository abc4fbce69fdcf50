"""What is sold, at which price; and what is said where it cannot be asked."""

from __future__ import annotations

import os

import pytest

import skyward as sky
from skyward.errors import ConfigError, CredentialsError
from skyward.model.spec.spec import Spec
from tests.clouds.aws.client import refusal, run
from tests.clouds.aws.cloud import Cloud
from tests.clouds.aws.prices import on_demand, spot

pytestmark = [pytest.mark.clouds, pytest.mark.usefixtures("without_hosts")]


def names(aws: Cloud) -> list[str]:
    """Return the names of the calls made."""
    return [call["name"] for call in aws.calls()]


def test_a_whole_region_takes_few_calls(aws: Cloud) -> None:
    """Everything that a region sells is known after 40 calls, and with its price; asking again takes next to none."""

    async def scenario() -> None:
        provider = aws.provider()
        found = {offer.instance_type: offer for offer in await provider.skyward_offers(Spec())}
        assert len(names(aws)) <= 40
        assert {"g4dn.xlarge", "p5.48xlarge", "trn1.2xlarge", "m7i.large", "m8g.large"} <= set(found)
        small = found["g4dn.xlarge"]
        assert ("T4", 1, 16.0) == (small.accelerator_name, small.accelerator_count, small.accelerator_memory_gb)
        assert ("us-east-1", "x86_64", 0.526) == (small.region, small.architecture, small.on_demand_price)
        assert spot("g4dn.xlarge", "us-east-1f") == small.spot_price
        assert all(type(offer.on_demand_price) is float for offer in found.values())
        aws.calm()
        await provider.skyward_offers(Spec())
        assert {"ec2:DescribeSpotPriceHistory"} == set(names(aws))

    run(scenario())


def test_offers_can_be_looked_at_without_a_pool(aws: Cloud) -> None:
    """The repository of offers has them, in the catalogue's words."""
    found = sky.offers([aws.provider()]).accelerator("T4").cheapest(1)
    assert ["g4dn.xlarge"] == [offer.instance_type for offer in found]


def test_only_what_can_meet_the_spec_is_priced(aws: Cloud) -> None:
    """One type has the accelerator, and one call asks for its price; memory tells the variants apart."""

    async def scenario() -> None:
        [large] = await aws.provider().skyward_offers(Spec(accelerator="A100-80GB"))
        [small] = await aws.provider().skyward_offers(Spec(accelerator="A100-40GB"))
        assert ["p4de.24xlarge", "p4d.24xlarge"] == [large.instance_type, small.instance_type]
        assert 2 == names(aws).count("pricing:GetProducts")
        arm = await aws.provider().skyward_offers(Spec(accelerator="T4G", architecture="arm64"))
        assert {"arm64"} == {offer.architecture for offer in arm}

    run(scenario())


def test_a_zone_sells_for_its_own_price(aws: Cloud) -> None:
    """With a zone named, its spot price counts, and types that it lacks are left out."""

    async def scenario() -> None:
        [offer] = await aws.provider(zone="us-east-1b").skyward_offers(Spec(machine="g5.xlarge"))
        assert ("us-east-1b", spot("g5.xlarge", "us-east-1b")) == (offer.zone, offer.spot_price)
        assert on_demand("g5.xlarge") == offer.on_demand_price
        assert [] == await aws.provider(zone="us-east-1e").skyward_offers(Spec(machine="g5.xlarge"))

    run(scenario())


def test_a_region_that_fails_is_left_out(aws: Cloud, caplog: pytest.LogCaptureFixture) -> None:
    """The others still sell; only if all of them fail it is an error."""

    async def scenario() -> None:
        aws.fault("DescribeInstanceTypes", code="AuthFailure", status=401, where={"region": "eu-west-1"})
        provider = aws.provider(region=("us-east-1", "eu-west-1"))
        found = await provider.skyward_offers(Spec(machine="m7i.large"))
        assert {"us-east-1"} == {offer.region for offer in found}
        assert "eu-west-1 is left out" in caplog.text
        error = await refusal(aws.provider(region="eu-west-1").skyward_offers(Spec(machine="m7i.large")))
        assert isinstance(error, CredentialsError)
        assert "opted into" in str(error)

    run(scenario())


@pytest.mark.parametrize(
    ("spec", "settings", "words"),
    [
        ({"region": "us-east-11"}, {}, ["us-east-11", "us-east-1"]),
        ({}, {"region": "eu-centrl-1"}, ["eu-centrl-1", "eu-central-1"]),
        ({"machine": "g5.xlarg"}, {}, ["g5.xlarg", "us-east-1", "g5.xlarge"]),
    ],
    ids=["region of the spec", "region of the provider", "instance type"],
)
def test_a_wrong_name_is_refused_and_the_nearest_offered(
    aws: Cloud, spec: dict[str, str], settings: dict[str, str], words: list[str]
) -> None:
    """The error has the name, and one that exists."""

    async def scenario() -> None:
        provider = aws.provider(**settings)
        error: object = None
        try:
            await provider.skyward_preflight(Spec(**spec))
            await provider.skyward_offers(Spec(**spec))
        except ConfigError as found:
            error = found
        assert all(word in str(error) for word in words), error

    run(scenario())


def test_no_credentials_says_where_was_looked(aws: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables and files are in the error, and what to type."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    error = run(refusal(aws.provider().skyward_preflight(Spec())))
    assert isinstance(error, CredentialsError)
    for word in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", os.environ["AWS_SHARED_CREDENTIALS_FILE"], "aws configure"):
        assert word in str(error)


def test_a_profile_that_is_not_there_is_named(aws: Cloud) -> None:
    """The error has the profile, and the files it was looked for in."""
    error = run(refusal(aws.provider(profile="work").skyward_preflight(Spec())))
    assert isinstance(error, CredentialsError)
    assert "profile 'work'" in str(error)


def test_wrong_credentials_are_refused_before_anything_else(aws: Cloud) -> None:
    """One call finds out; the secret is in no text."""
    provider = aws.provider(access_key="AKIAWRONG", secret_key="very-secret")
    error = run(refusal(provider.skyward_preflight(Spec())))
    assert isinstance(error, CredentialsError)
    assert "InvalidClientTokenId" in str(error)
    assert ["sts:GetCallerIdentity"] == names(aws)
    assert "very-secret" not in f"{provider!r} {error!r} {error}"


def test_throttled_questions_are_asked_again(aws: Cloud) -> None:
    """A price list that refuses twice for the rate of its calls is asked a third time."""

    async def scenario() -> None:
        aws.fault("GetProducts", code="ThrottlingException", status=400, times=1)
        aws.fault("GetProducts", code="", status=429, times=1, headers={"Retry-After": "1"})
        [offer] = await aws.provider().skyward_offers(Spec(machine="m7i.large"))
        assert on_demand("m7i.large") == offer.on_demand_price
        assert 3 == names(aws).count("pricing:GetProducts")

    run(scenario())
