"""A client's view of the Verda test cloud: start it, ask for faults, read its books."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import skyward as sky
from tests.clouds import cloud as clouds
from tests.clouds.cloud import ROOT, running

__all__ = ["CLIENT_ID", "CLIENT_SECRET", "MACHINE", "ROOT", "Cloud", "cloud"]

_numbers = itertools.count()

CLIENT_ID, CLIENT_SECRET = "verda-test-client", "verda-secret-not-real"
MACHINE = "CPU.4V.16G"


class Cloud(clouds.Cloud):
    """Speak to a running test cloud."""

    @property
    def base_url(self) -> str:
        """Return where its API is."""
        return f"{self.url}/v1"

    def environment(self) -> dict[str, str]:
        """Return what a client needs in its environment to speak to this cloud and to no other."""
        home = Path(self.folder, "verda-home")
        home.mkdir(exist_ok=True)
        (home / "credentials").write_text(f"[default]\nverda_base_url = {self.base_url}\n")
        # Another client each time: a token is shared by all that use the same.
        name = f"{CLIENT_ID}-{next(_numbers)}"
        return {"VERDA_HOME": str(home), "VERDA_CLIENT_ID": name, "VERDA_CLIENT_SECRET": CLIENT_SECRET}

    def provider(self, **changes: Any) -> Any:
        """Make the provider of this cloud."""
        return self.hurried(sky.Verda(**{"ssh_port": self.port, **changes}))

    def volume(self, name: str = "data", kind: str = "NVMe", location: str = "FIN-01") -> str:
        """Let there be a volume of the user's, and return its id."""
        made: dict[str, Any] = self.ask("volume", {"name": name, "size": 10, "type": kind, "location": location})
        return str(made["id"])

    def volumes(self) -> dict[str, list[str]]:
        """Return the instances that each volume of the user's is attached to, by its name."""
        return {row["name"]: [each["id"] for each in row["instances"]] for row in self.ask("volumes")}

    def remains(self) -> list[str]:
        """Name the keys, scripts and volumes that are left."""
        return [f"{kind}: {name}" for kind, names in self.left().items() for name in names]

    def clear(self) -> None:
        """Remove them."""
        self.ask("clear", {})

    def left(self) -> dict[str, list[str]]:
        """Return the names of the keys, scripts and volumes that the account has."""
        names: dict[str, list[str]] = self.ask("left")
        return names


@contextlib.contextmanager
def cloud() -> Iterator[Cloud]:
    """Run a test cloud in a process of its own."""
    with running(Cloud, "tests.clouds.verda.server", 64) as found:
        yield found
