"""The block storage of the account: each volume is for one droplet of its region, which sees a disk by its name."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from skyward.provider import Volume, chosen, listed, mount_disk, optional, shell_file, text, whole
from skyward_digitalocean.account import Account

__all__ = ["PATH", "find_volume", "living", "mount_script"]

PATH = "/v2/volumes"


async def find_volume(account: Account, wanted: str) -> Volume:
    """
    Look for a volume.

    Args:
        account: Who asks.
        wanted: Its id or name.

    Raises:
        ConfigError: If there is none, or there are several of the name.
        SkywardError: If DigitalOcean refuses.
    """
    rows = await account.pages(PATH, "volumes")
    known = account.api.understood(rows, lambda rows: [_volume(row) for row in rows], f"GET {PATH}")
    return chosen(known, wanted, "DigitalOcean")


async def living(account: Account, droplets: Sequence[str]) -> list[str]:
    """
    Return those of a volume's droplets that exist: one that was deleted a moment ago may still be named as its holder.

    Args:
        account: Who asks.
        droplets: Their ids.

    Raises:
        SkywardError: If DigitalOcean refuses.
    """
    rows = [(name, await account.api.get(f"/v2/droplets/{name}", also=(404,))) for name in droplets]
    return [name for name, row in rows if row is not None]


def mount_script(volume: Volume, where: str) -> str:
    """
    Write the shell commands by which a droplet mounts a volume, or its first partition, if either holds a filesystem.

    Args:
        volume: The volume.
        where: The directory.

    >>> "scsi-0DO_Volume_data-part1" in mount_script(Volume(id="v1", name="data", place="nyc3"), "/data")
    True
    """
    disk = shlex.quote(f"/dev/disk/by-id/scsi-0DO_Volume_{volume.name}")
    return mount_disk(shell_file(__package__, "find_volume.sh", DISK=disk), where)


def _volume(row: Any) -> Volume:
    holders = optional(row, "droplet_ids", listed) or []
    return Volume(
        id=text(row, "id"),
        name=text(row, "name"),
        place=text(row, "region.slug"),
        holders=tuple(str(whole({"id": each}, "id")) for each in holders),
    )
