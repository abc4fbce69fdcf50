"""Machine images of our own: made of a machine, found by what they hold and what they were made on, deleted."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from attrs import frozen

from skyward.provider import MachineImage, SkywardError
from skyward_aws.account import Account
from skyward_aws.disks import DEVICES
from skyward_aws.failure import code_of
from skyward_aws.region import Region
from skyward_aws.tagging import tagged, tags_in, to_tags

__all__ = ["Base", "create_image", "delete_image", "delete_images", "described", "images"]

GB_MONTH = 0.05
"""USD for which a GB of a snapshot is kept for a month, in most regions; a snapshot has only what is in use."""

_TAG = "skyward:image"
_STATES = {"available": "ready", "pending": "pending", "transient": "pending"}
_GONE = ("deregistered", "disabled")


@frozen(kw_only=True)
class Base:
    """
    Say what machines boot from without an image of ours, and who logs in there: what ours was made on.

    Architecture and drivers follow from it.

    Args:
        image: The public parameter that names it, or its id.
        user: Who logs in.
    """

    image: str
    user: str

    def name(self, content_hash: str) -> str:
        """
        Name an image of ours on this base; AWS lets an account have a name once in a region.

        Args:
            content_hash: What it holds.

        >>> Base(image="ami-1", user="ubuntu").name("4f1e")
        'skyward-4f1e-93446ef4'
        """
        return f"skyward-{content_hash}-{hashlib.sha256(f'{self.image} {self.user}'.encode()).hexdigest()[:8]}"

    @property
    def tags(self) -> dict[str, str]:
        """Return what is written on images of ours on this base."""
        return {"skyward:base": self.image, "skyward:user": self.user}


async def create_image(region: Region, instance: str, content_hash: str, base: Base, disks: int = 0) -> MachineImage:
    """
    Make an image of a machine, which goes on running meanwhile.

    What has to be in it should be on disk already: nothing waits for what is still in memory.

    Args:
        region: Where.
        instance: The machine's id.
        content_hash: What the machine was made to hold.
        base: What it booted from.
        disks: How many disks of the user's it has, which are not part of the image.

    Returns:
        The image; where there is one of that name already, or one is being made, that one.

    Raises:
        SkywardError: If there will be none.
    """
    name = base.name(content_hash)
    tags = to_tags({"Name": name, _TAG: content_hash, **base.tags})
    without = [{"DeviceName": f"/dev/sd{letter}", "NoDevice": ""} for letter in DEVICES[:disks]]
    try:
        made = await region.call(
            "CreateImage",
            instance,
            InstanceId=instance,
            Name=name,
            NoReboot=True,
            BlockDeviceMappings=without,
            TagSpecifications=tagged(("image", "snapshot"), tags),
        )
    except SkywardError as error:
        # Another pool was quicker, or our own call was, whose answer was lost.
        if code_of(error) != "InvalidAMIName.Duplicate":
            raise
        found = [image for image in await images(region, base) if image.content_hash == content_hash]
        if not found:
            raise
        return found[0]
    return MachineImage(
        id=str(made["ImageId"]), provider="aws", content_hash=content_hash, state="pending", region=region.name
    )


async def images(region: Region, base: Base | None = None) -> list[MachineImage]:
    """
    List our own images of a region, whatever their state.

    Args:
        region: Where.
        base: Only those that were made on this; None for all.
    """
    wanted = {_TAG: "*", **(base.tags if base is not None else {})}
    where = {f"tag:{key}": [value] for key, value in wanted.items()}
    rows = await region.pages("DescribeImages", "Images", where, Owners=["self"])
    return [described(row, region.name) for row in rows if row.get("State") not in _GONE]


def described(row: Mapping[str, Any], region: str) -> MachineImage:
    """
    Describe an image.

    Args:
        row: The image, as `DescribeImages` describes it.
        region: Where it is.

    >>> image = described({"ImageId": "ami-1", "State": "available", "CreationDate": "2026-01-02T03:04:05.000Z",
    ...                    "Tags": [{"Key": "skyward:image", "Value": "4f1e"}],
    ...                    "BlockDeviceMappings": [{"Ebs": {"VolumeSize": 30}}]}, "us-east-1")
    >>> image.content_hash, image.state, image.made_at, image.monthly_cost
    ('4f1e', 'ready', 1767323045.0, 1.5)
    """
    size = sum(float(disk.get("Ebs", {}).get("VolumeSize", 0)) for disk in row.get("BlockDeviceMappings", ()))
    made = row.get("CreationDate")
    return MachineImage(
        id=row["ImageId"],
        provider="aws",
        content_hash=tags_in(row).get(_TAG) or "?",
        state=_STATES.get(row.get("State", ""), "failed"),
        region=region,
        architecture=row.get("Architecture"),
        made_at=datetime.fromisoformat(made).timestamp() if made else None,
        size_gb=size or None,
        monthly_cost=round(size * GB_MONTH, 2) if size else None,
    )


async def delete_images(account: Account, given: Iterable[MachineImage]) -> None:
    """
    Delete images of ours, wherever they are, with their snapshots.

    Args:
        account: Who asks.
        given: The images; one that is gone already is no error.

    Raises:
        SkywardError: If one may go on costing money.
    """
    await asyncio.gather(*(delete_image(Region(account, each.region), each.id) for each in given if each.region))


async def delete_image(region: Region, image: str) -> None:
    """
    Delete an image of ours with its snapshots, which cost money and would stay.

    Args:
        region: Where.
        image: Its id; one that is gone already is no error.
    """
    for row in await region.pages("DescribeImages", "Images", {"image-id": [image]}):
        await region.call("DeregisterImage", image, ImageId=image)
        for disk in row.get("BlockDeviceMappings", ()):
            if snapshot := disk.get("Ebs", {}).get("SnapshotId"):
                await region.call("DeleteSnapshot", f"{snapshot} of {image}", SnapshotId=snapshot)
