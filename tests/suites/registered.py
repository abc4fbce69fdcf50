"""
A plugin of pytest: a pool is open, and its backend is one of those that joblib's own tests are run with.

joblib's tests take the backends that are registered when they are imported.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import skyward as sky
from skyward_sklearn.serving import register

register()


@pytest.fixture(scope="session", autouse=True)
def _pool() -> Iterator[sky.Compute]:
    with sky.integrations.JoblibPool(concurrency=2, console="silent", logging=False) as pool:
        yield pool
