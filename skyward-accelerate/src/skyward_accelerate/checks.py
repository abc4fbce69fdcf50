"""
What refuses settings that have no meaning, and reads them from mappings.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

import attrs

from skyward import ConfigError

__all__ = [
    "FLAG",
    "MAYBE_FLAG",
    "MAYBE_TEXT",
    "Variables",
    "above_zero",
    "classes",
    "lower",
    "of_type",
    "one_of",
    "read",
    "steps",
    "upper",
    "variables",
]

T = TypeVar("T", bound=attrs.AttrsInstance)

Variables: TypeAlias = tuple[tuple[str, str], ...]
"""Settings that Accelerate reads from the environment as they are: names in capital letters, and text."""

Validator = Callable[[object, Any, Any], None]


def one_of(known: tuple[object, ...], *, optional: bool = False) -> Validator:
    """Make a validator that refuses what is not in a list."""

    def check(instance: object, attribute: Any, value: object) -> None:
        if (optional and value is None) or any(value == each and type(value) is type(each) for each in known):
            return
        raise ConfigError(
            f"{attribute.name} must be one of {', '.join(map(repr, known))}, not {value!r}.",
            hint=_meant(value, [each for each in known if isinstance(each, str)]),
        )

    return check


def of_type(kind: type[object], what: str, *, optional: bool = False) -> Validator:
    """Make a validator that refuses what is of another type."""

    def check(instance: object, attribute: Any, value: object) -> None:
        if not ((optional and value is None) or type(value) is kind):
            raise ConfigError(f"{attribute.name} must be {what}, not {value!r}.")

    return check


def steps(instance: object, attribute: Any, value: object) -> None:
    """Refuse what is no number of steps."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise ConfigError(f"{attribute.name} must be a whole number above 0, not {value!r}.")


def above_zero(instance: object, attribute: Any, value: object) -> None:
    """Refuse what is no number above 0."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or value <= 0):
        raise ConfigError(f"{attribute.name} must be a number above 0, not {value!r}.")


def upper(value: Any) -> Any:
    """Return a name in capital letters."""
    return value.upper() if isinstance(value, str) else value


def lower(value: Any) -> Any:
    """Return a name in small letters."""
    return value.lower() if isinstance(value, str) else value


def classes(value: Any) -> Any:
    """Return names of classes as a tuple."""
    if isinstance(value, str):
        value = value.split(",")
    if value is None:
        return None
    names = tuple(value) if isinstance(value, list | tuple) else ()
    if not names or not all(isinstance(name, str) and name.strip() for name in names):
        raise ConfigError(f"Classes must be named as a list of text, such as ['LlamaDecoderLayer'], not {value!r}.")
    return tuple(name.strip() for name in names)


def variables(value: Any) -> Variables | None:
    """Return settings that are passed on as they are."""
    if value is None or value is False:
        return None
    if isinstance(value, tuple):
        value = dict(value)
    if value is not True and not isinstance(value, Mapping):
        raise ConfigError(f"Settings must be given as a mapping, not {value!r}.")
    given = {} if value is True else value
    return tuple(sorted((str(name).upper(), str(setting)) for name, setting in given.items() if setting is not None))


FLAG = of_type(bool, "True or False")
MAYBE_FLAG = of_type(bool, "True, False or None", optional=True)
MAYBE_TEXT = of_type(str, "text", optional=True)


def read(kind: type[T], value: Any) -> T:
    """Return a value of a kind, from one or from a mapping."""
    if isinstance(value, kind):
        return value
    if not isinstance(value, Mapping):
        raise ConfigError(f"{kind.__name__} must be given as a value of its own or as a mapping, not {value!r}.")
    known = [each.name for each in attrs.fields(kind)]
    for name in value:
        if name not in known:
            raise ConfigError(f"{kind.__name__} has no {name!r}.", hint=_meant(name, known))
    return kind(**value)


def _meant(given: object, known: list[str]) -> str | None:
    """Return a hint that names what is nearest."""
    near = difflib.get_close_matches(str(given), known, n=1)
    return f"Did you mean {near[0]!r}?" if near else None
