"""
What a provider tells about itself and its machines.
"""

from __future__ import annotations

from typing import Any

import pytest

from skyward.errors import ConfigError
from skyward.model.machine import Instance, InstanceState, LaunchRequest, LocalAddress, ProviderFacts


def test_machines_are_hashable_values() -> None:
    """Two reports of the same machine are equal, and lists in them are frozen."""
    one, other = (Instance(id="i-1", node=0, provider="aws", state=InstanceState.PENDING) for _ in range(2))
    assert {one} == {other}
    assert (2, 0) == LaunchRequest(cluster=None, nodes=[2, 0], token="t").nodes  # type: ignore[arg-type]
    assert ("a", "b") == ProviderFacts(name="x", ends_own_bill=True, regions=["a", "b"]).regions


@pytest.mark.parametrize("wrong", ["", " ", 3, None])
def test_a_provider_has_a_name(wrong: Any) -> None:
    """Errors have to name the provider."""
    with pytest.raises(ConfigError, match="name must"):
        ProviderFacts(name=wrong, ends_own_bill=True)


@pytest.mark.parametrize("wrong", ["", 3])
def test_an_address_on_this_machine_is_a_directory(wrong: Any) -> None:
    """A node has to have a place."""
    with pytest.raises(ConfigError, match="directory must"):
        LocalAddress(wrong)
