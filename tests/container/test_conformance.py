"""Containers pass the checks that every provider has to pass."""

from __future__ import annotations

import pytest

import skyward as sky
from skyward.testing.conformance import ProviderConformance


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
