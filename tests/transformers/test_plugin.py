"""What the transformers plugin refuses before anything is rented, and what it gives nodes."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from attrs import evolve

import skyward as sky
from skyward import ConfigError, Image, PluginError
from skyward.hookspecs import Cluster, LaunchCommand, LaunchContext, Offer
from skyward.plugin import implements, launch_command, topology, transform_image, validated
from skyward_accelerate.plugin import Accelerate
from skyward_torch.plugin import Torch
from skyward_torch.wheels import INDEX
from skyward_transformers.plugin import Transformers

CPU = Offer(provider="cloud", instance_type="m7", vcpus=8)
HERE = evolve(CPU, provider="local")


def cluster(offer: Offer, *plugins: Any, image: Image | None = None, **changes: Any) -> Cluster:
    spec = sky.Spec(plugins=plugins, image=image or Image())
    about = {"pool_id": "a1", "pool_name": "train", "spec": spec, "provider": offer.provider, "nodes": 2}
    return Cluster(offer=offer, **{**about, **changes})


def test_what_is_no_version_is_refused_where_it_is_written() -> None:
    """Before anything is rented to try it."""
    with pytest.raises(ConfigError, match="version must be a version"):
        sky.plugins.transformers("newest")


@pytest.mark.parametrize(
    ("plugins", "changes", "message"),
    [
        ([Transformers(), Torch()], {}, "'torch' after 'transformers', which builds on it"),
        ([Transformers(), Accelerate()], {}, "'accelerate' after 'transformers', which builds on it"),
        ([Torch(), Transformers(), Accelerate()], {}, "'accelerate' after 'transformers', which builds on it"),
        ([Transformers()], {"nodes_reach_each_other": False}, "have no network between them"),
        ([Transformers()], {"worker": sky.Worker(concurrency=2)}, "concurrency=2 asks for several tasks at once"),
        (
            [Transformers("5.23.0")],
            {"image": Image(pip=["transformers[torch]"])},
            "says which transformers there are to be, and so does version=",
        ),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_rented(
    plugins: list[Any], changes: dict[str, Any], message: str
) -> None:
    """What Accelerate and torch refuse too, where they come with the plugin."""
    with pytest.raises(ConfigError, match=message) as caught:
        validated(plugins, cluster(CPU, *plugins, **changes))
    assert ["Raised by plugin 'transformers' in validate."] == caught.value.__notes__


def test_its_broadcasts_are_collective() -> None:
    """No rank can go on without the others."""
    assert topology([Transformers()], cluster(CPU)).collective


@pytest.mark.parametrize(
    ("plugins", "offer", "expected"),
    [
        ([Transformers()], CPU, "accelerate torch transformers"),
        ([Torch(version="2.13.0"), Transformers("5.23.0")], CPU, "accelerate torch==2.13.0 transformers==5.23.0"),
        ([Accelerate(version="1.15.0"), Transformers()], CPU, "accelerate==1.15.0 torch transformers"),
        ([Torch(), Accelerate(), Transformers("0.0.1")], HERE, "accelerate torch transformers==0.0.1"),
    ],
)
def test_nodes_get_what_is_missing(plugins: list[Any], offer: Offer, expected: str) -> None:
    """Each package in the version that the plugin says which is for it."""
    validated(plugins, cluster(offer, *plugins))
    image = transform_image(plugins, Image(), cluster(offer, *plugins))
    assert expected.split() == sorted(image.pip)
    assert [(f"{INDEX}/cpu", ("torch",))] == [(index.url, index.packages) for index in image.pip_indexes]


def test_ranks_of_one_machine_share_its_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with torch."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    context = LaunchContext(cluster=cluster(CPU, ranks_per_node=2), node=0, rank=0, lane=0)
    command = launch_command([Transformers()], LaunchCommand(argv=["python"]), context)
    assert "4" == command.env["OMP_NUM_THREADS"]


def test_it_travels() -> None:
    """Nodes get an equal value."""
    plugin = Transformers("5.23.0")
    assert plugin == pickle.loads(pickle.dumps(plugin))
    assert implements([plugin], "decorate")


@sky.integrations.transformers()
@sky.function
def trains() -> None:
    """Never gets this far without Transformers."""


@pytest.mark.slow
@pytest.mark.skipif("__import__('importlib.util').util.find_spec('transformers') is not None", reason="it is here")
def test_a_node_without_transformers_names_the_plugin() -> None:
    """The error says what to give the pool."""
    with sky.Compute(console="silent") as pool, pytest.raises(PluginError) as caught:
        trains() >> pool
    assert "sky.integrations.transformers() needs transformers, which is not installed where" in str(caught.value)
    assert "plugins=[sky.plugins.transformers(...)]" in str(caught.value)
