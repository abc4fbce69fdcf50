"""
What a provider tells about itself and its machines.
"""

from __future__ import annotations

from typing import Any

import pytest

from skyward.errors import ConfigError
from skyward.model.instances.cluster import Cluster
from skyward.model.instances.machine import Instance, InstanceState, LaunchRequest, LocalAddress, ProviderFacts
from skyward.model.instances.offer import Offer
from skyward.model.instances.tags import Tags
from skyward.model.spec.spec import Spec

CLUSTER = Cluster(
    pool_id="a1",
    pool_name="train",
    spec=Spec(),
    offer=Offer(provider="aws", instance_type="small"),
    provider="aws",
    nodes=3,
)


def test_machines_are_hashable_values() -> None:
    """Two reports of the same machine are equal, and lists in them are frozen."""
    one, other = (Instance(id="i-1", node=0, provider="aws", state=InstanceState.PENDING) for _ in range(2))
    assert {one} == {other}
    assert (2, 0) == LaunchRequest(cluster=CLUSTER, nodes=[2, 0], token="t").nodes
    assert ("a", "b") == ProviderFacts(name="x", ends_own_bill=True, regions=["a", "b"]).regions


def test_a_request_says_what_is_written_on_each_machine() -> None:
    """The pool at least, the request, and the node."""
    request = LaunchRequest(cluster=CLUSTER, nodes=[2, 0], token="t")
    assert request.tags_of(2) == Tags(pool_id="a1", pool_name="train", node=2, token="t")


@pytest.mark.parametrize("wrong", [-1, float("nan"), "soon", None])
def test_offers_are_kept_for_a_length_of_time(wrong: Any) -> None:
    """None at all is one, and less than that is none."""
    assert 0 == ProviderFacts(name="x", ends_own_bill=True, offers_ttl_s=0).offers_ttl_s
    with pytest.raises(ConfigError, match="offers_ttl_s"):
        ProviderFacts(name="x", ends_own_bill=True, offers_ttl_s=wrong)


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


@pytest.mark.parametrize("wrong", [None, 1, "yes", "always", ""])
def test_ends_own_bill_has_three_values(wrong: Any) -> None:
    """Machines always, only once they run, or never."""
    for answer in (True, "running", False):
        assert answer == ProviderFacts(name="x", ends_own_bill=answer).ends_own_bill
    with pytest.raises(ConfigError, match=r"ends_own_bill must be True, .running. or False"):
        ProviderFacts(name="x", ends_own_bill=wrong)
