"""
What `retries=` takes: a number, or a `Retry`.

A module of its own, because numbers are usual, and what builds a `Retry` takes its time to load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, Union

from skyward.errors import ConfigError

if TYPE_CHECKING:
    from skyward.model.spec.retry_setting import Retry

__all__ = ["Retries", "retries", "times"]

Retries: TypeAlias = Union[int, "Retry"]


def retries(value: object) -> Retries:
    """
    Return what `retries=` was given, checked.

    Raises:
        ConfigError: If it is neither a whole number from 0 nor a `Retry`.

    >>> retries(2)
    2
    """
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    # Late, because most functions are given a number, or nothing.
    from skyward.model.spec.retry_setting import Retry

    if isinstance(value, Retry):
        return value
    raise ConfigError(f"retries must be a whole number from 0, or sky.Retry(...), not {value!r}.")


def times(given: Retries) -> int:
    """
    Return how many more attempts there are after one that fails.

    >>> import skyward as sky
    >>> times(2), times(sky.Retry(3))
    (2, 3)
    """
    return given if isinstance(given, int) else given.times
