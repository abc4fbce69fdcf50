"""
Functions under `functools.cache` and `lru_cache` travel as what they are made of, where their name is on no node.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from skyward.link.by_reference import by_reference

__all__ = ["CACHED", "reduce_cached"]

CACHED: Final = type(lru_cache(len))
"""The type of such functions."""


def reduce_cached(obj: Any) -> tuple[Any, ...] | None:
    """
    Reduce a function under a cache to the function and the settings of the cache; None for anything else.

    Python's own way is its name in its module, which for one of the program, a notebook or a function is on no node.
    What the cache holds does not travel, nor what was set on the function by hand.

    Args:
        obj: Anything.

    >>> from functools import cache
    >>> restore, parts = reduce_cached(cache(lambda: 7))
    >>> restore(*parts)()
    7
    """
    if type(obj) is not CACHED:
        return None
    if by_reference(obj):
        return None
    return _cached, (obj.__wrapped__, obj.cache_parameters())


def _cached(fn: Callable[..., Any], parameters: dict[str, Any]) -> Callable[..., Any]:
    cached: Callable[..., Any] = lru_cache(**parameters)(fn)
    return cached
