"""Many machines are rented by one call where the account may do so: each for its node, none twice, nothing left."""

from __future__ import annotations

import base64
from typing import Any

import pytest
import yaml

from skyward.errors import CapacityError
from skyward.model.instances.machine import InstanceState, SSHAddress
from tests.clouds.aws.client import client, refusal, run
from tests.clouds.aws.cloud import Cloud
from tests.clouds.aws.test_policy import published

pytestmark = [pytest.mark.clouds, pytest.mark.usefixtures("without_hosts")]

NODES = tuple(range(10))
FLEETS = {"ec2:CreateFleet", "ec2:CreateLaunchTemplate", "ec2:DeleteLaunchTemplate", "ec2:DescribeLaunchTemplates"}


def asked(aws: Cloud, action: str) -> list[dict[str, str]]:
    """Return the parameters of every call of one kind."""
    return [call["params"] for call in aws.calls() if call["name"] == f"ec2:{action}"]


def nodes(aws: Cloud) -> list[int]:
    """Return for which nodes machines are, as their tags say."""
    return sorted(int(row["tags"].get("skyward:node", -1)) for row in aws.alive())


@pytest.mark.parametrize("spot", [True, False], ids=["spot", "on-demand"])
def test_many_machines_are_one_call(aws: Cloud, spot: bool) -> None:
    """Each carries all it has to, is listed for its node, and the template is gone again."""

    async def scenario() -> None:
        async with client(aws.provider(), disk_gb=77) as opened:
            rented = await opened.launch(*NODES, spot=spot)
            assert [*NODES] == [each.node for each in rented]
            assert {spot} == {each.spot for each in rented}
            assert all(each.hourly_rate is not None for each in rented)
            assert [1, 1, 1, 0] == [
                len(asked(aws, action))
                for action in ("CreateLaunchTemplate", "CreateFleet", "DeleteLaunchTemplate", "RunInstances")
            ]
            assert [] == aws.ask("templates")
            [fleet] = asked(aws, "CreateFleet")
            assert "10" == fleet["TargetCapacitySpecification.TotalTargetCapacity"]
            market = "spot" if spot else "on-demand"
            assert market == fleet["TargetCapacitySpecification.DefaultTargetCapacityType"]
            subnets = {text for name, text in fleet.items() if name.endswith(".SubnetId")}
            assert set(opened.infra.subnets.values()) >= subnets
            assert len(subnets) > 1
            assert [*NODES] == nodes(aws)
            for row in aws.alive():
                assert ("terminate", spot) == (row["shutdown"], row["spot"])
                assert row["address"]
                assert (opened.cluster.pool_id, "yes") == (row["tags"]["skyward:pool"], row["tags"]["skyward:fleet"])
                assert row["tags"]["Name"].endswith(f"-{row['tags']['skyward:node']}")
            [said] = asked(aws, "CreateLaunchTemplate")
            assert "77" == said["LaunchTemplateData.BlockDeviceMapping.1.Ebs.VolumeSize"]
            assert "required" == said["LaunchTemplateData.MetadataOptions.HttpTokens"]
            found = await opened.until(lambda each: all(one.state is InstanceState.RUNNING for one in each))
            assert {each.id: each.node for each in rented} == {each.id: each.node for each in found}
            keys = {each.address.host_key for each in found if isinstance(each.address, SSHAddress)}
            data = yaml.safe_load(base64.b64decode(said["LaunchTemplateData.UserData"]))
            assert {data["ssh_keys"]["ed25519_public"].strip()} == keys
            # Another client finds them by their tags alone.
            opened.provider = aws.provider()
            found = await opened.listed()
            assert {each.id: each.node for each in rented} == {each.id: each.node for each in found}
            assert keys == {each.address.host_key for each in found if isinstance(each.address, SSHAddress)}

    run(scenario())


def test_few_machines_are_a_call_each(aws: Cloud) -> None:
    """Eight are asked for at once anyway, and have a host key each."""

    async def scenario() -> None:
        async with client(aws.provider()) as opened:
            await opened.launch(*range(8))
            assert ([], 8) == (asked(aws, "CreateFleet"), len(asked(aws, "RunInstances")))
            found = await opened.until(lambda each: all(one.address is not None for one in each))
            assert 8 == len({each.address.host_key for each in found if isinstance(each.address, SSHAddress)})

    run(scenario())


