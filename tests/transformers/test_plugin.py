"""What the transformers plugin refuses before anything is rented, and what it gives nodes."""

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
        (
            [Torch(), Transformers(backend="gloo")],
            {},
            "backend='gloo' is asked of transformers, and the",
        ),
        (
            [Transformers("5.23.0")],
            {"image": Image(pip=["transformers[torch]"])},
            "says which transformers there is to be, and so does version=",
        ),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_rented(
    plugins: list[Any], changes: dict[str, Any], message: str
) -> None:
    """What Accelerate and torch refuse is refused by their own plugins, which come with this one."""
    plugins = [*completed(plugins)]
    with pytest.raises(ConfigError, match=message) as caught:
        validated(plugins, cluster(CPU, *plugins, **changes))
    assert ["Raised by plugin 'transformers' in validate."] == caught.value.__notes__


@pytest.mark.parametrize(
    ("plugins", "expected"),
    [
        ([Transformers()], (Torch(), Accelerate(), Transformers())),
        ([Transformers(backend="gloo")], (Torch(backend="gloo"), Accelerate(), Transformers(backend="gloo"))),
        ([Torch("gloo"), Transformers()], (Torch("gloo"), Accelerate(), Transformers())),
        ([Accelerate(version="1.15.0"), Transformers()], (Torch(), Accelerate(version="1.15.0"), Transformers())),
    ],
)
def test_it_brings_the_plugins_that_it_builds_on(plugins: list[Any], expected: tuple[Any, ...]) -> None:
    """Each before those that build on it; what the user says there holds."""
    assert expected == completed(plugins)


@pytest.mark.parametrize("late", [Torch(), Accelerate()])
def test_what_it_builds_on_stands_before_it(late: Any) -> None:
    """After it, it would be around less than it has to be."""
    with pytest.raises(ConfigError, match=f"'{late.name}' after 'transformers', which builds on it"):
        completed([Transformers(), late])


def test_a_backend_that_torch_lacks_is_refused_where_it_is_written() -> None:
    """With torch's own words."""
    with pytest.raises(ConfigError, match="names 'smoke', which torch does not have"):
        sky.plugins.transformers(backend="smoke")


def test_its_broadcasts_are_collective() -> None:
    """No rank can go on without the others."""
    assert topology(completed([Transformers()]), cluster(CPU)).collective


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
    there = completed(plugins)
    validated(there, cluster(offer, *there))
    image = transform_image(there, Image(), cluster(offer, *there))
    assert expected.split() == sorted(image.pip)
    assert [(f"{INDEX}/cpu", ("torch",))] == [(index.url, index.packages) for index in image.pip_indexes]


def test_ranks_of_one_machine_share_its_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with torch."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    context = LaunchContext(cluster=cluster(CPU, ranks_per_node=2), node=0, rank=0, lane=0)
    command = launch_command(completed([Transformers()]), LaunchCommand(argv=["python"]), context)
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
