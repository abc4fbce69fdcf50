"""The disks that the user keeps at Verda: volumes for one machine each, and shares for several, of one location."""

from __future__ import annotations

import logging
import re
import shlex
from collections.abc import Sequence
from typing import Any

from attrs import frozen

from skyward.provider import (
    Api,
    CloudDisk,
    ConfigError,
    Misread,
    chosen,
    listed,
    mount_disk,
    mount_share,
    optional,
    shell_file,
    text,
)
from skyward_verda.failure import unless_gone
from skyward_verda.instances import pool_of

__all__ = ["DISKS", "PATH", "OwnVolume", "find_volume", "living", "mount_scripts"]

_log = logging.getLogger("skyward.provider.verda")

PATH = "/volumes"

DISKS = 10
"""Disks of a machine at most. Verda publishes no limit; with more the wait for each would be too short."""

BOOT = 30.0
"""Seconds that a machine waits for its disks; its startup script may run for two minutes in all."""

_GOING = ("deleting", "deleted", "discontinued", "notfound")
_LABELLED = re.compile(r"[A-Za-z0-9_.-]+")
_LONGEST_LABELS = (16, 12)


@frozen(kw_only=True)
class OwnVolume(CloudDisk):
    """
    Describe a volume of the user's.

    Args:
        mount_command: How a share is mounted, in Verda's words; empty for a disk.
    """

    mount_command: str = ""


async def find_volume(api: Api, wanted: str) -> OwnVolume:
    """
    Look for a volume.

    Args:
        api: The API.
        wanted: Its id or name.

    Raises:
        ConfigError: If there is none, or there are several of the name, or it is the disk of a pool's machine.
        SkywardError: If Verda refuses.
    """
    known: list[OwnVolume] = await api.get(
        PATH, read=lambda answer: [_volume(row) for row in listed(answer, "") if row.get("status") not in _GOING]
    )
    if any(wanted in (one.id, one.name) and pool_of(one.name) is not None for one in known):
        # By such a name disks are deleted that have outlived their machine.
        raise ConfigError(
            f"The disk {wanted!r} of Verda has the name of a disk of a pool's machine, which is deleted with it.",
            provider="verda",
            hint="If it is to be kept, give it another name in Verda's console.",
        )
    return chosen([one for one in known if pool_of(one.name) is None], wanted, "Verda")


async def living(api: Api, machines: Sequence[str]) -> list[str]:
    """
    Return those of a volume's machines that exist: one that was deleted a moment ago may still be named as its holder.

    Args:
        api: The API.
        machines: Their ids.

    Raises:
        SkywardError: If Verda refuses.
    """
    rows = [(name, await unless_gone(api.get(f"/instances/{name}", also=(404,)))) for name in machines]
    return [name for name, row in rows if row is not None and row.get("status") not in _GOING]


def mount_scripts(mounts: Sequence[tuple[OwnVolume, str]]) -> str:
    """
    Write the shell commands by which a machine mounts volumes that hold a filesystem, a share as Verda says it is.

    Args:
        mounts: The volumes, each with its folder.

    Raises:
        ConfigError: If there are several disks, and one has a name that is no label.
        Misread: If a share is mounted in a way that is not known.

    >>> command = "sudo mount -t nfs -o nconnect=16 nfs.example:/data-1a /mnt/data"
    >>> share = OwnVolume(id="v1", name="data", place="FIN-01", shared=True, mount_command=command)
    >>> "mount -t nfs -o nconnect=16 nfs.example:/data-1a" in mount_scripts([(share, "/mnt/data")])
    True
    """
    alone = sum(not volume.shared for volume, _ in mounts) == 1
    seconds = BOOT / max(1, len(mounts))
    return "\n".join(_mount_script(volume, where, seconds, alone=alone) for volume, where in mounts)


def _mount_script(volume: OwnVolume, where: str, seconds: float, *, alone: bool) -> str:
    if not volume.shared:
        # As which device a machine sees it is not known before: the only one there is, or the one of its label.
        find = "find_volume.sh" if alone else "find_labelled.sh"
        words = {} if alone else {"LABELS": _labels(volume)}
        return mount_disk(shell_file(__package__, find, **words), where, seconds)
    if not volume.mount_command:
        _log.warning("verda.not_mounted volume=%s: Verda does not say how it is mounted", volume.id)
        return ""
    source, options = _share(volume.mount_command)
    return mount_share(source, options, where, seconds)


def _labels(volume: OwnVolume) -> str:
    """Return the labels by which a disk is known among others, as a pattern of sed: its name, as far as it fits."""
    if not _LABELLED.fullmatch(volume.name):
        raise ConfigError(
            f"The name of the disk {volume.title} of Verda is no label, by which a machine knows it among several.",
            provider="verda",
            hint="Give it a name of letters, digits and _.- in Verda's console, and its filesystem that label.",
        )
    names = dict.fromkeys((volume.name, *(volume.name[:size] for size in _LONGEST_LABELS)))
    return "\\|".join(name.replace(".", "[.]") for name in names)


def _share(command: str) -> tuple[str, str]:
    """Read the source and the options of `mount -t nfs -o OPTIONS SOURCE DIRECTORY`."""
    words, kind, options = shlex.split(command), "", ""
    if words[:1] == ["sudo"]:
        words = words[1:]
    rest: list[str] = []
    given = iter(words[1:])
    for word in given:
        if word == "-t":
            kind = next(given, "")
        elif word == "-o":
            options = next(given, "")
        else:
            rest.append(word)
    known = words[:1] == ["mount"] and kind in ("nfs", "nfs4") and len(rest) == 2 and ":/" in rest[0]
    if not known or any(word.startswith("-") for word in rest):
        raise Misread(f"'mount_command' mounts no share of NFS: {command!r:.200}")
    return rest[0], options


def _volume(row: Any) -> OwnVolume:
    holder = optional(row, "instance_id", text)
    return OwnVolume(
        id=text(row, "id"),
        name=text(row, "name"),
        place=text(row, "location"),
        holders=(holder,) if holder else (),
        shared="Shared" in text(row, "type"),
        mount_command=optional(row, "mount_command", text) or "",
    )
