"""Vast.ai passes the checks that every provider has to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from skyward.testing.conformance import ProviderConformance
from tests.clouds.vastai.cloud import Cloud

pytestmark = pytest.mark.clouds


@pytest.mark.timeout(120)
class TestVastAI(ProviderConformance):
    """The emulator."""

    @pytest.fixture
    def provider(self, vastai: Cloud) -> Any:
        """Give it."""
        return vastai.provider()

    @pytest.fixture
    def hidden(self, vastai: Cloud) -> Sequence[str]:
        """Give the account's key."""
        return [vastai.key]
