"""What the tensorflow plugin refuses before anything is rented, and what it gives nodes."""

from __future__ import annotations

import pickle
from importlib.util import find_spec
from typing import Any

import pytest
from attrs import evolve

import skyward as sky
from skyward import ConfigError, Image, PluginError, UsageError
from skyward.hookspecs import Cluster, Offer, Topology
from skyward.plugin import topology, transform_image, validated
from skyward_tensorflow.plugin import TensorFlow

CPU = Offer(provider="cloud", instance_type="m7", vcpus=8)
GPU = Offer(provider="cloud", instance_type="p5", vcpus=16, accelerator_name="H100", accelerator_count=2)
AMD = Offer(provider="cloud", instance_type="mi", accelerator_name="MI300X", accelerator_count=8)


def cluster(offer: Offer, **changes: Any) -> Cluster:
    about = {"pool_id": "a1", "pool_name": "train", "spec": sky.Spec(), "provider": offer.provider, "nodes": 2}
    return Cluster(offer=offer, **{**about, **changes})


@pytest.mark.parametrize("version", ["newest", ">=2", "", 2.21])
def test_what_is_no_version_is_refused_where_it_is_written(version: Any) -> None:
    """With one that would have been."""
    with pytest.raises(ConfigError, match=r'version must be a version such as "2\.21\.0", or "latest", not'):
        sky.plugins.tensorflow(version=version)


def test_what_is_no_time_is_refused_where_it_is_written() -> None:
    """As with torch and JAX."""
    with pytest.raises(ConfigError, match="hang_timeout must be a number of seconds above 0, not 'long'"):
        sky.plugins.tensorflow(hang_timeout="long")


@pytest.mark.parametrize(
    ("plugin", "where", "message"),
    [
        (TensorFlow(), cluster(AMD), "Which build of TensorFlow suits MI300X is not known here"),
        (TensorFlow(), cluster(CPU, nodes_reach_each_other=False), "machines of cloud have no network between them"),
        (TensorFlow(), cluster(CPU, worker=sky.Worker(concurrency=2)), "concurrency=2 asks for several tasks at once"),
        (
            TensorFlow(version="2.21.0"),
            cluster(CPU, spec=sky.Spec(image=Image(pip=["tensorflow==2.20"]))),
            r"says which tensorflow(-\w+)? there is to be, and so does version=",
        ),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_rented(
    plugin: TensorFlow, where: Cluster, message: str
) -> None:
    """As a mistake of the user's, with the plugin's name."""
    with pytest.raises(ConfigError, match=message) as caught:
        validated([plugin], where)
    assert ["Raised by plugin 'tensorflow' in validate."] == caught.value.__notes__


@pytest.mark.parametrize(
    "where",
    [
        cluster(GPU),
        cluster(CPU, nodes=1, nodes_reach_each_other=False),
        cluster(AMD, spec=sky.Spec(image=Image(pip=["tensorflow-rocm"]))),
    ],
)
def test_what_can_work_is_not_refused(where: Cluster) -> None:
    """One node needs no network, and a spec that names a package knows it."""
    validated([TensorFlow()], where)


def test_its_broadcasts_are_collective() -> None:
    """No rank can go on without the others; how many there are is the user's affair."""
    assert Topology(collective=True, meeting="tensorflow") == topology([TensorFlow()], cluster(GPU))


def test_beside_another_framework_s_ranks_it_is_refused() -> None:
    """They meet at the same port."""
    with pytest.raises(ConfigError, match="The ranks of 'torch' and of 'tensorflow' meet at the same port of the head"):
        topology([sky.plugins.torch(), TensorFlow()], cluster(CPU))


def test_nodes_get_the_build_for_their_machine() -> None:
    """The offer that was chosen decides; nodes on this machine get what it lacks."""
    here = cluster(evolve(CPU, provider="local"))
    images = [transform_image([TensorFlow(version="0.0.1")], Image(), at) for at in (cluster(CPU), cluster(GPU), here)]
    assert [("tensorflow-cpu==0.0.1",), ("tensorflow[and-cuda]==0.0.1",), ("tensorflow-cpu==0.0.1",)] == [
        image.pip for image in images
    ]


def test_it_travels() -> None:
    """Nodes get an equal value."""
    plugin = TensorFlow(version="2.21.0")
    assert plugin == pickle.loads(pickle.dumps(plugin))


def test_the_decorator_needs_brackets() -> None:
    """As all integrations do."""
    with pytest.raises(UsageError, match=r"@sky\.integrations\.tensorflow needs brackets"):
        sky.integrations.tensorflow(sky.function(len))


@sky.integrations.tensorflow()
@sky.function
def trains() -> None:
    """Never gets this far without TensorFlow."""


LACKING = pytest.mark.skipif(find_spec("tensorflow") is not None, reason="TensorFlow is here")


@pytest.mark.slow
@LACKING
def test_a_node_without_tensorflow_names_the_plugin() -> None:
    """The error says what to give the pool."""
    with sky.Compute(console="silent") as pool, pytest.raises(PluginError) as caught:
        trains() >> pool
    assert "sky.integrations.tensorflow() needs tensorflow, which is not installed where the call runs" in str(
        caught.value
    )
    assert "plugins=[sky.plugins.tensorflow(...)]" in str(caught.value)
