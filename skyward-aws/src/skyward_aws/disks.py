"""The disks that the user keeps at AWS: EBS volumes of one zone, attached once a machine runs, and never deleted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from attrs import evolve, frozen

from skyward.provider import (
    CloudDisk,
    ConfigError,
    CredentialsError,
    Instance,
    InstanceState,
    QuotaError,
    SkywardError,
    chosen,
    shell_file,
)
from skyward_aws.failure import code_of
from skyward_aws.instances import alive, tags_of
from skyward_aws.region import Region
from skyward_aws.tagging import tags_in

__all__ = [
    "DEVICES",
    "MULTI_ATTACH",
    "EBSVolume",
    "detach",
    "find_volume",
    "living",
    "mount_script",
    "with_disks",
]

_log = logging.getLogger("skyward.provider.aws")

DEVICES = tuple("fghijklmnop")
"""Letters of the names that AWS recommends for volumes, `/dev/sd[f-p]`: EC2 User Guide, device names, 2026."""

MULTI_ATTACH = 16
"""Machines that have one Multi-Attach volume at most: EBS User Guide, Multi-Attach, 2026."""

BOOT = 120.0
"""Seconds that a machine waits at its boot for its volumes, which are attached once it runs."""

DETACHING = 20.0
"""Seconds that the order to detach may take; the end of a machine detaches as well."""

_USABLE = ("creating", "available", "in-use")
_NOT_YET = ("VolumeInUse", "IncorrectState", "IncorrectInstanceState", "InvalidInstanceID")
_FINAL = (ConfigError, CredentialsError, QuotaError)


@frozen(kw_only=True)
class EBSVolume(CloudDisk):
    """
    Describe a volume, whose place is its zone.

    Args:
        region: The zone's region.
    """

    region: str


async def find_volume(regions: Sequence[Region], wanted: str) -> EBSVolume:
    """
    Look for a volume in regions.

    Args:
        regions: Where.
        wanted: Its id, or what its tag `Name` holds.

    Raises:
        ConfigError: If there is none, there are several of the name, or it is the disk of a pool's machine.
        SkywardError: If AWS refuses.
    """
    key = "volume-id" if wanted.startswith("vol-") else "tag:Name"
    known = await _volumes(regions, {key: [wanted]})
    # Only for the error, which offers the nearest.
    known = known or await _volumes(regions, {})
    volume = chosen([volume for volume, _ in known], wanted, f"AWS in {' and '.join(map(str, regions))}")
    if any(ours for each, ours in known if each.id == volume.id):
        raise ConfigError(
            f"The disk {volume.title} of AWS is that of a pool's machine, which is deleted with it.",
            provider="aws",
            hint="Make a volume of your own: aws ec2 create-volume",
        )
    return volume


async def living(regions: Sequence[Region], machines: Sequence[str]) -> list[str]:
    """
    Return those of a volume's machines that exist: one that ends may still be named as its holder.

    Args:
        regions: Where they may be.
        machines: Their ids.

    Raises:
        SkywardError: If AWS refuses.
    """
    if not machines:
        return []
    found = await asyncio.gather(*(alive(region, machines) for region in regions))
    there = {name for names in found for name in names}
    return [name for name in machines if name in there]


def mount_script(disks: Mapping[str, str], *, read_only: bool, seconds: float = BOOT) -> str:
    """
    Write the shell commands by which a machine mounts its volumes at a boot.

    A blank volume gets a file system, and no other ever does. Several machines mount one only to read: no common file
    system stands two machines that write.

    Args:
        disks: Folders by the volumes' ids, in the order in which they are attached.
        read_only: Whether several machines have them.
        seconds: How long they are waited for.

    >>> "vol0ab:f:/data" in mount_script({"vol-0ab": "/data"}, read_only=False)
    True
    """
    words = (
        f"{volume.replace('-', '')}:{letter}:{where}"
        for letter, (volume, where) in zip(DEVICES, disks.items(), strict=False)
    )
    return shell_file(
        __package__,
        "mount_volumes.sh",
        VOLUMES=" ".join(words),
        SECONDS=f"{seconds:.0f}",
        OPTIONS="ro" if read_only else "noatime",
        MAKE=":" if read_only else shell_file(__package__, "make_filesystem.sh"),
    )


async def with_disks(region: Region, row: Mapping[str, Any], instance: Instance, disks: Sequence[str]) -> Instance:
    """
    Attach volumes to a machine that runs, and return it as pending until it has them; once it had them, as it is.

    Args:
        region: Where it is.
        row: The machine, as `DescribeInstances` describes it.
        instance: The machine, as it was read from that.
        disks: The volumes' ids.
    """
    if not disks or instance.state is not InstanceState.RUNNING or instance.id in region.account.with_disks:
        return instance
    there = {
        each["Ebs"].get("VolumeId"): each["Ebs"].get("Status")
        for each in row.get("BlockDeviceMappings", ())
        if "Ebs" in each
    }
    if all(there.get(disk) == "attached" for disk in disks):
        region.account.with_disks.add(instance.id)
        return instance
    pairs = [(disk, letter) for disk, letter in zip(disks, DEVICES, strict=False) if disk not in there]
    try:
        await asyncio.gather(*(_attach(region, instance.id, disk, letter) for disk, letter in pairs))
    except _FINAL as error:
        reason = f"its disk could not be attached: {error}"
        return evolve(instance, state=InstanceState.ENDING, address=None, reason=reason)
    return evolve(instance, state=InstanceState.PENDING, address=None, doing="disk attachment")


async def detach(region: Region, machines: Sequence[str], disks: Sequence[str]) -> None:
    """
    Order volumes to be detached from machines that are about to end, so that the next pool has them soon.

    What fails is only logged: the end of a machine detaches them as well.

    Args:
        region: Where.
        machines: The machines' ids.
        disks: The volumes' ids.
    """
    order = partial(region.call, "DetachVolume")
    calls = [order(disk, VolumeId=disk, InstanceId=name) for disk in disks for name in machines]
    try:
        async with asyncio.timeout(DETACHING):
            for answer in await asyncio.gather(*calls, return_exceptions=True):
                if isinstance(answer, BaseException):
                    _log.info("aws.not_detached: %s", answer)
    except TimeoutError:
        _log.warning("aws.not_detached: AWS gave no answer within %g s", DETACHING)


async def _attach(region: Region, machine: str, disk: str, letter: str) -> None:
    try:
        await region.call("AttachVolume", disk, VolumeId=disk, InstanceId=machine, Device=f"/dev/sd{letter}")
    except SkywardError as error:
        # The last machine may have it still, this one may have it already, or be too young: the next list tries again.
        if isinstance(error, _FINAL) and not code_of(error).startswith(_NOT_YET):
            raise
        _log.info("aws.not_attached volume=%s instance=%s: %s", disk, machine, error)


async def _volumes(regions: Sequence[Region], where: Mapping[str, Sequence[str]]) -> list[tuple[EBSVolume, bool]]:
    """List volumes, each with whether it is the disk of a machine of ours."""
    asked = {**where, "status": _USABLE}
    found = await asyncio.gather(*(region.pages("DescribeVolumes", "Volumes", asked) for region in regions))
    there = [(region.name, row) for region, rows in zip(regions, found, strict=True) for row in rows]
    return [(_volume(row, region), tags_of(row) is not None) for region, row in there]


def _volume(row: Mapping[str, Any], region: str) -> EBSVolume:
    attached = [each for each in row.get("Attachments", ()) if each.get("State") != "detached"]
    return EBSVolume(
        id=row["VolumeId"],
        name=tags_in(row).get("Name", ""),
        place=row["AvailabilityZone"],
        region=region,
        holders=tuple(str(each.get("InstanceId") or each.get("AssociatedResource", "?")) for each in attached),
        shared=bool(row.get("MultiAttachEnabled")),
        most=MULTI_ATTACH,
    )
