"""Disks that the user keeps at a cloud: which one is meant, whether a pool can have it, and how nodes mount it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Sequence
from difflib import get_close_matches
from math import ceil
from typing import TypeVar

from attrs import frozen

from skyward.errors import ConfigError
from skyward.model.spec.mount_folder import in_the_way
from skyward.model.spec.volumes import Disk, Volume, VolumeLike
from skyward.shell_files import shell_file

__all__ = [
    "CloudDisk",
    "SomeDisk",
    "buckets_of",
    "check_attachable",
    "check_disk",
    "check_together",
    "chosen",
    "disk_folder",
    "disks_of",
    "mount_disk",
    "mount_share",
    "unmount_disks",
]

DISK_SECONDS = 60.0
"""Seconds that a machine waits at its boot for its disk, which clouds attach a moment after they made the machine."""

IN_USE = 10.0
"""Seconds for which it is tried to unmount a disk that is in use."""

_LISTED = 12
_STEP = re.compile(r"[\w.+-]+", re.ASCII)
_USUAL = 'Write sky.Disk("NAME", mount="/data").'


@frozen(kw_only=True)
class CloudDisk:
    """
    Describe a disk that a cloud keeps for the user.

    Args:
        id: Its id.
        name: Its name, which another one may have as well; empty if it has none.
        place: Where it is, in the words of the cloud: the only place where machines can have it.
        holders: Ids of the machines that it is attached to.
        shared: Whether several machines may have it at a time.
        most: How many, where it is shared; None for any number.
    """

    id: str
    name: str
    place: str
    holders: tuple[str, ...] = ()
    shared: bool = False
    most: int | None = None

    @property
    def title(self) -> str:
        """Return what errors call it."""
        return f"{self.name!r} ({self.id})" if self.name and self.name != self.id else repr(self.id)


SomeDisk = TypeVar("SomeDisk", bound=CloudDisk)


def disks_of(volumes: Iterable[VolumeLike]) -> tuple[Disk, ...]:
    """
    Return the disks among a spec's volumes.

    >>> disks_of([Disk("data")])
    (Disk(name='data', mount=None),)
    """
    return tuple(one for one in volumes if isinstance(one, Disk))


def buckets_of(volumes: Iterable[VolumeLike]) -> tuple[str, ...]:
    """
    Return the buckets among a spec's volumes that are in the provider's own object store.

    >>> buckets_of([Disk("data"), Volume("bucket", "/data")])
    ('bucket',)
    """
    return tuple(one.bucket for one in volumes if isinstance(one, Volume) and one.storage is None)


def disk_folder(disk: Disk) -> str:
    """
    Return the folder at which nodes find a disk: the user's choice, else one below `/mnt` by what the user calls it.

    Raises:
        ConfigError: If there is no choice, and the name cannot be that of a folder.

    >>> disk_folder(Disk("data"))
    '/mnt/data'
    """
    if disk.mount is not None:
        return disk.mount
    if not _STEP.fullmatch(disk.name) or disk.name in (".", ".."):
        raise ConfigError(f"The name of {disk.title} is none for a folder.", hint=_USUAL.replace("NAME", disk.name))
    return f"/mnt/{disk.name}"


def check_attachable(
    volumes: Sequence[VolumeLike], provider: str, most: int, having: Callable[[], Iterable[str]]
) -> None:
    """
    Refuse disks that no machine of a provider can have, whichever they are.

    Args:
        volumes: What the spec asks for.
        provider: The provider's name.
        most: How many disks it attaches to a machine at most; 0 if it keeps none.
        having: Returns the classes of providers that keep disks; asked only for an error.

    Raises:
        ConfigError: If there are too many, or two folders lie in each other.

    >>> check_attachable([Disk("a"), Disk("b")], "runpod", 1, tuple)
    Traceback (most recent call last):
    ...
    skyward.errors.ConfigError: runpod attaches 1 disk to a machine, and volumes= has 2: 'a', 'b'. Leave some out.
    """
    disks = disks_of(volumes)
    names = ", ".join(repr(one.name) for one in disks)
    if disks and not most:
        there = ", ".join(f"sky.{name}" for name in having())
        raise ConfigError(
            f"{provider} keeps no disks, and volumes= has {names}.",
            provider=provider,
            hint=f"Disks are at {there}; sky.Volume is a bucket, which all providers have." if there else None,
        )
    if len(disks) > most:
        word = "disk" if most == 1 else "disks"
        raise ConfigError(
            f"{provider} attaches {most} {word} to a machine, and volumes= has {len(disks)}: {names}.",
            provider=provider,
            hint="Leave some out.",
        )
    folders = [disk_folder(one) if isinstance(one, Disk) else one.mount for one in volumes]
    if disks and (pair := in_the_way(folders)):
        raise ConfigError(
            f"volumes= has the mount points {pair[0]} and {pair[1]}, which lie in each other.",
            hint="Give each a folder outside of the others.",
        )


def chosen(disks: Iterable[SomeDisk], wanted: str, cloud: str) -> SomeDisk:
    """
    Return the disk that is meant by an id, or by a name that no other has.

    Args:
        disks: Those that there are.
        wanted: The id or name.
        cloud: What errors call the cloud.

    Raises:
        ConfigError: If there is none, or there are several of the name.

    >>> chosen([CloudDisk(id="v1", name="data", place="here")], "data", "RunPod").id
    'v1'
    """
    known = list(disks)
    found = [one for one in known if one.id == wanted] or [one for one in known if one.name == wanted]
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(f"{one.id} in {one.place}" for one in found)
        raise ConfigError(f"{cloud} has several disks {wanted!r}: {ids}.", hint="Write the id of one.")
    words = [word for one in known for word in (one.name, one.id) if word]
    near = get_close_matches(wanted, words, n=1)
    there = ", ".join(one.title for one in known[:_LISTED]) + (", …" if len(known) > _LISTED else "")
    said = f"There are: {there}." if there else "There are none: make one first, a pool makes none."
    raise ConfigError(f"{cloud} has no disk {wanted!r}.", hint=f"Did you mean {near[0]!r}?" if near else said)


def check_together(disks: Sequence[CloudDisk], cloud: str) -> None:
    """
    Refuse disks that one machine cannot have together.

    Args:
        disks: The disks.
        cloud: What errors call the cloud.

    Raises:
        ConfigError: If one is there twice, or they are in different places.

    >>> check_together([CloudDisk(id="v1", name="data", place="FIN-01")], "Verda")
    """
    first: dict[str, CloudDisk] = {}
    for disk in disks:
        if disk.id in first:
            raise ConfigError(
                f"volumes= has the disk {disk.title} of {cloud} more than once.", hint="Write it once, by name or id."
            )
        first[disk.id] = disk
    places = {disk.place: disk for disk in disks}
    if len(places) > 1:
        said = " and ".join(f"{disk.title} is in {place}" for place, disk in places.items())
        raise ConfigError(
            f"A machine of {cloud} has disks of one place, and {said}.",
            hint="Use disks of the same place, or a pool for each place.",
        )


def check_disk(
    disk: CloudDisk,
    cloud: str,
    *,
    places: Collection[str] = (),
    nodes: int = 1,
    holders: Sequence[str] = (),
) -> None:
    """
    Refuse a disk that a pool cannot have.

    Args:
        disk: The disk.
        cloud: What errors call the cloud.
        places: The places in which the user wants machines; empty for any.
        nodes: How many nodes there may be.
        holders: Ids of the machines that have it.

    Raises:
        ConfigError: If it is elsewhere; for fewer machines than nodes; or for one machine, and another one has it.

    >>> check_disk(CloudDisk(id="v1", name="data", place="FIN-01"), "Verda", places=["FIN-01"])
    """
    title = f"The disk {disk.title} of {cloud}"
    if places and disk.place not in places:
        raise ConfigError(
            f"{title} is in {disk.place}, and machines are asked for in {' or '.join(places)}.",
            hint=f"Ask for {disk.place}, or leave the place out: machines are rented where the disk is.",
        )
    if disk.shared:
        if disk.most is not None and nodes > disk.most:
            raise ConfigError(
                f"{title} is for {disk.most} machines at a time, and the pool may have {nodes} nodes.",
                hint=f"Write nodes={disk.most}, or use a bucket: sky.Volume.",
            )
        return
    if nodes > 1:
        raise ConfigError(
            f"{title} can be attached to one machine at a time, and the pool may have {nodes} nodes.",
            hint="Write nodes=1, or open a pool with a disk of its own for each node.",
        )
    if holders:
        raise ConfigError(
            f"{title} is attached to {', '.join(holders)}, and to one machine at a time.",
            hint="Detach it, or end that machine.",
        )


def mount_disk(find: str, where: str, seconds: float = DISK_SECONDS, options: str = "noatime") -> str:
    """
    Write the shell commands that mount a disk at a boot; they never format it.

    Where there is no filesystem, or it cannot be mounted, there is no folder either: nothing is written beside it.

    Args:
        find: Shell commands that print the path of the device that holds the filesystem, or nothing.
        where: The folder.
        seconds: How long the device is waited for.
        options: Options of `mount`, with commas between them.

    >>> "mkfs" in mount_disk("echo /dev/vdb", "/mnt/data")
    False
    """
    words = {"FIND": find, "WHERE": shlex.quote(where), "SECONDS": str(ceil(seconds)), "OPTIONS": shlex.quote(options)}
    return shell_file(__package__, "mount_disk.sh", **words)


def mount_share(source: str, options: str, where: str, seconds: float = DISK_SECONDS) -> str:
    """
    Write the shell commands that mount a share of NFS at a boot.

    Args:
        source: The share, as `host:/path`.
        options: Options of `mount`, with commas between them; empty for none.
        where: The folder.
        seconds: How long it is tried.

    >>> "mount -t nfs -o nconnect=16 nfs.example:/a" in mount_share("nfs.example:/a", "nconnect=16", "/mnt/a")
    True
    """
    given = f" -o {shlex.quote(options)}" if options else ""
    words = {"SOURCE": shlex.quote(source), "WHERE": shlex.quote(where), "SECONDS": str(ceil(seconds))}
    return shell_file(__package__, "mount_share.sh", OPTIONS=given, **words)


def unmount_disks(folders: Iterable[str], seconds: float = IN_USE) -> str:
    """
    Write the shell commands that flush disks, and unmount them where the machine may; they fail where that fails.

    Args:
        folders: Where the disks are.
        seconds: How long one is tried that is in use.

    >>> "for where in /mnt/data; do" in unmount_disks(["/mnt/data"])
    True
    """
    words = {"FOLDERS": shlex.join(folders), "SECONDS": str(ceil(seconds))}
    return shell_file(__package__, "unmount_disks.sh", **words)
