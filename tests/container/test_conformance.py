"""Containers pass the checks that every provider has to pass."""

from __future__ import annotations

import subprocess

import pytest

import skyward as sky
from skyward.testing.conformance import ProviderConformance, Switches


@pytest.mark.containers
@pytest.mark.timeout(300)
class TestContainer(ProviderConformance):
    """Podman's, on this machine."""

    @pytest.fixture
    def provider(self, image: str) -> sky.Container:
        """Give it."""
        return sky.Container(image=image, binary="podman")

    @pytest.fixture
    def patience(self) -> float:
        """Containers are quick."""
        return 60.0

    @pytest.fixture
    def switches(self) -> Switches:
        """Return what Podman can do: remove a container; its lists have no pages."""

        def reclaim(name: str) -> None:
            subprocess.run(["podman", "rm", "--force", "--time", "0", name], check=True, capture_output=True)

        return Switches(small_pages=lambda: None, reclaim=reclaim)
