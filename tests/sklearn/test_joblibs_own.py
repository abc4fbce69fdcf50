"""
joblib's own tests of its backends, as joblib ships them, with a pool as the backend.

Left out are those that look into loky's or multiprocessing's workers, those that need memory which a node shares with
the client, and `test_error_capture`: a KeyboardInterrupt that a task raises is a RemoteError here.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from joblib import parallel_backend, parallel_config
from joblib.test import test_parallel as theirs

CASES: dict[str, list[tuple[Any, ...]]] = {
    "test_simple_parallel": [("skyward", n_jobs, 2) for n_jobs in (1, 2, -1, -2)],
    "test_parallel_pretty_print": [("skyward", 2)],
    "test_nested_loop": [("skyward", "skyward"), ("skyward", "threading"), ("skyward", "sequential")],
    "test_parallel_timeout_success": [("skyward",)],
    "test_parallel_timeout_fail": [("skyward",)],
    "test_parallel_timeout_fail_with_generator": [("skyward", "generator"), ("skyward", "generator_unordered")],
    "test_error_in_task_iterator": [("skyward",)],
    "test_dispatch_one_job": [("skyward", 1, [f"{what} {i}" for i in range(6) for what in ("Produced", "Consumed")])],
    "test_batching_auto_subprocesses": [("skyward",)],
    "test_nested_exception_dispatch": [("skyward",)],
    "test_invalid_njobs": [("skyward",)],
    "test_njobs_converted_to_int": [("skyward", 2.3)],
    "test_backend_nesting_level": [(parallel_config, "skyward", "skyward"), (parallel_backend, "skyward", "threading")],
    "test_abort_backend": [(n_jobs, "skyward") for n_jobs in (2, -1)],
    "test_deadlock_with_generator": [
        ("skyward", kind, n_jobs) for kind, n_jobs in itertools.product(("generator", "generator_unordered"), (2, -1))
    ],
    "test_multiple_generator_call": [("skyward", "generator", 2), ("skyward", "generator_unordered", -1)],
    "test_multiple_generator_call_managed": [("skyward", "generator", 2), ("skyward", "generator_unordered", -1)],
    "test_multiple_generator_call_separated": [("skyward", "generator", "generator_unordered", 2)],
    "test_parallel_unordered_generator_returns_fastest_first": [("skyward", 2)],
    "test_lambda_expression": [("skyward",)],
    "test_backend_batch_statistics_reset": [("skyward",)],
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.usefixtures("pool")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [pytest.param(name, case, id=f"{name}-{i}") for name in CASES for i, case in enumerate(CASES[name])],
)
def test_joblibs_own(name: str, arguments: tuple[Any, ...]) -> None:
    """A test of joblib's passes as it stands."""
    getattr(theirs, name)(*arguments)
