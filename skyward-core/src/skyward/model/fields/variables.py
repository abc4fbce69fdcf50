"""
Environment variables as a frozen value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from skyward.errors import ConfigError

__all__ = ["Variables", "variables"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Variables(Mapping[str, str]):
    """
    Hold names and their text; reads like a dict, compares equal to one, and cannot be changed.

    Args:
        items: The names and their text; the order is kept but makes no difference to equality.

    >>> env = Variables({"HF_HOME": "/data"})
    >>> env == {"HF_HOME": "/data"}, env["HF_HOME"]
    (True, '/data')
    >>> env | {"DEBUG": "1"}
    {'HF_HOME': '/data', 'DEBUG': '1'}
    """

    __slots__ = ("_items",)
    _items: dict[str, str]

    def __init__(self, items: Mapping[str, str] | None = None) -> None:
        object.__setattr__(self, "_items", dict(items or {}))

    def __getitem__(self, name: str) -> str:
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __or__(self, other: Mapping[str, str]) -> Variables:
        given: Any = other
        return Variables({**self, **given}) if isinstance(given, Mapping) else NotImplemented

    def __ror__(self, other: Mapping[str, str]) -> Variables:
        given: Any = other
        return Variables({**given, **self}) if isinstance(given, Mapping) else NotImplemented

    def __repr__(self) -> str:
        return repr(self._items)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} cannot be changed; make a new one with the | operator.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} cannot be changed; make a new one with the | operator.")

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self._items,))


def variables(value: object, parameter: str) -> Variables:
    """
    Return a mapping as environment variables, refusing what no shell could export.

    Args:
        value: A mapping of names to text.
        parameter: Name of the parameter it was given for.

    Raises:
        ConfigError: If a name is no name of a variable, or a value is no text.

    >>> variables({"OMP_NUM_THREADS": 4}, "env")
    Traceback (most recent call last):
    ...
    skyward.errors.ConfigError: env['OMP_NUM_THREADS'] must be text, not 4. Write "4".
    """
    if not isinstance(value, Mapping):
        # Only the type: what stands where the environment belongs may be a secret.
        raise ConfigError(
            f"{parameter} must be a dict of names and text, not {type(value).__name__}.",
            hint=f'Write {parameter}={{"NAME": "text"}}.',
        )
    for name, text in value.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ConfigError(
                f"{parameter} has the name {name!r}, which is none for a variable.",
                hint="Names are letters, digits and underscores, and begin with no digit.",
            )
        if not isinstance(text, str):
            shown = f"not {text!r}" if isinstance(text, (int, float)) else f"not {type(text).__name__}"
            hint = f'Write "{text}".' if isinstance(text, (int, float)) and not isinstance(text, bool) else None
            raise ConfigError(f"{parameter}[{name!r}] must be text, {shown}.", hint=hint)
        if "\0" in text:
            raise ConfigError(f"{parameter}[{name!r}] must not hold the NUL character.")
    return Variables(value)
