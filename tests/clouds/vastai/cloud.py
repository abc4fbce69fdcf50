"""A client's view of the emulator of Vast.ai: start it, ask for faults, read its books."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from typing import Any

import skyward as sky
from tests.clouds import cloud as clouds
from tests.clouds.cloud import running

__all__ = ["Cloud", "cloud"]


class Cloud(clouds.Cloud):
    """Speak to a running emulator."""

    def __init__(self, url: str, folder: str = "") -> None:
        super().__init__(url, folder)
        self.key = ""

    def environment(self) -> dict[str, str]:
        """Return what a client needs; each time another key of the account, because every key has a pace of its own."""
        self.key = f"vast-test-key-{secrets.token_hex(8)}"
        return {"VAST_URL": self.url, "VAST_API_KEY": self.key}

    def hosts(self, *, there: bool) -> None:
        """Say whether machines are real; where they are not, clients need keep no distance between their calls."""
        super().hosts(there=there)
        self.paced(there)

    def paced(self, yes: bool) -> None:
        """Say whether calls that come too fast are refused."""
        self.ask("paced", yes)

    def provider(self, **changes: Any) -> Any:
        """Make the provider of this cloud."""
        return self.hurried(sky.VastAI(**changes))

    def credit(self, dollars: float) -> None:
        """Leave the account so much."""
        self.ask("credit", dollars)

    def listing(self, number: int, **facts: Any) -> None:
        """Change what is listed."""
        self.ask("listing", {"id": number, "facts": facts})

    def contract(self, number: str, **told: Any) -> None:
        """Change what is said of an instance: `status` and `says`."""
        self.ask("contract", {"id": number, **told})

    def page(self, size: int) -> None:
        """Have a list tell no more at a time."""
        self.ask("page", size)

    def volumes(self, label: str | None = None, **machines: int) -> None:
        """Let there be local volumes and no others: `v7=3100007` is number 7, on that machine; all have the label."""
        rows = [{"id": int(name[1:]), "machine_id": number, "label": label} for name, number in machines.items()]
        self.ask("volumes", rows)

    def listings(self) -> list[dict[str, Any]]:
        """Return all that is listed, rented or not."""
        rows: list[dict[str, Any]] = self.ask("listings")
        return rows


@contextlib.contextmanager
def cloud() -> Iterator[Cloud]:
    """Run an emulator in a process of its own."""
    with running(Cloud, "tests.clouds.vastai.server", 128) as found:
        yield found
