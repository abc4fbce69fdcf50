"""
Facts of a provider's or a plugin's own, as a frozen value that JSON can hold.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from skyward.errors import ConfigError

__all__ = ["Details", "details"]


class Details(Mapping[str, Any]):
    """
    Hold names and what JSON can hold; reads like a dict, and cannot be changed.

    It is kept as text: what is read out of it is the reader's own copy.

    Args:
        text: A JSON object, with its names in order and no blanks between.

    >>> own = details({"zone": {"ids": (1, 2)}}, "data")
    >>> own["zone"], own == {"zone": {"ids": [1, 2]}}
    ({'ids': [1, 2]}, True)
    """

    __slots__ = ("text",)
    text: str

    def __init__(self, text: str = "{}") -> None:
        object.__setattr__(self, "text", text)

    def __getitem__(self, name: str) -> Any:
        return self._read()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Details):
            return self.text == other.text
        return self._read() == other if isinstance(other, Mapping) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return repr(self._read())

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} cannot be changed.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} cannot be changed.")

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.text,))

    def _read(self) -> dict[str, Any]:
        read: dict[str, Any] = json.loads(self.text)
        return read


NONE = Details()
"""No details."""


def details(value: object, parameter: str) -> Details:
    """
    Return a mapping as frozen details, refusing what JSON cannot hold.

    Args:
        value: A mapping whose values are what JSON can hold; tuples become lists.
        parameter: Name of the parameter it was given for.

    Raises:
        ConfigError: If it is no mapping, a name is no text, or JSON cannot hold a value.

    >>> details({"price": float("nan")}, "data")
    Traceback (most recent call last):
    ...
    skyward.errors.ConfigError: data must be what JSON can hold: Out of range float values are not JSON compliant...
    """
    if isinstance(value, Details):
        return value
    if not isinstance(value, Mapping):
        raise ConfigError(f"{parameter} must be a mapping, not {value!r}.")
    if not value:
        return NONE
    if wrong := [name for name in value if not isinstance(name, str)]:
        raise ConfigError(f"{parameter} must have text for names, not {wrong[0]!r}.")
    try:
        text = json.dumps(dict(value), sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"{parameter} must be what JSON can hold: {error}.") from error
    return Details(text)
