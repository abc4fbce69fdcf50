"""A client's view of DigitalOcean's test cloud."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import skyward as sky
from tests.clouds import cloud as clouds
from tests.clouds.cloud import running
from tests.clouds.digitalocean.server import TOKEN, VPC

__all__ = ["CPU", "GPU", "TOKEN", "VPC", "Cloud", "cloud"]

_numbers = itertools.count()

CPU, GPU = "s-2vcpu-4gb", "gpu-h100x1-80gb"


class Cloud(clouds.Cloud):
    """Speak to a running test cloud."""

    def environment(self) -> dict[str, str]:
        """Return what a client needs in its environment to speak to this cloud and to no other."""
        # Another token each time, whose calls no other test has made.
        token = f"{TOKEN}{next(_numbers)}"
        return {"DIGITALOCEAN_API_URL": self.url, "DIGITALOCEAN_TOKEN": token, "DIGITALOCEAN_ACCESS_TOKEN": ""}

    def provider(self, **changes: Any) -> Any:
        """Make the provider of this cloud."""
        return self.hurried(sky.DigitalOcean(**{"ssh_port": self.port, **changes}))

    def set(self, **limits: Any) -> None:
        """Have `droplet_limit`, `burst`, `stock`, `scopes`, `status` or `largest_page` be others."""
        self.ask("set", limits)

    def ssh_keys(self) -> list[dict[str, Any]]:
        """Return the account's keys."""
        found: list[dict[str, Any]] = self.ask("keys")
        return found

    def volume(
        self, name: str = "data", region: str = "nyc3", kind: str = "ext4", droplets: Sequence[int] = ()
    ) -> None:
        """Let there be a volume that droplets have; `kind` is its filesystem, empty for none."""
        self.ask("volume", {"name": name, "region": region, "kind": kind, "droplets": droplets})

    def volumes(self) -> dict[str, list[int]]:
        """Return the droplets that each volume is attached to, by its name."""
        return {row["name"]: row["droplet_ids"] for row in self.ask("volumes")}

    def remains(self) -> list[str]:
        """Name the keys and tags of pools that are left, and what DigitalOcean's description forbids."""
        keys = [f"key: {row['name']}" for row in self.ssh_keys() if row["name"].startswith("skyward:")]
        return keys + [f"tag: {tag}" for tag in self.tags() if tag.startswith("skyward:")] + self.breaches()

    def breaches(self) -> list[str]:
        """Return what was asked or answered and is not in DigitalOcean's description, as far as that is present."""
        found: list[str] = self.ask("breaches")
        return sorted(set(found))

    def clear(self) -> None:
        """Remove them."""
        self.ask("clear")

    def tags(self) -> list[str]:
        """Return every tag that the account knows."""
        found: list[str] = self.ask("tags")
        return found


@contextlib.contextmanager
def cloud() -> Iterator[Cloud]:
    """Run a test cloud in a process of its own."""
    with running(Cloud, "tests.clouds.digitalocean.server", 40) as found:
        yield found
