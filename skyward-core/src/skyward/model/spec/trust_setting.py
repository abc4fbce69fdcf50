"""
How far a node is trusted: whether what it sends is opened as code or as data.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

from attrs import field, frozen

from skyward.errors import ConfigError
from skyward.model.fields.setting import choice

__all__ = ["DATA", "Data", "TrustLike", "opened_as", "trusted"]


def _classes(value: tuple[Any, ...]) -> tuple[type, ...]:
    """Return classes, checked."""
    for one in value:
        if not isinstance(one, type):
            said = f"the class of {one!r}" if not isinstance(one, (str, list, tuple)) else "a class"
            raise ConfigError(
                f"sky.Data takes classes, not {one!r}.", hint=f"Write sky.Data(MyResult), with {said} itself."
            )
        if one.__module__ == "builtins" or (issubclass(one, BaseException) and not issubclass(one, Exception)):
            raise ConfigError(f"sky.Data({one.__name__}) would list what is no class of yours.")
    return tuple(dict.fromkeys(value))


@frozen(init=False)
class Data:
    """
    Open what nodes send as data: values of known libraries, and those of the classes that are listed.

    Values of a listed class are made without its `__init__` and without anything that a pickle names; its own
    `__new__` and `__setstate__` are run if it has them. A subclass is not listed by its base, nor the class of what an
    attribute holds.

    Args:
        classes: The classes.

    Raises:
        ConfigError: If one is no class.

    >>> class Result: ...
    >>> Data(Result, Result)
    Data(Result)
    """

    classes: tuple[type, ...] = field(converter=_classes)

    def __init__(self, *classes: type) -> None:
        self.__attrs_init__(classes)

    def __repr__(self) -> str:
        return f"Data({', '.join(one.__qualname__ for one in self.classes)})"


DATA: Final = Data()
"""Data without classes of the user's."""

TrustLike: TypeAlias = Literal["code", "data"] | Data | None
"""Spellings of the trust in nodes."""


def trusted(value: TrustLike) -> Literal["code"] | Data | None:
    """
    Return how far nodes are trusted, checked.

    Args:
        value: `"code"` has everything opened, `"data"` or `Data` what is data; None is up to the provider.

    Raises:
        ConfigError: If it is none of these.

    >>> trusted("data")
    Data()
    """
    if value is None or isinstance(value, Data):
        return value
    given: Any = value
    if isinstance(given, type):
        if given is Data:
            return DATA
        raise ConfigError(
            f'trust must be "code", "data" or sky.Data(...), not {given.__qualname__}.',
            hint=f"Write trust=sky.Data({given.__qualname__}).",
        )
    return "code" if choice(given, "trust", ("code", "data"), also="sky.Data(...)") == "code" else DATA


def opened_as(trust: Literal["code"] | Data | None, *, strangers: bool) -> Data | None:
    """
    Return as what a machine's answers are opened: as data, or, for None, as code.

    Args:
        trust: What the spec says.
        strangers: Whether the machine belongs to third parties, which decides where the spec says nothing.

    >>> opened_as(None, strangers=True)
    Data()
    """
    if trust is None:
        return DATA if strangers else None
    return trust if isinstance(trust, Data) else None
