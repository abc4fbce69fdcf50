"""Which hosts nodes take: their own, or another one that is free where that is to be avoided."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

import skyward as sky
from skyward.model.instances.cluster import Cluster
from skyward.model.instances.machine import LaunchRequest
from skyward.model.instances.offer import Offer

HOSTS = ["a", "b", "c"]
CLUSTER = Cluster(
    pool_id="p",
    pool_name="pool",
    spec=sky.Spec(),
    offer=Offer(provider="ssh", instance_type="a"),
    provider="ssh",
    nodes=1,
)


def taken(nodes: Sequence[int], *avoid: str) -> list[str]:
    """Return the hosts that nodes get."""
    request = LaunchRequest(cluster=CLUSTER, nodes=tuple(nodes), token="t", avoid=avoid)
    instances = asyncio.run(sky.SSH(hosts=HOSTS).skyward_launch(request, None))
    assert [*nodes] == [instance.node for instance in instances]
    return [instance.id for instance in instances]


def test_each_node_has_a_host_of_its_own() -> None:
    """As long as nothing speaks against it."""
    assert ["a", "b"] == taken([0, 1])


def test_a_host_to_be_avoided_is_passed_over() -> None:
    """Another one that no node has takes its place, the last one first."""
    assert ["c"] == taken([0], "a")
    assert ["b"] == taken([0], "a", "c")
    assert ["c", "b"] == taken([0, 1], "a")


def test_where_no_host_is_left_nothing_is_taken() -> None:
    """The pool asks again later."""
    with pytest.raises(sky.CapacityError, match="None of the 3 hosts is left"):
        taken([0], *HOSTS)
    with pytest.raises(sky.CapacityError, match="only 3 hosts"):
        taken([3])
