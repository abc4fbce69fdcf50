"""What the mig plugin refuses before anything is rented, and how it lays ranks out."""

from __future__ import annotations

import pickle
import re
from typing import Any

import pytest
from attrs import evolve

import skyward as sky
from skyward import ConfigError, UsageError
from skyward.engine.instances.blueprint import draw
from skyward.hookspecs import Cluster, LaunchCommand, LaunchContext, Offer, Topology
from skyward.plugin import launch_command, topology, transform_image, validated
from skyward_mig.plugin import Mig
from skyward_mig.profiles import shares
from skyward_torch.plugin import Torch

CPU = Offer(provider="cloud", instance_type="m7", vcpus=8)
A100 = Offer(
    provider="cloud", instance_type="p4", accelerator_name="A100", accelerator_count=8, accelerator_memory_gb=80
)
T4 = Offer(provider="cloud", instance_type="g4", accelerator_name="T4", accelerator_count=1)
HERE = Offer(provider="local", instance_type="here")


def cluster(offer: Offer, *, spec: sky.Spec | None = None, **changes: Any) -> Cluster:
    about: dict[str, Any] = {"pool_id": "a1", "pool_name": "train", "provider": offer.provider, "nodes": 1}
    return Cluster(offer=offer, spec=spec or sky.Spec(), **{**about, **changes})


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        ("3g.40", "profile='3g.40' is no MIG profile. Did you mean '3g.40gb'"),
        ("3g.41gb", "no MIG profile of any accelerator that is known here. Did you mean '3g.4"),
        ("half", "profile='half' is no MIG profile. A profile is written as \"3g.40gb\""),
        (7, "profile must be the name of a MIG profile, not 7"),
    ],
)
def test_what_is_no_profile_is_refused_where_it_is_written(profile: Any, message: str) -> None:
    """With the names that are nearest."""
    with pytest.raises(ConfigError, match=re.escape(message)):
        sky.plugins.mig(profile)


@pytest.mark.parametrize(
    ("plugin", "where", "message"),
    [
        (Mig("3g.40gb"), cluster(CPU), "mig cuts GPUs, and the nodes have none. Ask for: accelerator=."),
        (Mig("3g.40gb"), cluster(T4), "T4 cannot be cut into slices: it has no MIG. Those can: H100, H200"),
        (
            Mig("3g.47gb"),
            cluster(A100),
            "profile='3g.47gb' is no MIG profile of A100-80GB:8. Did you mean '3g.40gb'",
        ),
        (Mig("3g.47gb"), cluster(A100), "It has 1g.10gb (7), 1g.20gb (4), 2g.20gb (3), 3g.40gb (2)"),
        (
            Mig("3g.40gb"),
            cluster(evolve(A100, accelerator_name="Quux")),
            "Which MIG profiles Quux has is not known here",
        ),
        (
            Mig("3g.40gb"),
            cluster(evolve(A100, accelerator_count=0.5)),
            "have 0.5 of a GPU, and only a whole one can be cut",
        ),
        (
            Mig("3g.40gb"),
            cluster(A100, worker=sky.Worker(per_node=17), ranks_per_node=17),
            "per_node=17 asks for more ranks than there are slices: each node has 8 × A100, which is 16 × 3g.40gb",
        ),
        (
            Mig("3g.40gb"),
            cluster(A100, worker=sky.Worker(per_node="accelerator"), ranks_per_node=8),
            'per_node="accelerator" gives each rank a whole GPU',
        ),
        (Mig("3g.40gb"), cluster(HERE, nodes=2), "2 nodes of sky.Local() are one machine"),
        (Mig(), cluster(A100), "mig is not told into what to cut"),
        (
            Mig("3g.40gb"),
            cluster(A100, spec=sky.Spec(accelerator=sky.accelerators.A100(mig="1g.10gb"))),
            "mig is to cut into '3g.40gb', and accelerator= asks for '1g.10gb'",
        ),
        (
            Mig("3g.40gb"),
            cluster(A100, spec=sky.Spec(plugins=[sky.Plugin.create("mps")])),
            "A slice is to be had by one rank, and the plugin 'mps' has ranks share GPUs",
        ),
    ],
)
def test_what_cannot_be_cut_is_refused_before_anything_is_rented(plugin: Mig, where: Cluster, message: str) -> None:
    """As a mistake of the user's, with what is there instead; the layout of ranks, asked first, does not stumble."""
    topology([plugin], where)
    with pytest.raises(ConfigError, match=re.escape(message)):
        validated([plugin], where)


