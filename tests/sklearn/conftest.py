"""The pool that the tests of a module share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import skyward as sky


@pytest.fixture(scope="module")
def pool() -> Iterator[sky.Pool]:
    """A node with two worker processes, which joblib uses."""
    with sky.integrations.JoblibPool(concurrency=2, console="silent") as pool:
        yield pool
