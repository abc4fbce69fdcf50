"""
The block storage of the DigitalOcean test cloud: volumes that outlive the droplets they are attached to.

Fields and refusals are those of DigitalOcean's public description of its API; the reference has `volumes[]` alone, §4.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attrs import define, field


@define(eq=False)
class Storage:
    """
    Keep volumes.

    Args:
        folder: Where what is written to them is kept.
    """

    folder: Path
    rows: dict[str, dict[str, Any]] = field(factory=dict)
    lag: int = 0
    _left: dict[str, int] = field(factory=dict)
    _numbers: itertools.count[int] = field(factory=itertools.count)

    def make(self, name: str, region: dict[str, Any], kind: str = "", size: int = 10) -> dict[str, Any]:
        """Make one, with a filesystem or without."""
        volume = f"506f78a4-e098-11e5-ad9f-{next(self._numbers):012x}"
        (self.folder / volume).mkdir(parents=True)
        self.rows[volume] = {
            "id": volume,
            "name": name,
            "description": "",
            "region": region,
            "droplet_ids": [],
            "size_gigabytes": size,
            "filesystem_type": kind,
            "filesystem_label": "",
            "tags": [],
            "created_at": "2026-11-21T14:00:00Z",
        }
        return self.rows[volume]

    def shown(self, row: dict[str, Any]) -> dict[str, Any]:
        """Show one; a droplet that has just gone is named as its holder so many times more."""
        left = self._left.get(row["id"], 0)
        if row["droplet_ids"] or not left:
            return row
        self._left[row["id"]] = left - 1
        return {**row, "droplet_ids": [row["was"]]}

    def refusal(self, wanted: Sequence[str], region: str, droplets: int) -> str | None:
        """Say why new droplets cannot have volumes: each is for one droplet of its region."""
        # "up to fifteen volumes may be attached to a Droplet at a time"
        if len(wanted) > 15:
            return "too many volumes"
        for volume in wanted:
            if volume not in self.rows:
                return "volume not found"
            if droplets > 1:
                return "volumes cannot be attached to multiple droplets"
            if self.rows[volume]["region"]["slug"] != region:
                return "volume must be in the same region as the droplet"
            if self.rows[volume]["droplet_ids"] or self._left.get(volume):
                return "volume is already attached to a droplet"
        return None

    def attach(self, wanted: Sequence[str], droplet: int) -> None:
        """Give a droplet its volumes."""
        for volume in wanted:
            self.rows[volume] |= {"droplet_ids": [droplet], "was": droplet}

    def leave(self, droplet: int) -> None:
        """Take away what a droplet had that is gone; it stays as it is."""
        for row in self.of(droplet):
            row["droplet_ids"] = []
            self._left[row["id"]] = self.lag

    def of(self, droplet: int) -> list[dict[str, Any]]:
        """List what a droplet has."""
        return [row for row in self.rows.values() if droplet in row["droplet_ids"]]

    def disks(self, wanted: Sequence[str]) -> dict[str, tuple[str, Path]]:
        """Say as which devices a droplet sees volumes."""
        rows = [self.rows[volume] for volume in wanted]
        return {
            f"disk/by-id/scsi-0DO_Volume_{row['name']}": (row["filesystem_type"], self.folder / row["id"])
            for row in rows
        }
