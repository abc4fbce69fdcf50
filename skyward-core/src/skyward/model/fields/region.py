"""Names of places that a cloud rents from, one or several, as a parameter of its provider."""

from __future__ import annotations

from collections.abc import Iterable

from skyward.errors import ConfigError

RegionsLike = str | Iterable[str] | None
"""A region, several, or None for what the provider takes then."""


def regions(value: RegionsLike, like: str) -> tuple[str, ...]:
    """
    Return the names of regions, checked.

    Args:
        value: What was written for `region`.
        like: What one looks like, such as `"the name of a region such as 'us-east-1'"`.

    Raises:
        ConfigError: If it is no name, and not several.

    >>> regions("nyc3", "the name of a region")
    ('nyc3',)
    >>> regions(3, "the name of a region")
    Traceback (most recent call last):
    ...
    skyward.errors.ConfigError: region must be the name of a region, or several, not 3.
    """
    return several(value, "region", like)


def several(value: RegionsLike, parameter: str, like: str) -> tuple[str, ...]:
    """
    Return names, one or several, checked.

    Args:
        value: What was written.
        parameter: The parameter's name.
        like: What one looks like, such as `"the name of a data centre"`.

    Raises:
        ConfigError: If it is no name, and not several.

    >>> several(["RO", "CZ"], "country", "the code of a country")
    ('RO', 'CZ')
    """
    given: object = value
    names: tuple[object, ...] = ()
    if isinstance(given, str):
        names = (given,)
    elif given is not None:
        names = tuple(given) if isinstance(given, Iterable) else (given,)
    if not all(isinstance(name, str) and name.strip() for name in names):
        raise ConfigError(f"{parameter} must be {like}, or several, not {value!r}.")
    return tuple(map(str, names))
