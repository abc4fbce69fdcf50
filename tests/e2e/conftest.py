"""Pools that the tests of a module share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import skyward as sky


@pytest.fixture(scope="module")
def pool() -> Iterator[sky.Pool]:
    """Two Local nodes of one slot each."""
    with sky.Compute(nodes=2, console="silent") as pool:
        yield pool
