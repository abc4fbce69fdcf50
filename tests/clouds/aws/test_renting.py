"""Machines are rented once, where there are any, with all that has to be on them; and ended for good."""

from __future__ import annotations

import time

import pytest

from skyward.errors import CapacityError, CredentialsError, QuotaError
from skyward.model.instances.machine import InstanceState, SSHAddress
from tests.clouds.aws.client import client, in_real_time, refusal, run
from tests.clouds.aws.cloud import Cloud
from tests.waiting import until

pytestmark = [pytest.mark.clouds, pytest.mark.usefixtures("without_hosts")]


def launches(aws: Cloud) -> list[dict[str, str]]:
    """Return the parameters of every launch that was asked for."""
    return [call["params"] for call in aws.calls() if call["name"] == "ec2:RunInstances"]


def tagged(params: dict[str, str], kind: str) -> dict[str, str]:
    """Return the tags that a launch puts on one kind of thing."""
    numbers = (name.split(".")[1] for name, text in params.items() if name.endswith(".ResourceType") and text == kind)
    front = f"TagSpecification.{next(numbers)}.Tag."
    pairs = {name.removeprefix(front): text for name, text in params.items() if name.startswith(front)}
    return {text: pairs[f"{name.partition('.')[0]}.Value"] for name, text in pairs.items() if name.endswith(".Key")}


def test_a_spot_machine_carries_all_it_has_to(aws: Cloud) -> None:
    """What is asked for in the launch call ends the bill, tells whose it is, and lets in only us."""

    async def scenario() -> None:
        async with client(aws.provider(), disk_gb=77) as opened:
            [instance] = await opened.launch(3, spot=True)
            [params] = launches(aws)
            pool = opened.cluster.pool_id
            for kind in ("instance", "volume", "network-interface", "spot-instances-request"):
                tags = tagged(params, kind)
                assert (pool, "3") == (tags["skyward:pool"], tags["skyward:node"])
            assert "terminate" == params["InstanceInitiatedShutdownBehavior"]
            assert "spot" == params["InstanceMarketOptions.MarketType"]
            assert "one-time" == params["InstanceMarketOptions.SpotOptions.SpotInstanceType"]
            assert "InstanceMarketOptions.SpotOptions.MaxPrice" not in params
            assert ("required", "2") == (
                params["MetadataOptions.HttpTokens"],
                params["MetadataOptions.HttpPutResponseHopLimit"],
            )
            disk = {name: text for name, text in params.items() if name.startswith("BlockDeviceMapping.1.")}
            assert "77" == disk["BlockDeviceMapping.1.Ebs.VolumeSize"]
            assert "gp3" == disk["BlockDeviceMapping.1.Ebs.VolumeType"]
            assert "true" == params["NetworkInterface.1.AssociatePublicIpAddress"]
            assert (True, 3) == (instance.spot, instance.node)
            assert instance.tags is not None
            assert pool == instance.tags.pool_id
            # The last zone of the region has the lowest price.
            assert 0.028 == instance.hourly_rate
            assert 0.08 == instance.on_demand_rate
            [runs] = await opened.until(lambda found: found[0].state is InstanceState.RUNNING)
            assert isinstance(runs.address, SSHAddress)
            assert runs.address.host_key
            assert instance.hourly_rate == runs.hourly_rate

    run(scenario())


def test_an_answer_that_is_lost_costs_no_second_machine(aws: Cloud) -> None:
    """The connection breaks after the machine was made; the call is sent again and finds it."""

    async def scenario() -> None:
        async with client(aws.provider()) as opened:
            aws.fault("RunInstances", "cut", times=2)
            [instance] = await opened.launch()
            assert [instance.id] == [row["id"] for row in aws.alive()]
            assert 3 == len(launches(aws))
            assert 1 == len({params["ClientToken"] for params in launches(aws)})

    run(scenario())


def test_a_zone_without_capacity_is_passed_over(aws: Cloud) -> None:
    """The next zone is tried, and a zone that has none left is not asked again by the other nodes."""

    async def scenario() -> None:
        async with client(aws.provider()) as opened:
            zone = min(opened.infra.subnets)
            none_left = {"code": "InsufficientInstanceCapacity", "status": 500, "where": {"zone": zone}}
            aws.fault("RunInstances", **none_left)
            found = await opened.launch(0, 1, 2)
            assert 3 == len(found)
            assert zone not in {row["zone"] for row in aws.alive()}

    run(scenario())


