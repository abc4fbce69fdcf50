"""EC2 passes the checks that every provider has to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from skyward.hookspecs import Offer
from skyward.testing.conformance import ProviderConformance, Switches
from tests.clouds.aws.cloud import SECRET, Cloud
from tests.clouds.aws.dialect import DIALECT
from tests.clouds.switches import switches

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

    @pytest.fixture
    def switches(self, aws: Cloud, monkeypatch: pytest.MonkeyPatch) -> Switches:
        """Return the faults that the test cloud can inject."""
        monkeypatch.setattr("skyward.plan.bootstrap.first_boot.LEAST_DEADLINE", 1.0)

        def sell_out(offer: Offer) -> None:
            aws.fault(
                "RunInstances", code="InsufficientInstanceCapacity", status=500, where={"type": offer.instance_type}
            )

        return switches(
            aws,
            DIALECT,
            no_login=lambda: aws.allow([]),
            sell_out=sell_out,
            raise_price=lambda offer: aws.dearer(**{offer.instance_type: 1.5}),
            slow=lambda seconds: aws.fault("*", "late", seconds=seconds),
            break_lists=lambda: aws.fault("DescribeInstances", **DIALECT.broken),
            ttl=2.0,
        )
