"""
A plugin of pytest: a pool is joblib's backend in every test of a suite that others wrote.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from joblib import parallel_config

import skyward as sky


@pytest.fixture(scope="session")
def _pool() -> Iterator[sky.Compute]:
    with sky.integrations.ScikitLearnPool(concurrency=2, console="silent", logging=False) as pool:
        yield pool


@pytest.fixture(autouse=True)
def _backend(_pool: sky.Compute) -> Iterator[None]:
    """Use the pool for whatever a test has joblib do, unless it chooses a backend itself."""
    with sky.integrations.joblib_backend(_pool), parallel_config("skyward", n_jobs=2):
        yield
