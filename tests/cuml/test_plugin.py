"""What the cuml plugin refuses before anything is rented, and what it gives nodes."""

from __future__ import annotations

import pickle
import re
from typing import Any

import pytest
from attrs import evolve

import skyward as sky
from skyward import ConfigError, Image, PipIndex, UsageError
from skyward.hookspecs import Cluster, Offer
from skyward.plugin import transform_image, validated
from skyward_cuml.plugin import INDEX, Cuml

CPU = Offer(provider="cloud", instance_type="m7", vcpus=8)
L4 = Offer(provider="cloud", instance_type="g6", accelerator_name="L4", accelerator_count=1)
V100 = evolve(L4, accelerator_name="V100")
HERE = Offer(provider="local", instance_type="here")


def cluster(offer: Offer, **changes: Any) -> Cluster:
    about: dict[str, Any] = {"pool_id": "a1", "pool_name": "fit", "spec": sky.Spec(), "nodes": 1}
    return Cluster(offer=offer, provider=offer.provider, **{**about, **changes})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cuda": "11.8"}, 'cuda=\'11.8\' is no release of CUDA that cuML is built for; those are "12" and "13".'),
        ({"cuda": True}, "cuda=True is no release of CUDA"),
        ({"version": "newest"}, 'version must be a version such as "26.10.0", or "latest", not \'newest\''),
        ({"accelerate": "yes"}, "accelerate must be True or False, not 'yes'"),
    ],
)
def test_what_has_no_meaning_is_refused_where_it_is_written(settings: dict[str, Any], message: str) -> None:
    """With the value that was given."""
    with pytest.raises(ConfigError, match=re.escape(message)):
        sky.plugins.cuml(**settings)


@pytest.mark.parametrize(
    ("plugin", "where", "message"),
    [
        (Cuml(), cluster(CPU), "cuML needs NVIDIA's GPUs, and the nodes have none. Ask for: accelerator=."),
        (Cuml(), cluster(evolve(L4, accelerator_name="MI300X")), "and the nodes have MI300X of AMD"),
        (
            Cuml(),
            cluster(evolve(L4, accelerator_name="P100")),
            "does not run on P100, which is of the generation Pascal",
        ),
        (
            Cuml("13"),
            cluster(V100),
            "V100, which is of the generation Volta. Ask for one of the generation Turing or newer, or take cuda=",
        ),
        (
            Cuml(version="26.10.0"),
            cluster(L4, spec=sky.Spec(image=Image(pip=["cuml-cu12==26.8.*"]))),
            "says which cuml-cu12 there is to be, and so does version=",
        ),
        (
            Cuml(cuda="12"),
            cluster(L4, spec=sky.Spec(image=Image(pip=["cuml-cu13"]))),
            "names cuml-cu13, and cuda='12' wants cuml-cu12",
        ),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_rented(plugin: Cuml, where: Cluster, message: str) -> None:
    """As a mistake of the user's."""
    with pytest.raises(ConfigError, match=re.escape(message)):
        validated([plugin], where)


@pytest.mark.parametrize(
    "where", [cluster(L4), cluster(V100), cluster(evolve(L4, accelerator_name="Quux")), cluster(HERE)]
)
def test_what_may_work_is_not_refused(where: Cluster) -> None:
    """What is unknown here, and what this machine has, is found out there."""
    validated([Cuml()], where)


@pytest.mark.parametrize(
    ("plugin", "image", "packages"),
    [
        (Cuml(), Image(), ("cuml-cu12",)),
        (Cuml(cuda="cu12", version="latest"), Image(), ("cuml-cu12",)),
        (Cuml("13.0", "26.8.0"), Image(pip=["polars"]), ("polars", "cuml-cu13==26.8.0")),
        (Cuml(), Image(pip=["cuml-cu12==26.6.*"]), ("cuml-cu12==26.6.*",)),
    ],
)
def test_nodes_get_the_package_for_their_cuda(plugin: Cuml, image: Image, packages: tuple[str, ...]) -> None:
    """From the usual index; what the image names is left as it is."""
    made = transform_image([plugin], image, cluster(L4))
    assert packages == made.pip
    assert () == made.pip_indexes


@pytest.mark.parametrize(
    ("version", "there"), [("25.8.0", True), ("24.12.0", True), ("25.10.0", False), ("26.2.0", False)]
)
def test_older_versions_come_from_nvidias_index(version: str, there: bool) -> None:
    """The usual one has them from 25.10 on."""
    made = transform_image([Cuml(version=version)], Image(), cluster(L4))
    assert (PipIndex(INDEX, ["cuml-cu12"]),) * there == made.pip_indexes


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_packages_of_sklearn_are_added_in_either_order(order: tuple[int, int]) -> None:
    """Each plugin brings its own."""
    both = (Cuml(), sky.plugins.sklearn("1.7.2"))
    made = transform_image([both[index] for index in order], Image(), cluster(L4))
    assert {"cuml-cu12", "scikit-learn==1.7.2"} <= set(made.pip)


def test_the_plugin_is_a_value_that_travels() -> None:
    """Equal settings make equal plugins."""
    plugin = sky.plugins.cuml(cuda="12.8", version="26.10.0")
    assert Cuml("12", "26.10.0") == plugin == pickle.loads(pickle.dumps(plugin))


def test_it_does_nothing_around_one_function() -> None:
    """So that no node waits for it to."""
    with pytest.raises(UsageError, match="Give it to the pool"):
        sky.integrations.cuml()(abs)
