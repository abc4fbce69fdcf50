"""What pytest collects for a provider that is named on the command line."""

from __future__ import annotations

from skyward.testing.conformance.suite import ProviderConformance


class TestProvider(ProviderConformance):
    """Hold the provider of `--skyward-provider` to what every provider has to do."""
