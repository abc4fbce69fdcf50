"""A client's view of the test cloud: start it, ask for faults, read its books."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from typing import Any

import skyward as sky
from tests.clouds import cloud as clouds
from tests.clouds.cloud import ROOT, running

__all__ = ["GPU", "ROOT", "Cloud", "cloud"]

GPU = "NVIDIA GeForce RTX 4090"

_numbers = itertools.count()


class Cloud(clouds.Cloud):
    """Speak to a running test cloud."""

    key = "rpa_0"

    def environment(self) -> dict[str, str]:
        """Return what a client needs in its environment to speak to this cloud and to no other."""
        # A key of its own for each test, whose allowance no other test has spent.
        self.key = f"rpa_{os.getpid()}x{next(_numbers)}-not-a-secret"
        return {"RUNPOD_API_BASE_URL": self.url, "RUNPOD_API_KEY": self.key}

    def provider(self, **changes: Any) -> Any:
        """Make the provider of this cloud."""
        return self.hurried(sky.RunPod(**changes))

    def stock(self, **left: int) -> None:
        """Let there be so many GPUs of a kind and cloud, such as `{"NVIDIA L40S/SECURE": 0}`."""
        self.ask("stock", left)

    def policy(self, calls: int, seconds: float) -> None:
        """Allow so many calls in so many seconds."""
        self.ask("policy", [calls, seconds])

    def breaches(self) -> list[str]:
        """Return what was asked or answered and is not in RunPod's contract, as far as that is present."""
        found: list[str] = self.ask("breaches")
        return found

    def keys(self) -> list[str]:
        """Return the account's SSH keys."""
        found: list[str] = self.ask("keys")
        return found

    def remains(self) -> list[str]:
        """Tell what was asked or answered that RunPod's contract forbids, and how the account's keys were changed."""
        return self.breaches() + sorted({"ssh-ed25519 AAAA somebody@else"} ^ set(self.keys()))

    def cluster(self, *names: str) -> str:
        """Have another client make a cluster, whose pods have these names."""
        made: list[str] = self.ask("cluster", names)
        return made[0]

    def volumes(self, *rows: dict[str, Any]) -> None:
        """Let there be these network volumes and no others."""
        self.ask("volumes", [{"name": row["id"], "size": 10, "type": "STANDARD", **row} for row in rows])

    def stop(self, name: str) -> None:
        """Have a pod be stopped, as RunPod does when the balance is used up."""
        self.ask("stop", name)


@contextlib.contextmanager
def cloud() -> Iterator[Cloud]:
    """Run a test cloud in a process of its own."""
    with running(Cloud, "tests.clouds.runpod.server", 96) as found:
        yield found
