"""Where in a region machines are put: network, subnets, and the group that says who reaches them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import field, frozen

from skyward.provider import ConfigError, unless
from skyward_aws.failure import coded
from skyward_aws.region import Region
from skyward_aws.tagging import tagged, to_tags

__all__ = ["GROUP", "Place", "close_group", "close_groups", "find_place", "missing_rules", "open_group"]

GROUP = "skyward"
"""Name of the group that all pools of an account share in a network; an idle one costs nothing."""

CLOSED_GROUP = "skyward-closed"
"""Name of the one for machines that are reached through a tunnel."""

_ANYWHERE = "0.0.0.0/0"


def _copy(value: Mapping[str, str]) -> dict[str, str]:
    """Return a mapping as a copy."""
    return dict(value)


@frozen(kw_only=True)
class Place:
    """
    Say where a pool's machines are put.

    Args:
        region: The region.
        vpc: The network.
        subnets: The subnet of each zone.
        group: The security group.
        own_group: Whether the group is ours to change and to remove.
        port: The port that it lets in; None for no port.
        disks: Folders of the user's disks by their ids, in the order in which they are attached.
    """

    region: str
    vpc: str
    subnets: Mapping[str, str] = field(converter=_copy)
    group: str
    own_group: bool
    port: int | None
    disks: Mapping[str, str] = field(factory=dict, converter=_copy)


async def find_place(
    region: Region, *, vpc: str | None, subnet: str | None, group: str | None, port: int | None
) -> Place:
    """
    Find the network, and make the group where it is missing.

    Args:
        region: Where.
        vpc: The network; None for the subnet's, or the default one.
        subnet: The only subnet; None for one in each zone.
        group: A group that is there; None for our own.
        port: The port to let in; None for no port.

    Raises:
        ConfigError: If the network is not there.
    """
    network, subnets = await _network(region, vpc, subnet)
    name = group or await open_group(region, network, port)
    return Place(region=region.name, vpc=network, subnets=subnets, group=name, own_group=group is None, port=port)


async def open_group(region: Region, vpc: str, port: int | None) -> str:
    """
    Return the id of our group in a network, made and opened as far as it is not.

    Several clients may do so at the same time; a client that died halfway is made up for.

    Args:
        region: Where.
        vpc: The network.
        port: The port to let in; None for no port.
    """
    name = CLOSED_GROUP if port is None else GROUP
    groups = await _groups(region, {"vpc-id": [vpc], "group-name": [name]})
    if groups:
        group, rules = groups[0]["GroupId"], groups[0].get("IpPermissions", ())
    else:
        group, rules = await _make_group(region, vpc, name), ()
        if group is None:
            return await open_group(region, vpc, port)
    for rule in missing_rules(group, rules, port):
        opens = region.call("AuthorizeSecurityGroupIngress", GroupId=group, IpPermissions=[rule])
        await unless(coded("InvalidPermission.Duplicate"), opens)
    return str(group)


async def close_groups(region: Region) -> None:
    """
    Remove our groups in all networks of a region, unless another machine is in them.

    Args:
        region: Where.
    """
    for row in await _groups(region, {"group-name": [GROUP, CLOSED_GROUP]}):
        await close_group(region, row["GroupId"])


async def close_group(region: Region, group: str) -> None:
    """
    Remove our group, unless a machine of another pool is in it.

    Args:
        region: Where.
        group: Its id.
    """
    # EC2 counts machines for minutes after their end; a group that stays is used again, and costs nothing.
    stays = coded("DependencyViolation", "InvalidGroup.NotFound", "InvalidGroup.InUse")
    await unless(stays, region.call("DeleteSecurityGroup", group, GroupId=group))


def missing_rules(group: str, present: Sequence[Mapping[str, Any]], port: int | None) -> list[dict[str, Any]]:
    """
    Return the rules that a group lacks: SSH from anywhere, and everything between its own machines.

    Args:
        group: Its id.
        present: The rules that it has.
        port: The port of SSH; None for no port.

    >>> [rule["IpProtocol"] for rule in missing_rules("sg-1", [], 22)]
    ['tcp', '-1']
    """
    rules = []
    if port is not None and not any(_lets_in(rule, port) for rule in present):
        ranges = [{"CidrIp": _ANYWHERE, "Description": "SSH, by key only"}]
        rules.append({"IpProtocol": "tcp", "FromPort": port, "ToPort": port, "IpRanges": ranges})
    between = (pair["GroupId"] for rule in present if rule["IpProtocol"] == "-1" for pair in rule["UserIdGroupPairs"])
    if group not in between:
        rules.append({"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]})
    return rules


def _lets_in(rule: Mapping[str, Any], port: int) -> bool:
    anywhere = any(each["CidrIp"] == _ANYWHERE for each in rule.get("IpRanges", ()))
    return anywhere and rule["IpProtocol"] == "tcp" and rule["FromPort"] <= port <= rule["ToPort"]


async def _groups(region: Region, where: Mapping[str, Sequence[str]]) -> list[Any]:
    return await region.pages("DescribeSecurityGroups", "SecurityGroups", where)


async def _make_group(region: Region, vpc: str, name: str) -> str | None:
    """Make our group; None if another client was quicker."""
    create = region.call(
        "CreateSecurityGroup",
        GroupName=name,
        VpcId=vpc,
        Description="Machines of Skyward",
        TagSpecifications=tagged(["security-group"], to_tags({"skyward": "group"})),
    )
    made = await unless(coded("InvalidGroup.Duplicate"), create)
    return None if made is None else str(made["GroupId"])


async def _network(region: Region, vpc: str | None, subnet: str | None) -> tuple[str, dict[str, str]]:
    if subnet is not None:
        answer = await region.call("DescribeSubnets", subnet, SubnetIds=[subnet])
        row = answer["Subnets"][0]
        return row["VpcId"], {row["AvailabilityZone"]: subnet}
    if vpc is None:
        vpcs = await region.pages("DescribeVpcs", "Vpcs", {"is-default": ["true"]})
        if not vpcs:
            raise ConfigError(
                f"The account has no default network in {region}.",
                provider="aws",
                hint="Name one: sky.AWS(subnet=...) or sky.AWS(vpc=...), or type: aws ec2 create-default-vpc",
            )
        vpc = str(vpcs[0]["VpcId"])
    rows = await region.pages("DescribeSubnets", "Subnets", {"vpc-id": [vpc]})
    # A network may have several in a zone: those that give public addresses first.
    rows.sort(key=lambda row: (row.get("MapPublicIpOnLaunch", False), row.get("AvailableIpAddressCount", 0)))
    if not rows:
        raise ConfigError(f"The network {vpc} in {region} has no subnet.", provider="aws", hint="Name another vpc=.")
    return vpc, {row["AvailabilityZone"]: row["SubnetId"] for row in rows}
