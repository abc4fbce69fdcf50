"""Verda passes the checks that every provider has to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from skyward.testing.conformance import ProviderConformance
from tests.clouds.verda.cloud import CLIENT_SECRET, Cloud

pytestmark = pytest.mark.clouds


@pytest.mark.timeout(120)
class TestVerda(ProviderConformance):
    """The test cloud."""

    @pytest.fixture
    def provider(self, verda: Cloud) -> Any:
        """Give it."""
        return verda.provider()

    @pytest.fixture
    def hidden(self) -> Sequence[str]:
        """Give the secret."""
        return [CLIENT_SECRET, "access-", "refresh-"]
