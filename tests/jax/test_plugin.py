"""What the JAX plugin refuses before anything is rented, and what it gives nodes."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from attrs import evolve

import skyward as sky
from skyward import ConfigError, Image, PluginError, UsageError
from skyward.hookspecs import Cluster, LaunchCommand, LaunchContext, Offer
from skyward.plugin import implements, launch_command, topology, transform_image, validated
from skyward_jax.places import devices, is_met
from skyward_jax.plugin import Jax

CPU = Offer(provider="cloud", instance_type="m7", vcpus=8)
GPU = Offer(provider="cloud", instance_type="p5", vcpus=16, accelerator_name="H100", accelerator_count=8)
AMD = Offer(provider="cloud", instance_type="mi", accelerator_name="MI300X", accelerator_count=8)


def cluster(offer: Offer, **changes: Any) -> Cluster:
    about = {"pool_id": "a1", "pool_name": "train", "spec": sky.Spec(), "provider": offer.provider, "nodes": 2}
    return Cluster(offer=offer, **{**about, **changes})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cuda": "11"}, "cuda='11' names no release of CUDA that JAX has wheels for; it has them for 12 and 13"),
        ({"cuda": "newest"}, "cuda='newest' names no release"),
        ({"cuda": True}, "cuda=True names no release"),
        ({"version": "newest"}, 'version must be a version such as "0.10.2"'),
        ({"hang_timeout": -1}, "hang_timeout must be a number of seconds above 0, not -1"),
    ],
)
def test_what_has_no_meaning_is_refused_where_it_is_written(settings: dict[str, Any], message: str) -> None:
    """The name that is wrong is in the error."""
    with pytest.raises(ConfigError, match=message):
        sky.plugins.jax(**settings)


@pytest.mark.parametrize("spelt", ["12", "12.8", "cuda12", "cu124", 12])
def test_a_release_of_cuda_has_several_spellings(spelt: Any) -> None:
    """Also the one that JAX's own packages have."""
    assert Jax(cuda="12") == Jax(cuda=spelt)


@pytest.mark.parametrize(
    ("plugin", "where", "message"),
    [
        (Jax(cuda="12"), cluster(CPU), "cuda='12' needs NVIDIA's GPUs, and the nodes have none"),
        (Jax(), cluster(AMD), "Which wheels of JAX suit MI300X is not known here"),
        (Jax(), cluster(CPU, nodes_reach_each_other=False), "machines of cloud have no network between them"),
        (Jax(), cluster(CPU, worker=sky.Worker(concurrency=2)), "concurrency=2 asks for several tasks at once"),
        (Jax(), cluster(GPU, ranks_per_node=3), "3 ranks on a node cannot share its 8 accelerators evenly"),
        (
            Jax(version="0.10.2"),
            cluster(CPU, spec=sky.Spec(image=Image(pip=["jax[cuda12]==0.9"]))),
            "says which jax there is to be, and so does version=",
        ),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_rented(plugin: Jax, where: Cluster, message: str) -> None:
    """As a mistake of the user's, with the plugin's name."""
    with pytest.raises(ConfigError, match=message) as caught:
        validated([plugin], where)
    assert ["Raised by plugin 'jax' in validate."] == caught.value.__notes__


@pytest.mark.parametrize("other", ["tensorflow", "torch"])
@pytest.mark.parametrize("first", [False, True])
def test_only_one_plugin_meets_at_the_heads_port(other: str, first: bool) -> None:
    """Both need the one that is kept free, in whatever order they stand."""
    plugins = [Jax(), getattr(sky.plugins, other)()][:: 1 if first else -1]
    ranks = " and of ".join(f"'{plugin.name}'" for plugin in plugins)
    with pytest.raises(ConfigError, match=f"The ranks of {ranks} meet at the same port of the head"):
        topology(plugins, cluster(CPU))


@pytest.mark.parametrize(
    ("plugin", "where"),
    [
        (Jax(cuda="13"), cluster(GPU)),
        (Jax(), cluster(GPU, ranks_per_node=4)),
        (Jax(), cluster(CPU, nodes=1, nodes_reach_each_other=False)),
        (Jax(), cluster(AMD, spec=sky.Spec(image=Image(pip=["jaxlib==0.9.0+rocm7"])))),
    ],
)
def test_what_can_work_is_not_refused(plugin: Jax, where: Cluster) -> None:
    """One node needs no network, and a spec that names wheels knows them."""
    validated([plugin], where)


def test_its_broadcasts_are_collective() -> None:
    """No rank can go on without the others; how many there are is the user's affair."""
    made = topology([Jax()], cluster(GPU))
    assert (True, None) == (made.collective, made.ranks_per_node)


@pytest.mark.parametrize(
    ("plugin", "offer", "expected"),
    [
        (Jax(), CPU, "jax"),
        (Jax(version="latest"), CPU, "jax"),
        (Jax(version="0.10.2"), CPU, "jax==0.10.2"),
        (Jax(), GPU, "jax[cuda12]"),
        (Jax(cuda="13", version="0.10.2"), GPU, "jax[cuda13]==0.10.2"),
        # A version that is not installed here is installed into an environment of the nodes'.
        (Jax(version="0.0.1"), evolve(CPU, provider="local"), "jax==0.0.1"),
    ],
)
def test_nodes_get_the_wheels_for_their_machine(plugin: Jax, offer: Offer, expected: str) -> None:
    """The offer that was chosen decides."""
    assert (expected,) == transform_image([plugin], Image(), cluster(offer)).pip


def test_what_the_image_names_holds() -> None:
    """It is not asked for twice."""
    image = Image(pip=["jax[cuda13]==0.9"])
    assert image == transform_image([Jax()], image, cluster(GPU))


@pytest.mark.parametrize(
    ("place", "own_device", "expected"),
    [
        ({}, False, None),
        ({"accelerators": 8}, False, None),
        ({"accelerators": 8, "workers_per_node": 2, "worker": 0}, False, [0, 1, 2, 3]),
        ({"accelerators": 8, "workers_per_node": 2, "worker": 1}, False, [4, 5, 6, 7]),
        ({"accelerators": 2, "workers_per_node": 2, "worker": 1}, True, None),
        ({"accelerators": 0, "workers_per_node": 2, "worker": 1}, False, None),
    ],
)
def test_ranks_of_one_machine_share_its_accelerators(
    place: dict[str, Any], own_device: bool, expected: list[int] | None
) -> None:
    """A rank that is shown only its own has that as number 0."""
    assert expected == devices(sky.InstanceInfo(**place), own_device=own_device)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, True),
        ({"coordinator_address": "10.0.0.1:99", "num_processes": 4, "process_id": 3}, True),
        ({"num_processes": 2}, False),
        ({"process_id": 0}, False),
    ],
)
def test_a_world_is_the_one_that_is_asked_for(asked: dict[str, object], expected: bool) -> None:
    """If rank and size are, wherever its ranks were to meet."""
    assert expected is is_met(asked, rank=3, ranks=4)


