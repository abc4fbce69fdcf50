"""Volumes that the user keeps at a cloud: which one is meant, whether a pool can have it, and where nodes find it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from math import ceil
from typing import TypeVar

from attrs import frozen

from skyward.errors import ConfigError
from skyward.model.fields.setting import text
from skyward.shell_files import shell_file

__all__ = [
    "SomeDisk",
    "CloudDisk",
    "check_volume",
    "chosen",
    "mount_disk",
    "mount_path",
    "mount_point",
    "mount_share",
    "volume_name",
]

DISK_SECONDS = 60.0
"""Seconds that a machine waits at its boot for its volume, which clouds attach a moment after they made the machine."""

_LISTED = 12
_STEP = re.compile(r"[\w.+-]+", re.ASCII)
_SYSTEM = frozenset("bin boot dev etc home lib lib32 lib64 proc root run sbin sys tmp usr var".split())


@frozen(kw_only=True)
class CloudDisk:
    """
    Describe a volume that a cloud keeps for the user.

    Args:
        id: Its id.
        name: Its name, which another one may have as well; empty if it has none.
        place: Where it is, in the words of the cloud: the only place where machines can have it.
        holders: Ids of the machines that it is attached to.
        shared: Whether several machines may have it at a time.
    """

    id: str
    name: str
    place: str
    holders: tuple[str, ...] = ()
    shared: bool = False

    @property
    def title(self) -> str:
        """Return what errors call it."""
        return f"{self.name!r} ({self.id})" if self.name and self.name != self.id else repr(self.id)


SomeDisk = TypeVar("SomeDisk", bound=CloudDisk)


def volume_name(value: str) -> str:
    """
    Return the id or name of a volume, checked.

    Raises:
        ConfigError: If it is no line of text.

    >>> volume_name(" training-data ")
    'training-data'
    """
    return text(value, "volume")


def mount_path(value: str) -> str:
    """
    Return the directory at which nodes find a volume, checked.

    Args:
        value: An absolute path of letters, digits and `_.+-`.

    Raises:
        ConfigError: If it is anything else, or a directory of the system.

    >>> mount_path("/mnt/data/")
    '/mnt/data'
    """
    path = text(value, "mount")
    first, *more = steps = path.strip("/").split("/")
    good = path.startswith("/") and all(_STEP.fullmatch(step) and step not in (".", "..") for step in steps)
    if not good or (first in _SYSTEM and not more):
        raise ConfigError(
            f"mount must be an absolute path of letters, digits and _.+-, and none of the system's, not {value!r}.",
            hint='Write mount="/mnt/data".',
        )
    return "/" + "/".join(steps)


def mount_point(volume: CloudDisk, wanted: str | None) -> str:
    """
    Return where nodes find a volume: where the user says, else below `/mnt` by its name.

    Args:
        volume: The volume.
        wanted: The directory that the user names.

    Raises:
        ConfigError: If none is named, and the volume's name cannot be that of a directory.

    >>> mount_point(CloudDisk(id="v1", name="data", place="here"), None)
    '/mnt/data'
    """
    if wanted is not None:
        return wanted
    name = volume.name or volume.id
    if not _STEP.fullmatch(name) or name in (".", ".."):
        raise ConfigError(
            f"The name of the volume {volume.title} is none for a directory.", hint='Write mount="/mnt/data".'
        )
    return f"/mnt/{name}"


def chosen(volumes: Iterable[SomeDisk], wanted: str, cloud: str) -> SomeDisk:
    """
    Return the volume that is meant by an id, or by a name that no other has.

    Args:
        volumes: Those that there are.
        wanted: The id or name.
        cloud: What errors call the cloud.

    Raises:
        ConfigError: If there is none, or there are several of the name.

    >>> chosen([CloudDisk(id="v1", name="data", place="here")], "data", "RunPod").id
    'v1'
    """
    known = list(volumes)
    found = [one for one in known if one.id == wanted] or [one for one in known if one.name == wanted]
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(f"{one.id} in {one.place}" for one in found)
        raise ConfigError(f"{cloud} has several volumes {wanted!r}: {ids}.", hint="Write the id of one.")
    words = [word for one in known for word in (one.name, one.id) if word]
    near = get_close_matches(wanted, words, n=1)
    there = ", ".join(one.title for one in known[:_LISTED]) + (", …" if len(known) > _LISTED else "")
    said = f"There are: {there}." if there else "There are none: make one first, a pool makes none."
    raise ConfigError(f"{cloud} has no volume {wanted!r}.", hint=f"Did you mean {near[0]!r}?" if near else said)


def check_volume(
    volume: CloudDisk,
    cloud: str,
    *,
    places: Collection[str] = (),
    nodes: int = 1,
    holders: Sequence[str] = (),
) -> None:
    """
    Refuse a volume that a pool cannot have.

    Args:
        volume: The volume.
        cloud: What errors call the cloud.
        places: The places in which the user wants machines; empty for any.
        nodes: How many nodes there may be.
        holders: Ids of the machines that have it.

    Raises:
        ConfigError: If it is elsewhere; or for one machine, and another one has it, or there may be several nodes.

    >>> check_volume(CloudDisk(id="v1", name="data", place="FIN-01"), "Verda", places=["FIN-01"])
    """
    title = f"The volume {volume.title} of {cloud}"
    if places and volume.place not in places:
        raise ConfigError(
            f"{title} is in {volume.place}, and machines are asked for in {' or '.join(places)}.",
            hint=f"Ask for {volume.place}, or leave the place out: machines are rented where the volume is.",
        )
    if volume.shared:
        return
    if nodes > 1:
        raise ConfigError(
            f"{title} can be attached to one machine at a time, and the pool may have {nodes} nodes.",
            hint="Write nodes=1, or open a pool with a volume of its own for each node.",
        )
    if holders:
        raise ConfigError(
            f"{title} is attached to {', '.join(holders)}, and to one machine at a time.",
            hint="Detach it, or end that machine.",
        )


def mount_disk(find: str, where: str, seconds: float = DISK_SECONDS) -> str:
    """
    Write the shell commands that mount a disk at a boot; it is never formatted.

    Where there is no filesystem, or it cannot be mounted, there is no directory either: nothing is written beside it.

    Args:
        find: Shell commands that print the path of the device that holds the filesystem, or nothing.
        where: The directory.
        seconds: How long the device is waited for.

    >>> "mkfs" in mount_disk("echo /dev/vdb", "/mnt/data")
    False
    """
    limit = str(ceil(seconds))
    return shell_file(__package__, "mount_disk.sh", FIND=find, WHERE=shlex.quote(where), SECONDS=limit)


def mount_share(source: str, options: str, where: str, seconds: float = DISK_SECONDS) -> str:
    """
    Write the shell commands that mount a share of NFS at a boot.

    Args:
        source: The share, as `host:/path`.
        options: Options of `mount`, with commas between them; empty for none.
        where: The directory.
        seconds: How long it is tried.

    >>> "mount -t nfs -o nconnect=16 nfs.example:/a" in mount_share("nfs.example:/a", "nconnect=16", "/mnt/a")
    True
    """
    given = f" -o {shlex.quote(options)}" if options else ""
    words = {"SOURCE": shlex.quote(source), "WHERE": shlex.quote(where), "SECONDS": str(ceil(seconds))}
    return shell_file(__package__, "mount_share.sh", OPTIONS=given, **words)
