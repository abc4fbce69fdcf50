"""A client's view of the test cloud: start it, ask for faults, read its books."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator
from typing import Any

import pytest

import skyward as sky
from tests.clouds import cloud as clouds
from tests.clouds.cloud import ROOT, running

__all__ = ["KEY", "ROOT", "SECRET", "Cloud", "cloud"]

KEY, SECRET = "AKIATESTCLOUD0000001", "not-a-secret"


class Cloud(clouds.Cloud):
    """Speak to a running test cloud."""

    def environment(self) -> dict[str, str]:
        """Return what a client needs in its environment to speak to this cloud and to no other."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }

    def provider(self, **changes: Any) -> Any:
        """Make the provider of this cloud."""
        return sky.AWS(**{"user": "root", "ssh_port": self.port, **changes})

    def fault(self, action: str, effect: str = "error", **facts: Any) -> None:
        """Have something go wrong."""
        self.ask("fault", {"action": action, "effect": effect, **facts})

    def dearer(self, **factors: float) -> None:
        """Have types cost more, by these factors."""
        self.ask("dearer", factors)

    def allow(self, actions: list[str]) -> None:
        """Let only these calls through from now on."""
        self.ask("allow", actions)

    def quota(self, code: str, vcpus: float) -> None:
        """Let the account have so many vCPUs."""
        self.ask("quota", {code: vcpus})

    def images(self) -> list[str]:
        """List the machine images that were made here."""
        names: list[str] = self.ask("images")
        return names

    def volume(self, name: str = "data", zone: str = "us-east-1b", *, blank: bool = False, multi: bool = False) -> str:
        """Let there be a volume of the user's, and return its id."""
        made: str = self.ask("volume", {"name": name, "zone": zone, "blank": blank, "multi": multi})
        return made

    def volumes(self) -> dict[str, list[str]]:
        """Return the instances that each volume of the user's is attached to, by its name."""
        return {row["name"]: row["holders"] for row in self.ask("volumes")}

    def turn_image(self, name: str, state: str) -> None:
        """Have a machine image be `pending`, `available` or `failed`."""
        self.ask("image", {"id": name, "state": state})

    def skew(self, seconds: float) -> None:
        """Have the cloud's clock be wrong."""
        self.ask("skew", seconds)

    def interrupt(self, name: str, seconds: float = 0.0) -> None:
        """Take a spot machine back, after a notice of some seconds."""
        self.ask("interrupt", {"id": name, "seconds": seconds})

    def groups(self, region: str = "us-east-1") -> list[str]:
        """Return the names of all security groups of a region."""
        names: list[str] = self.ask(f"groups?region={region}")
        return names


@contextlib.contextmanager
def cloud() -> Iterator[Cloud]:
    """Run a test cloud in a process of its own."""
    import botocore.session

    with running(Cloud, "tests.clouds.aws.server", 0) as found, pytest.MonkeyPatch.context() as patched:
        # What its library knows of the services takes a second to read: once for the sessions of all tests.
        patched.setattr(botocore.session, "create_loader", functools.cache(botocore.session.create_loader))
        yield found
