"""
scikit-learn's tests of `Parallel` and of searches, and joblib's of its backends, with a pool as the backend.

Those of joblib's that name their backends themselves are called one by one in tests/sklearn/test_joblibs_own.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.suites.outcomes import outcomes, worse

pytestmark = [pytest.mark.suites, pytest.mark.timeout(3000)]

DIFFERENT = {
    "test_parallel_delayed_warnings": "what a task warns of is not raised in the test's process",
    "test_grid_search_cv_splits_consistency": "a generator is among what a task gets, and cannot be pickled",
    "test_searchcv_raise_warning_with_non_finite_score": "a scorer counts its calls, of which each process has its own",
    "test_search_cv_verbose_3": "what tasks print is printed by the pool, not where the test looks",
    "test_multi_metric_search_forwards_metadata": "estimators note in a list of their process what they were given",
    "test_search_callbacks_receive_search_instance": "a callback gets a copy of the search, not the same object",
    "test_search_callbacks_with_partial_fit_failures": "callbacks pickle a class of the test's own by its name",
}
"""Tests that pass where tasks run in the test's own process, and not in others; docs/sklearn.md has them."""


@pytest.mark.parametrize("module", ["sklearn.utils.tests.test_parallel", "sklearn.model_selection.tests.test_search"])
def test_scikit_learns_own_tests_pass_on_a_pool(module: str, tmp_path: Path) -> None:
    """All but those that are listed."""
    (tmp_path / "reference").mkdir()
    (tmp_path / "ours").mkdir()
    reference = outcomes([module], tmp_path / "reference")
    ours = outcomes([module], tmp_path / "ours", "tests.suites.on_a_pool")
    print(module, list(reference.values()).count("passed"), list(ours.values()).count("passed"))
    failing = {name.partition("::")[2].partition("[")[0] for name in worse(reference, ours)}
    assert set() == failing - DIFFERENT.keys()
    assert list(reference.values()).count("passed") > 2


WITHOUT_A_POOL = {f"test_nested_loop[{outer}-skyward]" for outer in ("loky", "multiprocessing", "back_compat_backend")}
"""Their calls are made in a process of joblib's own, where no pool is open."""


def test_joblibs_own_tests_of_all_backends_pass_with_a_pool_as_one(tmp_path: Path) -> None:
    """All but those whose calls are made where there is no pool."""
    found = outcomes(["joblib.test.test_parallel"], tmp_path, "tests.suites.registered", only="skyward")
    print("joblib.test.test_parallel", list(found.values()).count("passed"), "of", len(found))
    assert {name.lstrip(":") for name, outcome in found.items() if outcome != "passed"} == WITHOUT_A_POOL
    assert len(found) > 70
