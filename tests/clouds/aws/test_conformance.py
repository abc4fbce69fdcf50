"""EC2 passes the checks that every provider has to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from skyward.testing.conformance import ProviderConformance
from tests.clouds.aws.cloud import SECRET, Cloud

pytestmark = pytest.mark.clouds


@pytest.mark.timeout(120)
class TestAWS(ProviderConformance):
    """The test cloud."""

    @pytest.fixture
    def provider(self, aws: Cloud) -> Any:
        """Give it."""
        return aws.provider()

    @pytest.fixture
    def hidden(self) -> Sequence[str]:
        """Give the secret key."""
        return [SECRET]