def test_it_travels() -> None:
    """Nodes get an equal value."""
    plugin = Jax(cuda="12", version="0.10.2")
    assert plugin == pickle.loads(pickle.dumps(plugin))
    assert implements([plugin], "decorate")


def test_the_decorator_needs_brackets() -> None:
    """As all integrations do."""
    with pytest.raises(UsageError, match=r"@sky\.integrations\.jax needs brackets"):
        sky.integrations.jax(sky.function(len))


@sky.integrations.jax()
@sky.function
def trains() -> None:
    """Never gets this far without JAX."""


@pytest.mark.slow
@pytest.mark.skipif("__import__('importlib.util').util.find_spec('jax') is not None", reason="JAX is here")
def test_a_node_without_jax_names_the_plugin() -> None:
    """The error says what to give the pool."""
    with sky.Compute(console="silent") as pool, pytest.raises(PluginError) as caught:
        trains() >> pool
    assert "sky.integrations.jax() needs jax, which is not installed where the call runs" in str(caught.value)
    assert "plugins=[sky.plugins.jax(...)]" in str(caught.value)


@pytest.mark.parametrize(
    ("provider", "nodes", "per_node", "said", "expected"),
    [
        ("cloud", 2, 1, {}, None),
        ("local", 1, 1, {}, None),
        ("local", 2, 1, {}, "cpu"),
        ("local", 1, 2, {}, "cpu"),
        ("local", 2, 1, {"JAX_PLATFORMS": "cuda"}, "cuda"),
    ],
)
def test_several_ranks_of_this_machine_do_not_meet_on_its_gpus(
    provider: str, nodes: int, per_node: int, said: dict[str, str], expected: str | None
) -> None:
    """NCCL takes one rank a GPU, and JAX has nothing else there; what the image says holds."""
    where = cluster(evolve(CPU, provider=provider), nodes=nodes, ranks_per_node=per_node)
    context = LaunchContext(cluster=where, node=0, rank=0, lane=0)
    command = launch_command([Jax()], LaunchCommand(argv=["python"], env=said), context)
    assert command.env.get("JAX_PLATFORMS") == expected


def test_what_the_client_s_environment_says_of_platforms_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes of this machine inherit it."""
    monkeypatch.setenv("JAX_PLATFORMS", "cuda")
    context = LaunchContext(cluster=cluster(evolve(CPU, provider="local")), node=0, rank=0, lane=0)
    assert dict(launch_command([Jax()], LaunchCommand(argv=["python"]), context).env) == {}
