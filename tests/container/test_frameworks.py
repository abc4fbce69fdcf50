"""Frameworks on real containers, each of which installs what the plugins add."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import skyward as sky
from tests.container.base import index, run
from tests.frameworks.torch_work import train_alone, train_together, world

pytestmark = pytest.mark.timeout(600)

TORCH = "2.13.0"
"""The version that pyproject.toml trains with."""

WITH_WHEELS = "localhost/skyward-wheels:1"


@pytest.fixture(scope="module")
def wheels(image: str) -> Iterator[str]:
    """Give the name of an image that has torch's wheel for processors, which is gone in the end."""
    with tempfile.TemporaryDirectory() as folder:
        where = (
            [] if os.environ.get("PIP_FIND_LINKS") else ["--extra-index-url", "https://download.pytorch.org/whl/cpu"]
        )
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", f"{folder}/wheels"]
        run(*command, *where, f"torch=={TORCH}")
        Path(folder, "Containerfile").write_text(f"FROM {image}\nCOPY wheels /wheels\n")
        run("podman", "build", "--quiet", "--tag", WITH_WHEELS, folder)
    yield WITH_WHEELS
    run("podman", "rmi", "--force", WITH_WHEELS)


# Two hosts over SSH do the same in every run; containers have PyTorch installed first, which takes minutes.
@pytest.mark.everything
def test_torch_trains_on_two_containers_with_two_ranks_each(wheels: str) -> None:
    """To the weights of one process; the client has no torch."""
    image = sky.Image(pip=[f"torch=={TORCH}", "scikit-learn"], env={**index(), "UV_FIND_LINKS": "/wheels"})
    with sky.Compute(
        provider=sky.Container(image=wheels, binary="podman"),
        nodes=2,
        per_node=2,
        image=image,
        plugins=[sky.plugins.torch()],
        console="silent",
        logging=False,
        bootstrap_timeout=400,
    ) as pool:
        assert [(rank, 4, 4.0) for rank in range(4)] == [
            (rank, size, summed) for rank, size, _, summed in world() @ pool
        ]
        losses, weights = train_alone() >> pool
        for their_losses, theirs in train_together() @ pool:
            np.testing.assert_allclose(their_losses, losses, rtol=0, atol=1e-9)
            for expected, found in zip(weights, theirs, strict=True):
                np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


@pytest.mark.containers
def test_a_grid_search_runs_on_two_containers(image: str) -> None:
    """It finds what it finds here."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import SVC

    images, labels = load_digits(return_X_y=True)
    grid = {"C": [1, 10], "gamma": [0.001, 0.01]}
    here = GridSearchCV(SVC(), grid, cv=2).fit(images[:300], labels[:300])
    with sky.integrations.ScikitLearnPool(
        provider=sky.Container(image=image, binary="podman"),
        nodes=2,
        image=sky.Image(env=index()),
        console="silent",
        logging=False,
        bootstrap_timeout=400,
    ):
        there = GridSearchCV(SVC(), grid, cv=2, n_jobs=-1).fit(images[:300], labels[:300])
    np.testing.assert_array_equal(here.cv_results_["mean_test_score"], there.cv_results_["mean_test_score"])
    assert here.best_params_ == there.best_params_
