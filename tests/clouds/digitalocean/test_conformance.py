"""DigitalOcean passes the checks that every provider has to, on droplets with GPUs and without."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from skyward.hookspecs import Offer
from skyward.model.spec.spec import Spec
from skyward.testing.conformance import ProviderConformance, Switches
from tests.clouds.digitalocean.cloud import CPU, GPU, TOKEN, Cloud
from tests.clouds.digitalocean.dialect import DIALECT
from tests.clouds.switches import switches
from tests.seeds import some

pytestmark = pytest.mark.clouds


@pytest.mark.timeout(120)
@pytest.mark.parametrize("machine", some("kinds of droplets", [CPU, GPU]))
class TestDigitalOcean(ProviderConformance):
    """The test cloud."""

    @pytest.fixture
    def provider(self, ocean: Cloud) -> Iterator[Any]:
        """Give it, and fail a test that leaves a key there."""
        provider = ocean.provider()
        # The test cloud has no limit of 5000 calls an hour, for which a list is shared for two seconds.
        provider._account.inventory.lists_hold = 0.25
        yield provider
        assert [] == ocean.ssh_keys()

    @pytest.fixture
    def spec(self, provider: Any, machine: str) -> Spec:
        """Ask for one size."""
        return Spec(provider=provider, machine=machine)

    @pytest.fixture
    def hidden(self) -> Sequence[str]:
        """Give the token."""
        return [TOKEN]

    @pytest.fixture
    def switches(self, ocean: Cloud) -> Switches:
        """Return the faults that the test cloud can inject."""

        def few_left(offer: Offer) -> int:
            ocean.set(stock={f"{offer.instance_type}/{offer.region}": 1})
            return 3

        def raise_price(offer: Offer) -> None:
            ocean.fault("GET /v2/sizes", "edit", body={"price_hourly": 9.5}, of={"slug": offer.instance_type})

        return switches(
            ocean,
            DIALECT,
            few_left=few_left,
            sell_out=lambda offer: ocean.set(stock={f"{offer.instance_type}/{offer.region}": 0}),
            raise_price=raise_price,
            small_pages=lambda: ocean.set(largest_page=1),
        )
