"""The image that machines of a type boot from when there is none of our own, and the disk that goes with it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import frozen

from skyward.provider import ConfigError
from skyward_aws.region import Region

if TYPE_CHECKING:
    from skyward.provider import Offer

__all__ = ["RootDisk", "find_image", "parameter", "root_disk"]

UBUNTU = "/aws/service/canonical/ubuntu/server/24.04/stable/current/{architecture}/hvm/ebs-gp3/ami-id"
NVIDIA = "/aws/service/deeplearning/ami/{architecture}/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id"
NEURON = "/aws/service/neuron/dlami/multi-framework/ubuntu-22.04/latest/image_id"

_HOLDS = 3600.0
_LEAST_GB = 30
_OLD = ("p2.", "p3.", "p3dn.", "g3.", "g3s.")
"""Types whose cards are older than the driver in NVIDIA's image."""


@frozen(kw_only=True)
class RootDisk:
    """
    Say which disk an image boots from.

    Args:
        image: The image.
        device: Name of the disk.
        least_gb: The smallest it may be, in GB.
    """

    image: str
    device: str
    least_gb: int


def parameter(offer: Offer) -> str:
    """
    Name the public parameter that holds the image for a type.

    Args:
        offer: The type.

    Raises:
        ConfigError: If none of them has its driver.

    >>> from skyward.model.instances.offer import Offer
    >>> parameter(Offer(provider="aws", instance_type="m7g.large", architecture="arm64")).split("/")[9]
    'arm64'
    """
    architecture = offer.architecture or "x86_64"
    if offer.instance_type.startswith(_OLD):
        raise ConfigError(
            f"No public image of AWS has a driver for the {offer.accelerator_name} of {offer.instance_type}.",
            provider="aws",
            hint="Name an image that has: sky.AWS(ami=...).",
        )
    if offer.instance_type.startswith(("trn", "inf")):
        return NEURON
    if offer.accelerator_name and offer.instance_type.startswith(("g", "p")) and "Radeon" not in offer.accelerator_name:
        return NVIDIA.format(architecture=architecture)
    return UBUNTU.format(architecture="amd64" if architecture == "x86_64" else architecture)


async def find_image(region: Region, offer: Offer, ami: str | None) -> RootDisk:
    """
    Find the image for a type, and the disk that it boots from.

    Args:
        region: Where.
        offer: The type.
        ami: The image that the user names; None for a public one.
    """
    if ami is None:
        name = parameter(offer)
        ask = partial(region.call, "GetParameter", name, service="ssm", Name=name)
        ami = str((await region.kept(("image", name), _HOLDS, ask))["Parameter"]["Value"])
    describe = partial(region.call, "DescribeImages", ami, ImageIds=[ami])
    answer = await region.kept(("disk", ami), _HOLDS, describe)
    if not answer["Images"]:
        raise ConfigError(f"There is no image {ami} in {region}.", provider="aws", hint="Images are of one region.")
    return root_disk(answer["Images"][0])


def root_disk(row: Mapping[str, Any]) -> RootDisk:
    """
    Read which disk an image boots from.

    Args:
        row: The image, as `DescribeImages` describes it.

    >>> root_disk({"ImageId": "ami-1", "RootDeviceName": "/dev/sda1", "BlockDeviceMappings": []}).device
    '/dev/sda1'
    """
    device = row.get("RootDeviceName") or "/dev/sda1"
    disks = [each.get("Ebs", {}) for each in row.get("BlockDeviceMappings", ()) if each.get("DeviceName") == device]
    least = max((int(disk.get("VolumeSize", 0)) for disk in disks), default=0)
    return RootDisk(image=row["ImageId"], device=device, least_gb=max(least, _LEAST_GB))
