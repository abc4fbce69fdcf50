"""What the accelerate plugin refuses before anything is rented, and what it gives nodes."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from attrs import evolve

import skyward as sky
from skyward import ConfigError, Image, PluginError
from skyward.hookspecs import Cluster, LaunchCommand, LaunchContext, Offer
from skyward.plugin import completed, implements, launch_command, topology, transform_image, validated
from skyward_accelerate.plugin import Accelerate
from skyward_torch.plugin import Torch
from skyward_torch.wheels import INDEX

CPU = Offer(provider="cloud", instance_type="m7", vcpus=8)
GPU = Offer(provider="cloud", instance_type="p5", vcpus=16, accelerator_name="H100", accelerator_count=2)


def cluster(offer: Offer, *plugins: Any, image: Image | None = None, **changes: Any) -> Cluster:
    spec = sky.Spec(plugins=plugins, image=image or Image())
    about = {"pool_id": "a1", "pool_name": "train", "spec": spec, "provider": offer.provider, "nodes": 2}
    return Cluster(offer=offer, **{**about, **changes})


def image_of(offer: Offer, *plugins: Any) -> Image:
    there = completed(plugins)
    return transform_image(there, Image(), cluster(offer, *there))


@pytest.mark.parametrize("version", ["newest", ">=1"])
def test_what_is_no_version_is_refused_where_it_is_written(version: str) -> None:
    """Before anything is rented to try it."""
    with pytest.raises(ConfigError, match="version must be a version"):
        sky.plugins.accelerate(version=version)


@pytest.mark.parametrize(
    ("plugins", "offer", "changes", "message"),
    [
        ([Accelerate({"deepspeed": True})], CPU, {}, "deepspeed needs GPUs, and the nodes have none"),
        ([Accelerate({"fsdp": True})], CPU, {}, "fsdp needs GPUs, and the nodes have none"),
        ([Accelerate({"mixed_precision": "fp16"})], CPU, {}, "mixed_precision='fp16' needs GPUs"),
        (
            [Accelerate(version="1.15.0")],
            CPU,
            {"image": Image(pip=["Accelerate>=1"])},
            "says which accelerate there is to be, and so does version=",
        ),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_rented(
    plugins: list[Any], offer: Offer, changes: dict[str, Any], message: str
) -> None:
    """What torch refuses is refused by its own plugin, which comes with this one."""
    plugins = [*completed(plugins)]
    with pytest.raises(ConfigError, match=message) as caught:
        validated(plugins, cluster(offer, *plugins, **changes))
    assert ["Raised by plugin 'accelerate' in validate."] == caught.value.__notes__


@pytest.mark.parametrize(
    ("plugins", "offer"),
    [
        ([Accelerate({"mixed_precision": "bf16"})], CPU),
        ([Accelerate({"deepspeed": True, "mixed_precision": "fp16"})], GPU),
        ([Torch(backend="nccl"), Accelerate({"fsdp": {"version": 2}})], GPU),
        ([Accelerate({"deepspeed": True})], evolve(CPU, provider="local")),
    ],
)
def test_what_can_work_is_not_refused(plugins: list[Any], offer: Offer) -> None:
    """What this machine has is found out when the pool is opened."""
    there = completed(plugins)
    validated(there, cluster(offer, *there))


def test_it_brings_torchs_plugin() -> None:
    """Which stands before it; what the user says there holds."""
    plugin, torch = Accelerate(), Torch(backend="gloo")
    assert (Torch(), plugin) == completed([plugin])
    assert (torch, plugin) == completed([torch, plugin])
    with pytest.raises(ConfigError, match=r"'torch' after 'accelerate', which builds on it\. Swap them"):
        completed([plugin, torch])


def test_its_broadcasts_are_collective() -> None:
    """No rank can go on without the others."""
    assert topology(completed([Accelerate()]), cluster(CPU)).collective


@pytest.mark.parametrize(
    ("plugins", "offer", "expected"),
    [
        ([Accelerate()], CPU, ("accelerate", "torch")),
        ([Accelerate(version="1.15.0")], GPU, ("accelerate==1.15.0", "torch")),
        ([Torch(version="2.13.0"), Accelerate()], GPU, ("torch==2.13.0", "accelerate")),
        ([Accelerate({"deepspeed": True})], GPU, ("accelerate", "deepspeed", "torch")),
        # Nothing of this is here, so that an environment is made, which has to have all of it.
        ([Accelerate(version="0.0.1")], evolve(CPU, provider="local"), ("accelerate==0.0.1", "torch")),
        ([Torch(), Accelerate(version="0.0.1")], evolve(CPU, provider="local"), ("accelerate==0.0.1", "torch")),
    ],
)
def test_nodes_get_what_is_missing(plugins: list[Any], offer: Offer, expected: tuple[str, ...]) -> None:
    """PyTorch comes with it, in the build that the pool's own plugin for it says."""
    image = image_of(offer, *plugins)
    assert sorted(expected) == sorted(image.pip)
    assert ([] if offer is GPU else [f"{INDEX}/cpu"]) == [index.url for index in image.pip_indexes]


def test_ranks_of_one_machine_share_its_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with torch, whose plugin may have done it already."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    context = LaunchContext(cluster=cluster(CPU, ranks_per_node=2), node=0, rank=0, lane=0)
    command = LaunchCommand(argv=["python"])
    assert "4" == launch_command(completed([Accelerate()]), command, context).env["OMP_NUM_THREADS"]
    assert "4" == launch_command([Torch(), Accelerate()], command, context).env["OMP_NUM_THREADS"]


def test_it_travels() -> None:
    """Nodes get an equal value."""
    plugin = Accelerate({"fsdp": {"transformer_layer_cls_to_wrap": ["Block"]}}, version="1.15.0")
    assert plugin == pickle.loads(pickle.dumps(plugin))
    assert implements([plugin], "decorate")


@sky.integrations.accelerate()
@sky.function
def trains() -> None:
    """Never gets this far without Accelerate."""


@pytest.mark.slow
@pytest.mark.skipif("__import__('importlib.util').util.find_spec('accelerate') is not None", reason="it is here")
def test_a_node_without_accelerate_names_the_plugin() -> None:
    """The error says what to give the pool."""
    with sky.Compute(console="silent") as pool, pytest.raises(PluginError) as caught:
        trains() >> pool
    assert "sky.integrations.accelerate() needs torch, which is not installed where the call runs" in str(caught.value)
    assert "plugins=[sky.plugins.accelerate(...)]" in str(caught.value)
