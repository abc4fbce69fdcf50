"""
Frameworks on hosts that are reached over SSH, which have only Python: each installs what its plugin adds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve, frozen

import skyward as sky
from skyward.hookspecs import ProviderFacts, hookimpl
from tests.frameworks import jax_work, torch_work
from tests.hosts import SSHD, hosts, package_settings
from tests.seeds import some
from tests.ssh.conftest import Site

pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.timeout(400),
    pytest.mark.skipif(not Path(SSHD).exists(), reason="needs an OpenSSH server"),
]


@frozen
class Apart(sky.SSH):
    """Hosts without a network between them, as the machines of some clouds are."""

    @hookimpl
    def skyward_facts(self) -> ProviderFacts:
        """Tell so."""
        return evolve(super().skyward_facts(), nodes_reach_each_other=False)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """Run two hosts, whose environments are kept from one test to the next."""
    with hosts(2, env=package_settings()) as (made, key):
        yield Site(made, key)


def fresh(site: Site, plugin: Any, *packages: str, **settings: Any) -> Any:
    image = sky.Image(pip=["scikit-learn", *packages])
    given = {"provider": site.provider(), "nodes": 2, "image": image, "plugins": [plugin], **settings}
    return sky.Compute(**{"console": "silent", "logging": False, "bootstrap_timeout": 300, **given})


def torch_pool(site: Site, **settings: Any) -> Any:
    """Open a pool with torch; where there is a folder of wheels, it is from there, as it is here."""
    here = version("torch").partition("+")[0]
    if os.environ.get("PIP_FIND_LINKS"):
        return fresh(site, sky.plugins.torch(), f"torch=={here}", **settings)
    return fresh(site, sky.plugins.torch(version=here), **settings)


def test_torch_trains_on_two_hosts_with_two_ranks_each(site: Site) -> None:
    """With the host's own torch, to the weights of one process; a rank that is killed is one error."""
    with torch_pool(site, per_node=2) as pool:
        where = sky.function(lambda: __import__("torch").__file__)() @ pool
        assert [True] * 4 == [file.startswith(f"{site.hosts[rank // 2].cache}/") for rank, file in enumerate(where)]
        assert [(rank, 4, 4.0) for rank in range(4)] == [
            (rank, size, summed) for rank, size, _, summed in torch_work.world() @ pool
        ]
        losses, weights = torch_work.train(0, 1)
        for their_losses, theirs in torch_work.train_together() @ pool:
            np.testing.assert_allclose(their_losses, losses, rtol=0, atol=1e-9)
            for expected, found in zip(weights, theirs, strict=True):
                np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
        rank, size, _, summed = torch_work.world() >> pool
        assert (0, 1, 1.0) == (rank, size, summed)
        with pytest.raises(sky.WorkerDiedError, match=r"killed_in_the_middle\(\) on node 1.*SIGKILL"):
            torch_work.killed_in_the_middle(3) @ pool
        assert [4.0] * 4 == [summed for *_, summed in torch_work.world() @ pool]


def test_jax_sums_over_two_hosts_with_two_ranks_each(site: Site) -> None:
    """Each rank sees the devices of all; a call with `>>` is a world of one in between."""
    with fresh(site, sky.plugins.jax(version=version("jax")), per_node=2) as pool:
        for _ in range(2):
            assert [(rank, 4, 4, 4.0) for rank in range(4)] == [
                (rank, size, devices, total) for rank, size, devices, _, total in jax_work.world() @ pool
            ]
            assert (1, 1.0) == (jax_work.world() >> pool)[1::3]


@pytest.mark.everything
def test_a_grid_search_runs_on_two_hosts(site: Site) -> None:
    """It finds what it finds here, in processes of both, with the client's versions."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import SVC

    images, labels = load_digits(return_X_y=True)
    asked: dict[str, Any] = {"estimator": SVC(), "param_grid": {"C": [1, 10], "gamma": [0.001, 0.01]}, "cv": 2}
    here = GridSearchCV(**asked).fit(images[:300], labels[:300])
    with sky.integrations.ScikitLearnPool(
        provider=site.provider(), nodes=2, concurrency=2, console="silent", logging=False, bootstrap_timeout=300
    ) as pool:
        there = GridSearchCV(**asked, n_jobs=-1).fit(images[:300], labels[:300])
        versions = sky.function(lambda: __import__("sklearn").__version__)() @ pool
    np.testing.assert_array_equal(here.cv_results_["mean_test_score"], there.cv_results_["mean_test_score"])
    assert here.best_params_ == there.best_params_
    assert {version("scikit-learn")} == set(versions)


NAMES = ["accelerate", "jax", "keras", "tensorflow", "torch", "transformers"]


def _until(holds: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("name", some("frameworks that are refused", NAMES, least=0.34))
def test_hosts_without_a_network_between_them_are_refused(site: Site, name: str) -> None:
    """Before anything is made there."""
    before = [set(host.cache.glob("environments/*")) for host in site.hosts]
    plugin = sky.plugins.keras(backend="jax") if name == "keras" else getattr(sky.plugins, name)()
    plugins = [sky.plugins.jax(), plugin] if name == "keras" else [plugin]
    provider = Apart(hosts=[f"{host.address}:{host.port}" for host in site.hosts], key=str(site.key))
    with pytest.raises(sky.ConfigError, match="machines of ssh have no network between them"):
        fresh(site, None, plugins=plugins, provider=provider).__enter__()
    assert before == [set(host.cache.glob("environments/*")) for host in site.hosts]
    # The shells that looked at the hosts end as soon as the servers see that they were left.
    _until(lambda: [[], []] == [host.processes() for host in site.hosts])
