"""Verda passes the checks that every provider has to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from skyward.hookspecs import Offer
from skyward.testing.conformance import ProviderConformance, Switches
from tests.clouds.switches import switches
from tests.clouds.verda.cloud import CLIENT_SECRET, Cloud
from tests.clouds.verda.dialect import DIALECT

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

    @pytest.fixture
    def switches(self, verda: Cloud) -> Switches:
        """Return the faults that the test cloud can inject."""

        def sell_out(offer: Offer) -> None:
            verda.ask("on_demand", {})
            verda.ask("spot", {})

        def raise_price(offer: Offer) -> None:
            dearer = {"price_per_hour": "9.5", "spot_price": "8.5"}
            verda.fault("GET /v1/instance-types", "edit", body=dearer, of={"instance_type": offer.instance_type})

        return switches(verda, DIALECT, sell_out=sell_out, raise_price=raise_price, shows_stock=True)
