"""Where in a region machines are put: network, subnets, and the group that says who reaches them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import field, frozen

from skyward.provider import ConfigError
from skyward_aws.account import Account
from skyward_aws.failure import unless

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
    account: Account,
    region: str,
    *,
    vpc: str | None,
    subnet: str | None,
    group: str | None,
    port: int | None,
) -> Place:
    """
    Find the network, and make the group where it is missing.

    Args:
        account: Who asks.
        region: Where.
        vpc: The network; None for the subnet's, or the default one.
        subnet: The only subnet; None for one in each zone.
        group: A group that is there; None for our own.
        port: The port to let in; None for no port.

    Raises:
        ConfigError: If the network is not there.
    """
    network, subnets = await _network(account, region, vpc, subnet)
    name = group or await open_group(account, region, network, port)
    return Place(region=region, vpc=network, subnets=subnets, group=name, own_group=group is None, port=port)


async def open_group(account: Account, region: str, vpc: str, port: int | None) -> str:
    """
    Return the id of our group in a network, made and opened as far as it is not.

    Several clients may do so at the same time; a client that died halfway is made up for.

    Args:
        account: Who asks.
        region: Where.
        vpc: The network.
        port: The port to let in; None for no port.
    """
    name = CLOSED_GROUP if port is None else GROUP
    wanted = [{"Name": "vpc-id", "Values": [vpc]}, {"Name": "group-name", "Values": [name]}]
    groups = await account.pages("ec2", region, "DescribeSecurityGroups", "SecurityGroups", Filters=wanted)
    if groups:
        group, rules = groups[0]["GroupId"], groups[0].get("IpPermissions", ())
    else:
        group, rules = await _make_group(account, region, vpc, name), ()
        if group is None:
            return await open_group(account, region, vpc, port)
    for rule in missing_rules(group, rules, port):
        opens = account.call("ec2", region, "AuthorizeSecurityGroupIngress", GroupId=group, IpPermissions=[rule])
        await unless(opens, "InvalidPermission.Duplicate")
    return str(group)


async def close_groups(account: Account, region: str) -> None:
    """
    Remove our groups in all networks of a region, unless another machine is in them.

    Args:
        account: Who asks.
        region: Where.
    """
    named = [{"Name": "group-name", "Values": [GROUP, CLOSED_GROUP]}]
    for row in await account.pages("ec2", region, "DescribeSecurityGroups", "SecurityGroups", Filters=named):
        await close_group(account, region, row["GroupId"])


async def close_group(account: Account, region: str, group: str) -> None:
    """
    Remove our group, unless a machine of another pool is in it.

    Args:
        account: Who asks.
        region: Where.
        group: Its id.
    """
    # EC2 counts machines for minutes after their end; a group that stays is used again, and costs nothing.
    stays = ("DependencyViolation", "InvalidGroup.NotFound", "InvalidGroup.InUse")
    await unless(account.call("ec2", region, "DeleteSecurityGroup", group, GroupId=group), *stays)


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


async def _make_group(account: Account, region: str, vpc: str, name: str) -> str | None:
    """Make our group; None if another client was quicker."""
    made = await unless(
        account.call(
            "ec2",
            region,
            "CreateSecurityGroup",
            GroupName=name,
            VpcId=vpc,
            Description="Machines of Skyward",
            TagSpecifications=[{"ResourceType": "security-group", "Tags": [{"Key": "skyward", "Value": "group"}]}],
        ),
        "InvalidGroup.Duplicate",
    )
    return None if made is None else str(made["GroupId"])


async def _network(account: Account, region: str, vpc: str | None, subnet: str | None) -> tuple[str, dict[str, str]]:
    if subnet is not None:
        answer = await account.call("ec2", region, "DescribeSubnets", subnet, SubnetIds=[subnet])
        row = answer["Subnets"][0]
        return row["VpcId"], {row["AvailabilityZone"]: subnet}
    if vpc is None:
        default = [{"Name": "is-default", "Values": ["true"]}]
        vpcs = await account.pages("ec2", region, "DescribeVpcs", "Vpcs", Filters=default)
        if not vpcs:
            raise ConfigError(
                f"The account has no default network in {region}.",
                provider="aws",
                hint="Name one: sky.AWS(subnet=...) or sky.AWS(vpc=...), or type: aws ec2 create-default-vpc",
            )
        vpc = str(vpcs[0]["VpcId"])
    rows = await account.pages(
        "ec2", region, "DescribeSubnets", "Subnets", Filters=[{"Name": "vpc-id", "Values": [vpc]}]
    )
    # A network may have several in a zone: those that give public addresses first.
    rows.sort(key=lambda row: (row.get("MapPublicIpOnLaunch", False), row.get("AvailableIpAddressCount", 0)))
    if not rows:
        raise ConfigError(f"The network {vpc} in {region} has no subnet.", provider="aws", hint="Name another vpc=.")
    return vpc, {row["AvailabilityZone"]: row["SubnetId"] for row in rows}
