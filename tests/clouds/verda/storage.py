"""The volumes of the Verda test cloud, which outlive their instances unless told otherwise."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

KEEP, SHARED = "keep_detached", "NVMe_Shared"


class Storage:
    """Keep volumes: reference/verda.md §4, §6, §8 and §9."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lag = 0
        self.filesystem = "ext4"
        self._left: dict[str, tuple[int, str]] = {}
        self.rows: dict[str, dict[str, Any]] = {}
        self._plans: dict[str, str] = {}
        self._owners: dict[str, str] = {}
        self._numbers = itertools.count(1)

    def make(self, name: str, size: int, kind: str, place: str, instance: str | None = None) -> dict[str, Any]:
        """Make one."""
        volume = f"{next(self._numbers):08x}-5000-4000-9000-000000000000"
        row = self.rows[volume] = {
            "id": volume,
            "name": name,
            "size": size,
            "type": kind,
            "status": "attached" if instance else "detached",
            "instance_id": instance,
            "location": place,
            "is_os_volume": False,
            "created_at": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime()),
            "target": "vda",
            "ssh_key_ids": [],
            "instances": [],
        }
        if kind == SHARED:
            # §9: it is a share of NFS, and says how it is mounted.
            path = f"{name}-{volume[:8]}"
            row["mount_command"] = f"sudo mount -t nfs -o nconnect=16 nfs.test.example:/{path} /mnt/{name}"
            row["pseudo_path"] = f"/{path}"
        return row

    def rented(self, instance: str, place: str, wanted: dict[str, Any], number: int) -> dict[str, Any]:
        """Make one with its instance; the first is what that boots from."""
        row = self.make(wanted["name"], wanted["size"], wanted.get("type", "NVMe"), place, instance)
        row["is_os_volume"] = number == 0
        self._plans[row["id"]] = wanted.get("on_spot_discontinue", KEEP)
        self._owners[row["id"]] = instance
        return row

    def refusal(self, wanted: Sequence[str], place: str) -> str | None:
        """Say why an instance cannot have volumes: they have to be detached, and in its location (§4)."""
        for volume in wanted:
            row = self.rows.get(volume)
            if row is None:
                return "Invalid volume ID"
            if row["location"] != place:
                return "Volume is in another location"
            if row["type"] != SHARED and (row["status"] != "detached" or self._left.get(volume, (0, ""))[0]):
                return "Volume is not detached"
        return None

    def attach(self, volume: str, instance: str) -> None:
        """Give an instance a volume that is there; only shares are for several."""
        row = self.rows[volume]
        row["instances"].append({"id": instance})
        row |= {"status": "attached", "instance_id": instance}

    def detach(self, row: dict[str, Any], instance: str) -> None:
        """Take a volume from an instance; it is as it was."""
        row["instances"] = [each for each in row["instances"] if each["id"] != instance]
        rest = row["instances"][-1]["id"] if row["instances"] else None
        row |= {"status": "attached" if rest else "detached", "instance_id": rest}
        self._left[row["id"]] = self.lag, instance

    def held(self, instance: str) -> list[dict[str, Any]]:
        """List what is attached to an instance."""
        ids = [(row, {row["instance_id"], *(each["id"] for each in row["instances"])}) for row in self.rows.values()]
        return [row for row, holders in ids if instance in holders]

    def shown(self, row: dict[str, Any]) -> dict[str, Any]:
        """Show one; what was detached a moment ago is on its way so many times more."""
        left, instance = self._left.get(row["id"], (0, ""))
        if row["status"] != "detached" or not left:
            return row
        self._left[row["id"]] = left - 1, instance
        return row | {"status": "detaching", "instance_id": instance}

    def content(self, volume: str) -> Path:
        """Return where what is written to a volume is kept."""
        path = self.folder / volume
        path.mkdir(parents=True, exist_ok=True)
        return path

    def disks(self, wanted: Sequence[str]) -> dict[str, tuple[str, Path]]:
        """Say as which devices an instance sees volumes, beside the one that it boots from."""
        own = [volume for volume in wanted if self.rows[volume]["type"] != SHARED]
        return {f"vd{'bcdefgh'[number]}": (self.filesystem, self.content(each)) for number, each in enumerate(own)}

    def labels(self, wanted: Sequence[str]) -> dict[str, str]:
        """Say which labels filesystems have, by the devices of `disks`: the names of their volumes."""
        own = [self.rows[volume] for volume in wanted if self.rows[volume]["type"] != SHARED]
        return {f"vd{'bcdefgh'[number]}": row["name"] for number, row in enumerate(own)}

    def shares(self, wanted: Sequence[str]) -> dict[str, Path]:
        """Say which shares an instance may mount."""
        own = [self.rows[volume] for volume in wanted if self.rows[volume]["type"] == SHARED]
        return {row["pseudo_path"].lstrip("/"): self.content(row["id"]) for row in own}

    def of(self, instance: str) -> list[dict[str, Any]]:
        """List what was made for an instance and is still there, the trash included."""
        return [row for name, row in self.rows.items() if self._owners.get(name) == instance]

    def listed(self, status: str | None) -> list[dict[str, Any]]:
        """List what is not in the trash."""
        rows = [self.shown(row) for row in self.rows.values()]
        return [row for row in rows if row["status"] != "deleted" and status in (None, row["status"])]

    def trash(self) -> list[dict[str, Any]]:
        """List what is."""
        return [row for row in self.rows.values() if row["status"] == "deleted"]

    def drop(self, volume: str, *, permanently: bool) -> None:
        """Delete one."""
        if permanently:
            self.rows.pop(volume)
        else:
            self.rows[volume] |= {"status": "deleted", "instance_id": None}

    def interrupted(self, instance: str, *, keep: bool) -> None:
        """Do with the volumes what was asked for when the instance was rented."""
        for row in self.held(instance):
            plan = KEEP if keep else self._plans.get(row["id"], KEEP)
            if plan == KEEP:
                self.detach(row, instance)
            else:
                self.drop(row["id"], permanently=plan == "delete_permanently")

    def ended(self, instance: str, os_volume: str, asked: dict[str, Any]) -> None:
        """Do with the volumes what the call that ends the instance asks for."""
        named = asked.get("volume_ids")
        # Omitted or null: what it boots from. An empty list: nothing at all.
        going = [os_volume] if named is None else named
        permanently = named is not None and bool(asked.get("delete_permanently"))
        for row in self.held(instance):
            if row["id"] in going:
                self.drop(row["id"], permanently=permanently)
            else:
                self.detach(row, instance)
