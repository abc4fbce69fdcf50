"""
The conformance checks of providers, for authors of one.

`python -m skyward.testing.conformance my_module:MyCloud` runs them; whatever follows is pytest's.
In a suite of one's own, a class below `ProviderConformance` gives the provider in a fixture, and in another the
`Switches` of its test cloud, where it has one.

They launch real instances, three at most at a time and the cheapest there are, and terminate them also when a check
fails.
"""

from __future__ import annotations

import pytest

_ROOMS = ("fault_checks", "instance_checks", "pool_checks", "rental", "suite", "trial", "valid_offers")

pytest.register_assert_rewrite(*(f"skyward.testing.conformance.{room}" for room in _ROOMS))

from skyward.testing.conformance.suite import ProviderConformance  # noqa: E402  # after the lines above
from skyward.testing.conformance.switches import BookedInstance, Switches  # noqa: E402  # after the lines above

__all__ = ["BookedInstance", "ProviderConformance", "Switches"]
