"""DigitalOcean passes the checks that every provider has to, on droplets with GPUs and without."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from skyward.model.spec.spec import Spec
from skyward.testing.conformance import ProviderConformance
from tests.clouds.digitalocean.cloud import CPU, GPU, TOKEN, Cloud

pytestmark = pytest.mark.clouds


@pytest.mark.timeout(120)
@pytest.mark.parametrize("machine", [CPU, GPU])
class TestDigitalOcean(ProviderConformance):
    """The test cloud."""

    @pytest.fixture
    def provider(self, ocean: Cloud) -> Iterator[Any]:
        """Give it, and fail a test that leaves a key there."""
        yield ocean.provider()
        assert [] == ocean.ssh_keys()

    @pytest.fixture
    def spec(self, provider: Any, machine: str) -> Spec:
        """Ask for one size."""
        return Spec(provider=provider, machine=machine)

    @pytest.fixture
    def hidden(self) -> Sequence[str]:
        """Give the token."""
        return [TOKEN]
