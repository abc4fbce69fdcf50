"""What pytest collects for a provider that is named on the command line."""

from __future__ import annotations

from skyward.testing.conformance.suite import ProviderConformance


class TestProvider(ProviderConformance):
    """Check the provider of `--skyward-provider`."""