def test_no_capacity_anywhere_lists_what_was_tried(aws: Cloud) -> None:
    """Every zone and its answer are in the error, each asked once although the status is 500."""

    async def scenario() -> None:
        async with client(aws.provider()) as opened:
            aws.fault("RunInstances", code="InsufficientInstanceCapacity", status=500)
            error = await refusal(opened.launch(spot=True))
            assert isinstance(error, CapacityError)
            asked = [params["NetworkInterface.1.SubnetId"] for params in launches(aws)]
            assert len(set(asked)) == len(asked)
            zones = [zone for zone, subnet in opened.infra.subnets.items() if subnet in asked]
            first = str(error).splitlines()[0]
            assert "left in us-east-1: InsufficientInstanceCapacity in us-east-1" in first
            assert all(zone in first for zone in zones)
            assert "m7i.large (spot)" in str(error)
            assert [] == aws.alive()

    run(scenario())


def test_quota_is_told_as_such(aws: Cloud) -> None:
    """The error names code, type and place, and what to do; no other zone is asked."""

    async def scenario() -> None:
        async with client(aws.provider()) as opened:
            aws.fault("RunInstances", code="MaxSpotInstanceCountExceeded", message="Max spot instance count exceeded")
            error = await refusal(opened.launch(spot=True))
            assert isinstance(error, QuotaError)
            for word in ("MaxSpotInstanceCountExceeded", "m7i.large", "us-east-1", "Service Quotas"):
                assert word in str(error)
            assert 1 == len(launches(aws))

    run(scenario())


def test_a_throttled_launch_is_sent_again_with_its_token(aws: Cloud) -> None:
    """Two refusals for their rate, then a machine; all three calls bear one token."""

    async def scenario() -> None:
        async with client(aws.provider()) as opened:
            aws.fault("RunInstances", code="RequestLimitExceeded", status=503, times=1)
            aws.fault("RunInstances", code="TooManyRequests", status=429, times=1, headers={"Retry-After": "1"})
            began = time.monotonic()
            await opened.launch()
            assert time.monotonic() - began >= 1.0
            assert 3 == len(launches(aws))
            assert 1 == len({params["ClientToken"] for params in launches(aws)})

    in_real_time(scenario())


def test_a_missing_permission_is_named(aws: Cloud) -> None:
    """The error is one of credentials, and names the permission."""

    async def scenario() -> None:
        async with client(aws.provider()) as opened:
            aws.fault("RunInstances", code="UnauthorizedOperation", status=403, times=1)
            error = await refusal(opened.launch())
            assert isinstance(error, CredentialsError)
            assert "ec2:RunInstances" in str(error)

    run(scenario())


def test_pools_share_a_group_and_the_last_takes_it_along(aws: Cloud) -> None:
    """Two pools open at once make one group; it stays while one of them has a machine, and is made anew if it went."""

    async def scenario() -> None:
        first, second = aws.provider(), aws.provider()
        async with client(first) as one:
            await one.launch()
            async with client(second) as other:
                assert one.infra.group == other.infra.group
            assert 1 == aws.groups().count("skyward")
            await one.end()
            until(lambda: all(row["state"] == "terminated" for row in aws.instances()))
        assert "skyward" not in aws.groups()
        async with client(first) as one:
            await second.skyward_release(one.infra)
            assert "skyward" not in aws.groups()
            await one.launch()
            assert "skyward" in aws.groups()

    run(scenario())


def test_whoever_asks_finds_every_machine_of_ours_and_can_end_it(aws: Cloud) -> None:
    """A client that knows nothing lists machines of all regions by tag alone, and ends them."""

    async def scenario() -> None:
        async with client(aws.provider()) as here, client(aws.provider(region="eu-central-1")) as there:
            rented = [*await here.launch(), *await there.launch()]
            stranger = aws.provider()
            found = await stranger.skyward_owned()
            assert {(each.id, each.region) for each in rented} == {(each.id, each.region) for each in found}
            assert {here.cluster.pool_id, there.cluster.pool_id} == {each.tags.pool_id for each in found}
            await stranger.skyward_end(found)
            assert [] == aws.alive()
            assert [] == list(await stranger.skyward_owned())

    run(scenario())
