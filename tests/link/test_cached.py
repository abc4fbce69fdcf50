"""Functions under a cache come out as they went in, but for what the cache holds."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

import pytest

from skyward.link.cached import reduce_cached
from skyward.link.payload import load
from skyward.link.payload_making import dump


@functools.cache
def importable() -> int:
    """Do nothing."""
    return 1


@pytest.mark.parametrize("maxsize", [None, 0, 3])
@pytest.mark.parametrize("typed", [False, True])
def test_the_cache_is_of_the_same_kind(maxsize: int | None, typed: bool) -> None:
    """It is empty."""

    @functools.lru_cache(maxsize, typed)
    def double(x: float) -> float:
        """Double."""
        return 2 * x

    double(2)
    found = load(dump(double))
    assert found.cache_parameters() == {"maxsize": maxsize, "typed": typed}
    assert (found.cache_info().currsize, found.__doc__, found(4)) == (0, "Double.", 8)


@pytest.mark.parametrize("fn", [importable, json.dumps, len, 5])
def test_what_has_a_name_travels_as_its_name(fn: Callable[..., Any]) -> None:
    """And so does what is no such function."""
    assert reduce_cached(fn) is None
    assert load(dump(fn)) is fn


def test_methods_of_local_classes() -> None:
    """A class that travels whole takes them along."""

    class Table:
        @functools.lru_cache(maxsize=4)  # noqa: B019
        def row(self, number: int) -> int:
            return number + 1

    assert load(dump(Table))().row(4) == 5
