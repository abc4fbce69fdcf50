"""What the mps plugin refuses before anything is rented."""

from __future__ import annotations

import pickle
import re
from typing import Any

import pytest
from attrs import evolve

import skyward as sky
from skyward import ConfigError, UsageError
from skyward.hookspecs import Cluster, Offer
from skyward.plugin import validated
from skyward_mps.plugin import Mps

CPU = Offer(provider="cloud", instance_type="m7", vcpus=8)
A100 = Offer(
    provider="cloud", instance_type="p4", accelerator_name="A100", accelerator_count=8, accelerator_memory_gb=80
)
HERE = Offer(provider="local", instance_type="here")


def cluster(offer: Offer, *, plugins: Any = (), **changes: Any) -> Cluster:
    about: dict[str, Any] = {"pool_id": "a1", "pool_name": "train", "provider": offer.provider, "nodes": 1}
    return Cluster(offer=offer, spec=sky.Spec(plugins=plugins), **{**about, **changes})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"active_thread_percentage": 0}, "active_thread_percentage must be more than 0 and at most 100, not 0"),
        ({"active_thread_percentage": 101}, "at most 100, not 101"),
        ({"active_thread_percentage": "25"}, "at most 100, not '25'"),
        ({"pinned_memory_limit": "much"}, "pinned_memory_limit must be an amount of memory, not 'much'"),
        ({"pinned_memory_limit": 0.0001}, "pinned_memory_limit must be 1 MB or more"),
    ],
)
def test_what_has_no_meaning_is_refused_where_it_is_written(settings: dict[str, Any], message: str) -> None:
    """With the value that was given."""
    with pytest.raises(ConfigError, match=re.escape(message)):
        sky.plugins.mps(**settings)


@pytest.mark.parametrize(
    ("plugin", "where", "message"),
    [
        (Mps(), cluster(CPU), "mps shares GPUs, and the nodes have none. Ask for: accelerator=."),
        (Mps(), cluster(evolve(A100, accelerator_name="MI300X")), "mps is NVIDIA's, and the nodes have MI300X of AMD"),
        (Mps(pinned_memory_limit="81GB"), cluster(A100), "pinned_memory_limit=81 GB is more than A100-80GB:8 has"),
        (Mps(), cluster(A100, ranks_per_node=49), "49 processes may want one GPU, and MPS takes 48 on A100"),
        (
            Mps(),
            cluster(
                A100, worker=sky.Worker(per_node="accelerator", concurrency=49, executor="process"), ranks_per_node=8
            ),
            "49 processes may want one GPU",
        ),
        (
            Mps(),
            cluster(evolve(A100, accelerator_name="P100", accelerator_memory_gb=16), ranks_per_node=17),
            "17 processes may want one GPU, and MPS takes 16 on P100",
        ),
        (Mps(), cluster(HERE, nodes=2), "2 nodes of sky.Local() are one machine"),
        (Mps(), cluster(A100, plugins=[sky.Plugin.create("mig")]), "the plugin 'mig' gives each a slice"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_rented(plugin: Mps, where: Cluster, message: str) -> None:
    """As a mistake of the user's."""
    with pytest.raises(ConfigError, match=re.escape(message)):
        validated([plugin], where)


@pytest.mark.parametrize(
    "where",
    [
        cluster(A100, ranks_per_node=48),
        cluster(A100, worker=sky.Worker(per_node="accelerator"), ranks_per_node=8),
        cluster(A100, worker=sky.Worker(concurrency=100)),
        cluster(HERE),
    ],
)
def test_what_can_work_is_not_refused(where: Cluster) -> None:
    """Threads of one process are one client."""
    validated([Mps(active_thread_percentage=12.5, pinned_memory_limit="80GB")], where)


def test_the_plugin_is_a_value_that_travels() -> None:
    """Equal settings make equal plugins."""
    plugin = sky.plugins.mps(active_thread_percentage=25, pinned_memory_limit="2GB")
    assert Mps(25, 2) == plugin == pickle.loads(pickle.dumps(plugin))


def test_a_limit_has_an_earlier_name() -> None:
    """Which means the same, and is not given beside it."""
    assert Mps(pinned_memory_limit=2) == sky.plugins.mps(pinned_memory="2GB")
    with pytest.raises(ConfigError, match="pinned_memory is pinned_memory_limit by an earlier name"):
        sky.plugins.mps(pinned_memory_limit="2GB", pinned_memory="2GB")


def test_it_does_nothing_around_one_function() -> None:
    """So that no node waits for it to."""
    with pytest.raises(UsageError, match="Give it to the pool"):
        sky.integrations.mps()(abs)