def test_slices_that_no_plugin_cuts_are_refused_before_anything_is_rented() -> None:
    """With the plugin that would."""
    wanted = sky.accelerators.A100(mig="1g.10gb")
    for plugins in ([], [Torch()]):
        with pytest.raises(ConfigError, match=r"asks for slices of 1g\.10gb.*sky\.plugins\.mig\(\)\].*skyward-mig"):
            draw(cluster(A100, spec=sky.Spec(accelerator=wanted, plugins=plugins)), A100)
    drawn = draw(cluster(A100, spec=sky.Spec(accelerator=wanted, plugins=[Mig()])), A100)
    assert 56 == drawn.cluster.ranks_per_node


@pytest.mark.parametrize(
    ("plugin", "where", "ranks"),
    [
        (Mig("3g.40gb"), cluster(A100), 16),
        (Mig("MIG 1g.10GB"), cluster(A100), 56),
        (Mig("1g.5gb"), cluster(evolve(A100, accelerator_memory_gb=40, accelerator_count=1)), 7),
        (Mig("7g.80gb"), cluster(evolve(A100, accelerator_memory_gb=None)), 8),
        (Mig(), cluster(A100, spec=sky.Spec(accelerator=sky.accelerators.A100(mig="2g.20gb"))), 24),
        (Mig("3g.40gb"), cluster(A100, worker=sky.Worker(per_node=4)), None),
        (Mig("3g.40gb"), cluster(HERE), None),
    ],
)
def test_each_slice_gets_a_rank_unless_the_user_says_how_many(plugin: Mig, where: Cluster, ranks: int | None) -> None:
    """On this machine the user always does: what GPUs it has is found out there."""
    assert Topology(ranks_per_node=ranks, partitions=True) == topology([plugin], where)
    validated([plugin], evolve(where, ranks_per_node=ranks or 4))


def test_another_plugin_that_wants_other_ranks_is_refused() -> None:
    """Both are named."""
    seven = sky.Plugin.create("seven").with_topology(lambda cluster: Topology(ranks_per_node=7))
    with pytest.raises(ConfigError, match="'mig' needs 16 ranks on each node, which plugin 'seven' with its 7 forbids"):
        topology([seven, Mig("3g.40gb")], cluster(A100))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_mig_and_torch_go_together_in_either_order(order: tuple[int, int]) -> None:
    """The slice is in the environment before the process starts, so that a program that looks for devices finds it."""
    both = (Mig("3g.40gb"), Torch())
    plugins = [both[index] for index in order]
    where = cluster(A100, spec=sky.Spec(plugins=plugins))
    both_say = Topology(ranks_per_node=16, collective=True, meeting="torch", partitions=True)
    assert both_say == topology(plugins, where)
    where = evolve(where, ranks_per_node=16)
    validated(plugins, where)
    assert "3g.40gb" == transform_image(plugins, sky.Image(), where).env["SKYWARD_MIG_PROFILE"]
    command = launch_command(
        plugins, LaunchCommand(argv=["python", "-m", "it"]), LaunchContext(cluster=where, node=0, rank=5, lane=5)
    )
    assert ("python", "-m", "it") == command.argv[-3:]
    assert "${SKYWARD_MIG_5:?}" in command.argv[2]
    # By it torch knows that a rank has a device to itself, which is number 0 to it.
    assert "5" == command.env["SKYWARD_DEVICE"]


@pytest.mark.parametrize(("ranks", "gpus", "expected"), [(16, 8, (2,) * 8), (5, 2, (3, 2)), (1, 4, (1, 0, 0, 0))])
def test_ranks_are_shared_out_evenly(ranks: int, gpus: int, expected: tuple[int, ...]) -> None:
    """The first GPUs have one more where it does not come out even."""
    assert expected == shares(ranks, gpus)


def test_the_plugin_is_a_value_that_travels() -> None:
    """Equal settings make equal plugins."""
    plugin = sky.plugins.mig(" 3G.40gb ")
    assert Mig(profile="3g.40gb") == plugin == pickle.loads(pickle.dumps(plugin))


def test_it_does_nothing_around_one_function() -> None:
    """So that no node waits for it to."""
    with pytest.raises(UsageError, match="Give it to the pool"):
        sky.integrations.mig("3g.40gb")(abs)
