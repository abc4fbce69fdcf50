"""What the torch plugin refuses before anything is rented, and what it gives nodes."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from attrs import evolve

import skyward as sky
from skyward import ConfigError, Image, PluginError, UsageError
from skyward.hookspecs import Cluster, LaunchCommand, LaunchContext, Offer
from skyward.plugin import implements, launch_command, topology, transform_image, validated
from skyward_torch.plugin import Torch
from skyward_torch.wheels import INDEX

CPU = Offer(provider="cloud", instance_type="m7", vcpus=8)
GPU = Offer(provider="cloud", instance_type="p5", vcpus=16, accelerator_name="H100", accelerator_count=2)
AMD = Offer(provider="cloud", instance_type="mi", accelerator_name="MI300X", accelerator_count=8)


def cluster(offer: Offer, **changes: Any) -> Cluster:
    about = {"pool_id": "a1", "pool_name": "train", "spec": sky.Spec(), "provider": offer.provider, "nodes": 2}
    return Cluster(offer=offer, **{**about, **changes})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"backend": "smoke"}, "names 'smoke', which torch does not have; it has 'gloo', 'mpi', 'nccl', 'ucc'"),
        ({"backend": "cpu:gloo,cuda:nickel"}, "names 'nickel', which torch does not have"),
        ({"cuda": "cu12"}, 'cuda must be a version of CUDA such as "12.8" or "cu128", not'),
        ({"version": "newest"}, "version must be a version"),
        ({"vision": ">=0.2"}, "vision must be a version"),
        ({"collective_timeout": 0}, "collective_timeout must be a finite number above zero, not 0"),
        ({"hang_timeout": 0}, "hang_timeout must be a number of seconds above 0, not 0"),
    ],
)
def test_what_has_no_meaning_is_refused_where_it_is_written(settings: dict[str, Any], message: str) -> None:
    """The name that is wrong is in the error."""
    with pytest.raises(ConfigError, match=message):
        sky.plugins.torch(**settings)


@pytest.mark.parametrize(
    ("plugin", "where", "message"),
    [
        (Torch(backend="nccl"), cluster(CPU), "backend='nccl' needs NVIDIA's GPUs, and the nodes have none"),
        (Torch(cuda="12.8"), cluster(CPU), "cuda='12.8' needs NVIDIA's GPUs"),
        (Torch(), cluster(AMD), "Which wheels of torch suit MI300X is not known here"),
        (Torch(), cluster(CPU, nodes_reach_each_other=False), "machines of cloud have no network between them"),
        (Torch(), cluster(CPU, worker=sky.Worker(concurrency=2)), "concurrency=2 asks for several tasks at once"),
        (
            Torch(version="2.13.0"),
            cluster(CPU, spec=sky.Spec(image=Image(pip=["torch==2.9"]))),
            "says which torch there is to be, and so does version=",
        ),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_rented(plugin: Torch, where: Cluster, message: str) -> None:
    """As a mistake of the user's, with the plugin's name."""
    with pytest.raises(ConfigError, match=message) as caught:
        validated([plugin], where)
    assert ["Raised by plugin 'torch' in validate."] == caught.value.__notes__


@pytest.mark.parametrize(
    ("plugin", "where"),
    [
        (Torch(backend="nccl", cuda="12.8"), cluster(GPU)),
        (Torch(backend="cpu:gloo,cuda:nccl"), cluster(GPU)),
        (Torch(), cluster(CPU, nodes=1, nodes_reach_each_other=False)),
        (Torch(), cluster(AMD, spec=sky.Spec(image=Image(pip=["torch==2.9.0+rocm6.4"])))),
    ],
)
def test_what_can_work_is_not_refused(plugin: Torch, where: Cluster) -> None:
    """One node needs no network, and a spec that names wheels knows them."""
    validated([plugin], where)


def test_its_broadcasts_are_collective() -> None:
    """No rank can go on without the others; how many there are is the user's affair."""
    made = topology([Torch()], cluster(GPU))
    assert (True, None) == (made.collective, made.ranks_per_node)


def test_the_defaults_of_the_seeds_are_taken() -> None:
    """As they are printed there."""
    plugin = sky.plugins.torch(backend=None, cuda="cu128", version="latest", vision=None, audio=None)
    assert Torch(cuda="12.8") == plugin
    (index,) = transform_image([plugin], Image(), cluster(GPU)).pip_indexes
    assert f"{INDEX}/cu128" == index.url


def test_nodes_get_the_build_for_their_machine() -> None:
    """The offer that was chosen decides."""
    images = [transform_image([Torch(version="2.13.0")], Image(), cluster(offer)) for offer in (CPU, GPU)]
    assert [("torch==2.13.0",)] * 2 == [image.pip for image in images]
    assert [[f"{INDEX}/cpu"], []] == [[index.url for index in image.pip_indexes] for image in images]


def test_nodes_on_this_machine_get_what_it_lacks() -> None:
    """A version that is not installed here is installed into an environment of theirs."""
    here = cluster(evolve(CPU, provider="local"))
    assert ("torch==0.0.1",) == transform_image([Torch(version="0.0.1")], Image(), here).pip


@pytest.mark.parametrize(
    ("where", "env", "expected"),
    [
        (cluster(GPU, ranks_per_node=2), {}, "8"),
        (cluster(GPU, ranks_per_node=2), {"OMP_NUM_THREADS": "3"}, "3"),
        (cluster(GPU), {}, None),
        (cluster(evolve(CPU, provider="local"), ranks_per_node=2), {}, "2"),
    ],
)
def test_ranks_of_one_machine_share_its_processors(
    where: Cluster, env: dict[str, str], expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All ranks of `Local` are on one machine."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(8), raising=False)
    context = LaunchContext(cluster=where, node=0, rank=0, lane=0)
    command = launch_command([Torch()], LaunchCommand(argv=["python"], env=env), context)
    assert expected == command.env.get("OMP_NUM_THREADS")


def test_it_travels() -> None:
    """Nodes get an equal value."""
    plugin = Torch(backend="gloo", version="2.13.0")
    assert plugin == pickle.loads(pickle.dumps(plugin))
    assert implements([plugin], "decorate")


def test_the_decorator_needs_brackets() -> None:
    """As all integrations do."""
    with pytest.raises(UsageError, match=r"@sky\.integrations\.torch needs brackets"):
        sky.integrations.torch(sky.function(len))


@sky.integrations.torch()
@sky.function
def trains() -> None:
    """Never gets this far without torch."""


@pytest.mark.slow
@pytest.mark.skipif("__import__('importlib.util').util.find_spec('torch') is not None", reason="torch is here")
def test_a_node_without_torch_names_the_plugin() -> None:
    """The error says what to give the pool."""
    with sky.Compute(console="silent") as pool, pytest.raises(PluginError) as caught:
        trains() >> pool
    assert "sky.integrations.torch() needs torch, which is not installed where the call runs" in str(caught.value)
    assert "plugins=[sky.plugins.torch(...)]" in str(caught.value)
