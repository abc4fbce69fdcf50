"""
The EBS volumes of the AWS test cloud: what moto does not check of an attachment, and the devices that hosts see.

The rules are those of EC2's `AttachVolume`: a machine that runs, in the volume's zone, and one machine for a volume.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attrs import define, field

from tests.clouds.hosting import executable
from tests.clouds.volumes import plug
from tests.hosts import Host

_MKFS = """#!/bin/sh
echo "${{0##*/}} $*" >>{base}/asked
for device in "$@"; do :; done
cp "{base}/blank/${{device##*/}}" "$device"
"""


@define(eq=False)
class Storage:
    """
    Keep what is written to volumes.

    Args:
        folder: Where.
    """

    folder: Path
    blank: set[str] = field(factory=set)
    made: set[str] = field(factory=set)

    def make(self, backend: Any, name: str, zone: str, *, blank: bool, multi: bool) -> str:
        """Make a volume of the user's, and return its id."""
        more = {"volume_type": "io2", "iops": 100, "multi_attach_enabled": True} if multi else {}
        volume = backend.create_volume(size=10, zone_name=zone, **more)
        volume.add_tags({"Name": name} if name else {})
        (self.folder / volume.id).mkdir(parents=True)
        self.made.add(volume.id)
        if blank:
            self.blank.add(volume.id)
        return str(volume.id)

    def rows(self, backend: Any) -> list[dict[str, Any]]:
        """List the volumes of the user's, with what has them."""
        own = [each for each in list(backend.volumes.values()) if each.id in self.made]
        return [
            {"id": each.id, "name": _name(each), "holders": [one.instance.id for one in each.attachments]}
            for each in own
        ]

    def roots(self, backend: Any) -> list[dict[str, Any]]:
        """List what machines of pools boot from."""
        tags = [(each.id, {tag["key"]: tag["value"] for tag in each.get_tags()}) for each in backend.volumes.values()]
        return [{"id": name, "pool": own["skyward:pool"]} for name, own in tags if "skyward:pool" in own]

    def drop(self, backend: Any) -> None:
        """Delete the volumes of the user's."""
        for name in self.made.intersection(backend.volumes):
            backend.volumes.pop(name)

    def refusal(self, backend: Any, volume: str, instance: Any) -> tuple[str, str] | None:
        """Say why an instance cannot have a volume: the code and the message."""
        row = backend.volumes.get(volume)
        if row is None:
            return "InvalidVolume.NotFound", f"The volume '{volume}' does not exist."
        if instance.state != "running":
            return "IncorrectState", f"Instance '{instance.id}' is not 'running'."
        if row.attachment is not None:
            return "VolumeInUse", f"{volume} is already attached to an instance"
        if row.availability_zone != instance.placement.zone:
            words = f"The volume '{volume}' is not in the same availability zone as instance '{instance.id}'"
            return "InvalidVolume.ZoneMismatch", words
        return None

    def open(self, host: Host) -> None:
        """Give a host the commands that mount disks, which it does not have yet."""
        plug(host, {})
        (host.base / "dev").mkdir(exist_ok=True)
        (host.base / "blank").mkdir()
        executable(host.base / "bin" / "mkfs.ext4", _MKFS.format(base=host.base))

    def plug(self, host: Host, volume: str) -> None:
        """Have a host see a volume as an NVMe device, as machines on Nitro do: by its id without the hyphen."""
        serials = host.base / "serials"
        name = f"nvme{len(serials.read_text().splitlines()) + 1}n1"
        text = f"ext4 {self.folder / volume} \n"
        (host.base / "blank" / name).write_text(text)
        (host.base / "dev" / name).write_text("" if volume in self.blank else text)
        self.blank.discard(volume)
        with serials.open("a") as file:
            file.write(f"{name} {volume.replace('-', '')}\n")


def _name(volume: Any) -> str:
    return next((tag["value"] for tag in volume.get_tags() if tag["key"] == "Name"), "")
