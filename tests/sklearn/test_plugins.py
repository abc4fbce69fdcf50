"""The packages that the plugins joblib and sklearn give nodes, and their versions."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import pytest

import skyward as sky
from skyward import Image, Spec, Worker
from skyward.hookspecs import Cluster, LaunchCommand, LaunchContext, Offer
from skyward.plugin import launch_command, transform_image

CLOUD = Offer(provider="cloud", instance_type="m7", vcpus=8)


def cluster(**changes: Any) -> Cluster:
    about: dict[str, Any] = {"pool_id": "a1", "pool_name": "fit", "spec": Spec(), "nodes": 2}
    return Cluster(offer=CLOUD, provider="cloud", **{**about, **changes})


@pytest.mark.parametrize(
    ("plugin", "image", "expected"),
    [
        (sky.plugins.joblib(), Image(), f"joblib=={version('joblib')}"),
        (sky.plugins.joblib("1.5.2"), Image(), "joblib==1.5.2"),
        (sky.plugins.joblib(version="latest"), Image(), "joblib"),
        (sky.plugins.joblib("1.5.2"), Image(pip=["joblib"]), "joblib"),
        (sky.plugins.sklearn("latest"), Image(), "scikit-learn"),
        (sky.plugins.sklearn(), Image(pip=["Scikit_Learn>=1.5"]), "Scikit_Learn>=1.5"),
    ],
)
def test_nodes_get_what_pickles_here_or_what_is_asked_for(plugin: sky.Plugin, image: Image, expected: str) -> None:
    """What the image names itself is left as it is."""
    assert expected == transform_image([plugin], image, cluster()).pip[0]


@pytest.mark.parametrize(
    ("make", "keyword", "package"),
    [
        (sky.integrations.JoblibPool, "joblib_version", "joblib"),
        (sky.integrations.ScikitLearnPool, "sklearn_version", "scikit-learn"),
    ],
)
def test_a_pool_takes_the_version_of_its_package(make: Any, keyword: str, package: str) -> None:
    """And refuses what is none where it is written."""
    (plugin,) = make(**{keyword: "1.5.1"})._request.specs[0].plugins
    assert f"{package}==1.5.1" == transform_image([plugin], Image(), cluster()).pip[0]
    with pytest.raises(sky.ConfigError, match="version must be a version such as"):
        make(**{keyword: "newest"})


def test_a_worker_is_started_with_its_share_of_threads() -> None:
    """Before anything is imported in it: numpy reads the variables once."""
    where = cluster(ranks_per_node=2, worker=Worker(concurrency=2, executor="process"))
    context = LaunchContext(cluster=where, node=0, rank=0, lane=0)
    env = launch_command([sky.plugins.joblib()], LaunchCommand(argv=["python"]), context).env
    assert {"2"} == {env[name] for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
