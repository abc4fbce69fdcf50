"""RunPod passes the checks that every provider has to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from skyward.testing.conformance import ProviderConformance
from tests.clouds.runpod.cloud import Cloud

pytestmark = pytest.mark.clouds


@pytest.mark.timeout(120)
class TestRunPod(ProviderConformance):
    """The test cloud."""

    @pytest.fixture
    def provider(self, runpod: Cloud) -> Any:
        """Give it."""
        return runpod.provider(cloud="all")

    @pytest.fixture
    def hidden(self, runpod: Cloud) -> Sequence[str]:
        """Give the key."""
        return [runpod.key]