def test_zones_without_capacity_are_passed_over(aws: Cloud) -> None:
    """The fleet takes the next; missing machines are launched one by one, and reported as usual."""

    async def scenario() -> None:
        async with client(aws.provider()) as opened:
            zone = min(opened.infra.subnets)
            none_left: dict[str, Any] = {"code": "InsufficientInstanceCapacity", "status": 500}
            aws.fault("RunInstances", **none_left, where={"zone": zone})
            assert 10 == len(await opened.launch(*NODES))
            assert zone not in {row["zone"] for row in aws.alive()}
            assert [] == asked(aws, "RunInstances")
            aws.fault("RunInstances", **none_left)
            error = await refusal(opened.launch(*NODES))
            assert isinstance(error, CapacityError)
            assert "InsufficientInstanceCapacity in us-east-1" in str(error)
            assert 10 == len(aws.alive())
            assert [] == aws.ask("templates")

    run(scenario())


@pytest.mark.parametrize("missing", sorted(FLEETS))
def test_without_the_permission_each_is_a_call(aws: Cloud, missing: str) -> None:
    """Ten machines are rented all the same, none twice."""

    async def scenario() -> None:
        async with client(aws.provider()) as opened:
            aws.allow(sorted(published() - {missing}))
            rented = await opened.launch(*NODES)
            assert 10 == len(rented)
            assert [*NODES] == nodes(aws)
            by_itself = missing in ("ec2:CreateFleet", "ec2:CreateLaunchTemplate")
            assert (10 if by_itself else 0) == len(asked(aws, "RunInstances"))
            await opened.provider.skyward_end(rented)
            assert [] == aws.alive()

    run(scenario())


@pytest.mark.parametrize("times", [1, 3])
def test_an_answer_that_is_lost_costs_no_second_machine(aws: Cloud, times: int) -> None:
    """The call is sent again with its token; where no answer comes at all, its machines are found by their tags."""

    async def scenario() -> None:
        async with client(aws.provider()) as opened:
            aws.fault("CreateFleet", "cut", times=times)
            rented = await opened.launch(*NODES)
            assert {each.id for each in rented} == {row["id"] for row in aws.alive()}
            assert [*NODES] == nodes(aws)
            assert 1 == len({params["ClientToken"] for params in asked(aws, "CreateFleet")})

    run(scenario())


def test_what_a_dead_client_rented_is_taken_over(aws: Cloud) -> None:
    """Machines that bear no node are given to the nodes of the same request; its template is deleted when it is old."""

    async def scenario() -> None:
        async with client(aws.provider()) as opened:
            aws.fault("CreateTags", code="UnauthorizedOperation", status=403, times=10)
            aws.fault("DeleteLaunchTemplate", code="InternalError", status=400)
            first = await opened.launch(*NODES, token="one")
            assert {-1} == set(nodes(aws))
            opened.provider = aws.provider()
            again = await opened.launch(*NODES, token="one")
            assert {each.id for each in first} == {each.id for each in again} == {row["id"] for row in aws.alive()}
            assert [*NODES] == nodes(aws)
            assert 1 == len(aws.ask("templates"))

    run(scenario())


def test_a_template_that_was_left_behind_goes_with_the_machines(aws: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any client that terminates machines deletes it, once it is too old to be in use."""

    async def scenario() -> None:
        async with client(aws.provider()) as opened:
            aws.fault("DeleteLaunchTemplate", code="UnauthorizedOperation", status=403, times=1)
            await opened.provider.skyward_end(await opened.launch(*NODES))
            assert [] == aws.alive()
            assert 1 == len(aws.ask("templates"))
            monkeypatch.setattr("skyward_aws.fleet.STALE", 0.0)
            await opened.provider.skyward_end(await opened.launch(0))
            assert [] == aws.ask("templates")

    run(scenario())
