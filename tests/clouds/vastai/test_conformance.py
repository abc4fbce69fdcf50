"""Vast.ai passes the checks that every provider has to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from skyward.hookspecs import Offer
from skyward.testing.conformance import ProviderConformance, Switches
from tests.clouds.switches import switches
from tests.clouds.vastai.cloud import Cloud
from tests.clouds.vastai.dialect import DIALECT

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

    @pytest.fixture
    def switches(self, vastai: Cloud, monkeypatch: pytest.MonkeyPatch) -> Switches:
        """Return the faults that the test cloud can inject."""
        monkeypatch.setattr("skyward_vastai.start.LEAST_DEADLINE", 1.0)

        def sell_out(_offer: Offer) -> None:
            for row in vastai.listings():
                vastai.listing(row["id"], rented=True)

        def raise_price(_offer: Offer) -> None:
            for row in vastai.listings():
                vastai.listing(row["id"], dph_base=2.0 * row["dph_base"], min_bid=2.0 * row["min_bid"])

        return switches(
            vastai,
            DIALECT,
            few_left=lambda _offer: len(DIALECT.nodes),
            sell_out=sell_out,
            raise_price=raise_price,
            small_pages=lambda: vastai.page(1),
            shows_stock=True,
            ttl=2.0,
        )
