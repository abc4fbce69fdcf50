"""
scikit-learn on a pool gives what it gives here, and what is large is sent once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import skyward as sky
from skyward.link.recycling import recycling

pytestmark = pytest.mark.slow

MIB = 1 << 20


@pytest.fixture(scope="module")
def pool() -> Iterator[sky.Pool]:
    """A node with two worker processes, which scikit-learn uses."""
    with sky.integrations.ScikitLearnPool(concurrency=2, console="silent") as pool:
        yield pool


@pytest.fixture(scope="module")
def digits() -> tuple[Any, Any]:
    """Four hundred images of eight by eight pixels, and what they show."""
    images, labels = load_digits(return_X_y=True)
    return images[:400], labels[:400]


def total(array: Any, _: int) -> tuple[float, str, int, str]:
    """Tell what an array holds, and how."""
    return float(array.sum()), type(array).__name__, os.getpid(), os.environ["OMP_NUM_THREADS"]


def written() -> int:
    """Count the bytes that this process has written, to shared memory among others."""
    # What is copied into memory that is there already is counted nowhere.
    recycling.clear()
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("wchar")).split()[1])


def test_grid_search_finds_the_same(pool: sky.Pool, digits: tuple[Any, Any]) -> None:
    """Scores of every fold, the best settings, and a model that was fitted with them."""
    grid = {"svc__C": [0.1, 1.0], "svc__gamma": [0.01, 0.03]}
    model = make_pipeline(StandardScaler(), SVC())
    here, there = (GridSearchCV(model, grid, cv=3, n_jobs=n_jobs).fit(*digits) for n_jobs in (1, -1))
    assert here.best_params_ == there.best_params_
    for key in ("split0_test_score", "split1_test_score", "split2_test_score"):
        np.testing.assert_array_equal(here.cv_results_[key], there.cv_results_[key])
    np.testing.assert_array_equal(here.predict(digits[0]), there.predict(digits[0]))


def test_cross_validation_scores_the_same(pool: sky.Pool, digits: tuple[Any, Any]) -> None:
    """With `n_jobs=None` too, which scikit-learn takes for -1 inside a backend."""
    here, there, also = (cross_val_score(SVC(), *digits, cv=3, n_jobs=n_jobs) for n_jobs in (1, -1, None))
    np.testing.assert_array_equal(here, there)
    np.testing.assert_array_equal(here, also)


def test_forest_grows_the_same_trees(pool: sky.Pool, digits: tuple[Any, Any]) -> None:
    """scikit-learn prefers threads for forests; they are asked for on the pool all the same, as the user said so."""
    seen: list[str] = []
    pool.on(sky.TaskCompleted, lambda event: seen.append(event.function))
    here, there = (RandomForestClassifier(20, random_state=0, n_jobs=n_jobs).fit(*digits) for n_jobs in (1, -1))
    np.testing.assert_array_equal(here.predict_proba(digits[0]), there.predict_proba(digits[0]))
    assert "_parallel_build_trees" in seen


def test_search_of_forests_is_nested(pool: sky.Pool, digits: tuple[Any, Any]) -> None:
    """A task that calls joblib itself does so in its own process."""
    here, there = (
        GridSearchCV(RandomForestClassifier(5, random_state=0, n_jobs=2), {"max_depth": [3, 6]}, cv=2, n_jobs=n_jobs)
        .fit(*digits)
        .cv_results_["mean_test_score"]
        for n_jobs in (1, -1)
    )
    np.testing.assert_array_equal(here, there)


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="bytes that are written are counted by Linux")
@pytest.mark.parametrize("kind", ["plain", "mapped", "column by column"])
def test_large_array_is_sent_once(pool: sky.Pool, tmp_path: Path, kind: str) -> None:
    """As it is the first time, under a name that its content has the second time, and then by that name alone."""
    plain = np.random.default_rng(len(kind)).random((960, 2048))
    np.save(tmp_path / "array.npy", plain)
    arrays = {
        "plain": plain,
        "mapped": np.load(tmp_path / "array.npy", mmap_mode="r"),
        "column by column": np.asfortranarray(plain),
    }
    array = arrays[kind]
    expected = {(float(array.sum()), "ndarray")}
    before = written()
    first = Parallel(n_jobs=-1, batch_size=1)(delayed(total)(array, i) for i in range(4))
    between = written()
    again = Parallel(n_jobs=-1, batch_size=1)(delayed(total)(array, i) for i in range(40))
    after = written()
    assert expected == {found[:2] for found in (*first, *again)}
    assert 15 * MIB <= between - before <= 34 * MIB
    assert after - between < MIB


def test_processes_share_the_threads_of_the_machine(pool: sky.Pool) -> None:
    """So that those of linear algebra are no more than the processors, as with joblib's own processes."""
    found = Parallel(n_jobs=-1, batch_size=1)(delayed(total)(np.zeros(1), i) for i in range(4))
    assert {str(max(1, len(os.sched_getaffinity(0)) // 2))} == {threads for *_, threads in found}
