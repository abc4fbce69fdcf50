"""
The checks that every provider has to pass, for authors of one.

`python -m skyward.testing.conformance my_module:MyCloud` runs them; whatever follows is pytest's.
In a suite of one's own, a class below `ProviderConformance` says in a fixture what the provider is.

They rent real machines, one at a time and the cheapest there is, and end them also when a check fails.
"""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("skyward.testing.conformance.suite")

from skyward.testing.conformance.suite import ProviderConformance  # noqa: E402  # after the line above

__all__ = ["ProviderConformance"]
