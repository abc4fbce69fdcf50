"""RunPod passes the checks that every provider has to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from skyward.testing.conformance import ProviderConformance, Switches
from tests.clouds.runpod.cloud import Cloud
from tests.clouds.runpod.dialect import DIALECT
from tests.clouds.switches import switches

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

    @pytest.fixture
    def switches(self, runpod: Cloud, monkeypatch: pytest.MonkeyPatch) -> Switches:
        """Return the faults that the test cloud can inject."""
        monkeypatch.setattr("skyward.plan.bootstrap.container_start.LEAST_DEADLINE", 1.0)
        return switches(
            runpod,
            DIALECT,
            sell_out=lambda offer: runpod.stock(**{offer.instance_type.partition(":")[0]: 0}),
            raise_price=lambda offer: runpod.fault("GET /v2/catalog/*", "edit", body={"securePerVcpu": 0.5}),
            shows_stock=True,
            ttl=2.0,
        )
