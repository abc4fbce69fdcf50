"""What the Keras plugin refuses before anything is rented, and what it gives nodes."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from attrs import evolve

import skyward as sky
from skyward import ConfigError, Image, PluginError, UsageError
from skyward.hookspecs import Cluster, LaunchCommand, LaunchContext, Offer
from skyward.plugin import completed, implements, launch_command, transform_image, validated
from skyward_keras.plugin import Keras

CPU = Offer(provider="cloud", instance_type="m7", vcpus=8)
JAX, TORCH, TENSORFLOW = map(sky.Plugin.create, ("jax", "torch", "tensorflow"))


def cluster(*plugins: Any, **wishes: Any) -> Cluster:
    spec = sky.Spec(plugins=plugins, **wishes)
    return Cluster(pool_id="a1", pool_name="train", spec=spec, provider="cloud", nodes=2, offer=CPU)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"backend": "theano"},
            "backend='theano' is none that Keras trains with; those are 'jax', 'tensorflow', 'torch'",
        ),
        ({"backend": "jax", "version": "newest"}, 'version must be a version such as "3.15.1"'),
    ],
)
def test_what_has_no_meaning_is_refused_where_it_is_written(settings: dict[str, Any], message: str) -> None:
    """The name that is wrong is in the error."""
    with pytest.raises(ConfigError, match=message):
        sky.plugins.keras(**settings)


@pytest.mark.parametrize(
    ("plugins", "wishes", "message"),
    [
        ([TORCH, Keras("jax")], {}, "backend='jax' and the plugin 'torch' are in one pool"),
        ([JAX, TORCH, Keras("jax")], {}, "backend='jax' and the plugin 'torch' are in one pool"),
        (
            [JAX, Keras("jax")],
            {"image": Image(env={"KERAS_BACKEND": "torch"})},
            "says KERAS_BACKEND=torch, and the plugin backend='jax'",
        ),
        (
            [JAX, Keras("jax", version="3.15.1")],
            {"image": Image(pip=["keras>=3"])},
            "says which keras there is to be, and so does version=",
        ),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_rented(
    plugins: list[Any], wishes: dict[str, Any], message: str
) -> None:
    """As a mistake of the user's, with the plugin's name."""
    (mine,) = [plugin for plugin in plugins if isinstance(plugin, Keras)]
    with pytest.raises(ConfigError, match=message) as caught:
        validated([mine], cluster(*plugins, **wishes))
    assert ["Raised by plugin 'keras' in validate."] == caught.value.__notes__


@pytest.mark.parametrize("beneath", [JAX, TORCH, TENSORFLOW])
def test_it_stands_after_its_backends_plugin(beneath: sky.Plugin) -> None:
    """Whichever that is; what the user gives holds."""
    plugin = Keras(beneath.name)
    assert (beneath, plugin) == completed([beneath, plugin])
    validated([plugin], cluster(beneath, plugin, image=Image(env={"KERAS_BACKEND": beneath.name})))
    with pytest.raises(ConfigError, match=f"plugins has '{beneath.name}' after 'keras', which builds on it"):
        completed([plugin, beneath])


@pytest.mark.parametrize(("settings", "expected"), [({}, "jax"), ({"backend": "torch"}, "torch")])
def test_it_brings_its_backends_plugin(settings: dict[str, Any], expected: str) -> None:
    """JAX's, unless another backend is asked for."""
    plugin = sky.plugins.keras(**settings)
    assert (getattr(sky.plugins, expected)(), plugin) == completed([plugin])


@pytest.mark.parametrize(
    ("plugin", "offer", "expected"),
    [
        (Keras("jax"), CPU, "keras"),
        (Keras("torch", version="3.15.1"), CPU, "keras==3.15.1"),
        # A version that is not installed here is installed into an environment of the nodes'.
        (Keras("jax", version="0.0.1"), evolve(CPU, provider="local"), "keras==0.0.1"),
    ],
)
def test_nodes_get_the_package(plugin: Keras, offer: Offer, expected: str) -> None:
    """The backend's package is its own plugin's affair."""
    where = evolve(cluster(), offer=offer, provider=offer.provider)
    assert (expected,) == transform_image([plugin], Image(), where).pip


def test_workers_begin_with_the_backend_chosen() -> None:
    """Whichever process loads Keras first."""
    context = LaunchContext(cluster=cluster(), node=0, rank=0, lane=0)
    command = launch_command([Keras("torch")], LaunchCommand(argv=["python"], env={"A": "1"}), context)
    assert {"A": "1", "KERAS_BACKEND": "torch"} == dict(command.env)


def test_it_travels() -> None:
    """Nodes get an equal value."""
    plugin = Keras("jax", version="3.15.1")
    assert plugin == pickle.loads(pickle.dumps(plugin))
    assert implements([plugin], "decorate")


def test_the_decorator_needs_brackets() -> None:
    """As all integrations do."""
    with pytest.raises(UsageError, match=r"@sky\.integrations\.keras needs brackets"):
        sky.integrations.keras(sky.function(len))


@sky.integrations.keras(backend="jax")
@sky.function
def trains() -> None:
    """Never gets this far without Keras."""


@pytest.mark.slow
@pytest.mark.skipif("__import__('importlib.util').util.find_spec('keras') is not None", reason="Keras is here")
def test_a_node_without_keras_names_the_plugin() -> None:
    """The error says what to give the pool."""
    with sky.Compute(console="silent") as pool, pytest.raises(PluginError) as caught:
        trains() >> pool
    assert "sky.integrations.keras() needs keras, which is not installed where the call runs" in str(caught.value)
    assert "plugins=[sky.plugins.keras(...)]" in str(caught.value)
