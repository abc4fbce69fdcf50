"""The settings that all machines of one launch share, and EC2's parameters of a machine."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from skyward.provider import LaunchRequest, first_contact, host_key
from skyward_aws.disks import mount_script
from skyward_aws.instances import FLEET_TAG, Door, label
from skyward_aws.machine_image import RootDisk
from skyward_aws.place import Place
from skyward_aws.tagging import tagged, to_tags
from skyward_aws.user_data import user_data

__all__ = ["Order", "client_token", "machine", "parameters", "tags"]

_TAGGED = ("instance", "volume", "network-interface")


@frozen(kw_only=True)
class Order:
    """
    Hold what all machines of one launch have in common.

    Args:
        request: What core asks for.
        place: Where they are put.
        disk: What they boot from.
        door: How they are reached.
        zones: The zones to try, in order.
        rates: What an hour costs in each zone, in USD.
        profile: Name or ARN of the instance profile that they get.
    """

    request: LaunchRequest
    place: Place
    disk: RootDisk
    door: Door
    zones: tuple[str, ...] = ()
    rates: Mapping[str, float] = field(factory=dict)
    profile: str | None = None


def client_token(order: Order, node: int, zone: str) -> str:
    """
    Name a launch of one machine like no other: the same again rents nothing more.

    Args:
        order: What is rented.
        node: The node it is for.
        zone: Where it is tried.
    """
    request = order.request
    words = (request.token, node, zone, request.spot, request.cluster.offer.instance_type, order.place.group)
    return hashlib.sha256("/".join(map(str, words)).encode()).hexdigest()


def tags(request: LaunchRequest, node: int | None) -> list[dict[str, str]]:
    """
    Return what is written on a machine and all that comes with it.

    Args:
        request: What core asks for.
        node: The node it is for; None if that is not known yet.
    """
    name = f"skyward-{request.cluster.pool_name}"
    if node is None:
        written = {"Name": name, **request.tags.to_strings(), FLEET_TAG: "yes"}
    else:
        written = {"Name": f"{name}-{node}", **request.tags_of(node).to_strings()}
    return to_tags(written)


def machine(order: Order, node: int | None) -> dict[str, Any]:
    """
    Return what is said of a machine, wherever it is put.

    Args:
        order: What is rented.
        node: The node it is for; None for any of those that are rented together.
    """
    request, cluster = order.request, order.request.cluster
    own = host_key(cluster.key, label(request.token, node))
    disks, several = order.place.disks, cluster.spec.nodes.ceiling > 1
    first = [mount_script(disks, read_only=several)] if disks else []
    found: dict[str, Any] = {
        "ImageId": order.disk.image,
        "UserData": user_data(cluster.key.public, own, order.door.user, first_contact(cluster.spec.ttl), first),
        # A shutdown from within has to end the bill.
        "InstanceInitiatedShutdownBehavior": "terminate",
        # Two hops, so that containers reach it.
        "MetadataOptions": {"HttpTokens": "required", "HttpEndpoint": "enabled", "HttpPutResponseHopLimit": 2},
        "BlockDeviceMappings": [
            {
                "DeviceName": order.disk.device,
                "Ebs": {
                    "VolumeSize": max(order.disk.least_gb, round(cluster.spec.disk_gb or 0)),
                    "VolumeType": "gp3",
                    "DeleteOnTermination": True,
                },
            }
        ],
        "NetworkInterfaces": [
            {
                "DeviceIndex": 0,
                "Groups": [order.place.group],
                # A tunnel needs none, and leaves it to the subnet.
                **({} if order.door.tunnel else {"AssociatePublicIpAddress": True}),
                "DeleteOnTermination": True,
            }
        ],
        "TagSpecifications": tagged(_TAGGED, tags(request, node)),
    }
    if order.profile:
        found["IamInstanceProfile"] = {"Arn" if order.profile.startswith("arn:") else "Name": order.profile}
    return found


def parameters(order: Order, node: int, zone: str) -> dict[str, Any]:
    """
    Return the parameters of `RunInstances` for one machine.

    Args:
        order: What is rented.
        node: The node it is for.
        zone: Where it is tried.
    """
    request, said = order.request, machine(order, node)
    said["NetworkInterfaces"][0]["SubnetId"] = order.place.subnets[zone]
    market: dict[str, Any] = {}
    if request.spot:
        once = {"SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"}
        market["InstanceMarketOptions"] = {"MarketType": "spot", "SpotOptions": once}
        said["TagSpecifications"] += tagged(["spot-instances-request"], tags(request, node))
    token, kind = client_token(order, node, zone), request.cluster.offer.instance_type
    return {"ClientToken": token, "MinCount": 1, "MaxCount": 1, "InstanceType": kind, **said, **market}
