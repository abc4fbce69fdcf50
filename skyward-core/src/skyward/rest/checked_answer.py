"""
Answers are checked, never trusted: what is missing, or is not what the API's own documents say, is an error.

A function that reads an answer is given to `Api` as `read=`; what these raise becomes an error that shows the answer.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, TypeVar

__all__ = [
    "Misread",
    "field",
    "flag",
    "listed",
    "moment",
    "number",
    "objects",
    "optional",
    "readable",
    "text",
    "whole",
    "word",
]

T = TypeVar("T")
V = TypeVar("V")

_log = logging.getLogger(__name__)

UNREADABLE = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError)
"""What a function raises that reads a value which is none of what it should be."""


class Misread(ValueError):
    """Report that an answer is not what it should be; `Api` makes an error of Skyward of it."""


def field(row: object, name: str) -> Any:
    """
    Return a field of an object.

    Args:
        row: The object.
        name: The field's name; dots lead into objects within.

    Raises:
        Misread: If there is no such field.

    >>> field({"droplet": {"id": 7}}, "droplet.id")
    7
    """
    value: Any = row
    for part in name.split("."):
        if not isinstance(value, Mapping):
            raise Misread(f"there is no object with a field {name!r} but {_kind(value)}")
        if part not in value:
            raise Misread(f"the field {name!r} is missing")
        value = value[part]
    return value


def text(row: object, name: str) -> str:
    """
    Return a field that holds text, and some.

    Args:
        row: The object.
        name: As for `field`.

    Raises:
        Misread: If it holds anything else.

    >>> text({"slug": "nyc1"}, "slug")
    'nyc1'
    """
    value = field(row, name)
    if not isinstance(value, str) or not value:
        raise _wrong(name, "text", value)
    return value


def number(row: object, name: str, *, written: bool = False) -> float:
    """
    Return a field that holds a finite number of at least 0, such as a price.

    Args:
        row: The object.
        name: As for `field`.
        written: Whether the API may write it as text, as in `"0.89"`.

    Raises:
        Misread: If it holds anything else.

    >>> number({"price_per_hour": "0.89"}, "price_per_hour", written=True)
    0.89
    """
    value = field(row, name)
    if written and isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise _wrong(name, "a number", value) from None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise _wrong(name, "a number of at least 0", value)
    return float(value)


def whole(row: object, name: str) -> int:
    """
    Return a field that holds a whole number of at least 0, such as an id.

    Args:
        row: The object.
        name: As for `field`.

    Raises:
        Misread: If it holds anything else.

    >>> whole({"vcpus": 4}, "vcpus")
    4
    """
    value = number(row, name)
    if value != int(value):
        raise _wrong(name, "a whole number", value)
    # A float holds no more than 53 bits of an id.
    exact = field(row, name)
    return exact if isinstance(exact, int) else int(value)


def flag(row: object, name: str) -> bool:
    """
    Return a field that holds true or false.

    Args:
        row: The object.
        name: As for `field`.

    Raises:
        Misread: If it holds anything else.

    >>> flag({"available": True}, "available")
    True
    """
    value = field(row, name)
    if not isinstance(value, bool):
        raise _wrong(name, "true or false", value)
    return value


def moment(row: object, name: str) -> float:
    """
    Return a field that holds a time as ISO 8601 writes it, in seconds since 1970.

    Args:
        row: The object.
        name: As for `field`.

    Raises:
        Misread: If it holds anything else, or a time without a zone, which may be any.

    >>> moment({"created_at": "1970-01-01T00:01:00Z"}, "created_at")
    60.0
    """
    written = text(row, name)
    try:
        found = datetime.fromisoformat(written)
    except ValueError:
        raise _wrong(name, "a time", written) from None
    if found.tzinfo is None:
        raise _wrong(name, "a time with its zone", written)
    return found.timestamp()


def listed(row: object, name: str) -> list[Any]:
    """
    Return a field that holds a list.

    Args:
        row: The object.
        name: As for `field`; empty if the object itself is the list.

    Raises:
        Misread: If it holds anything else: that is not an empty list.

    >>> listed({"droplets": []}, "droplets")
    []
    """
    value = field(row, name) if name else row
    if not isinstance(value, list):
        raise _wrong(name or "answer", "a list", value)
    return value


def objects(row: object, name: str) -> list[Mapping[str, Any]]:
    """
    Return a field that holds a list of objects.

    Args:
        row: The object.
        name: As for `field`; empty if the object itself is the list.

    Raises:
        Misread: If it holds anything else.

    >>> objects({"tags": [{"name": "web"}]}, "tags")
    [{'name': 'web'}]
    """
    value = listed(row, name)
    if not all(isinstance(each, Mapping) for each in value):
        raise Misread(f"{name or 'answer'!r} holds something that is no object")
    return value


def word(row: object, name: str, known: Mapping[str, V]) -> V:
    """
    Return what a field's word stands for, such as a state.

    Args:
        row: The object.
        name: As for `field`.
        known: All words there are.

    Raises:
        Misread: If it is none of them.

    >>> word({"status": "active"}, "status", {"new": 1, "active": 2})
    2
    """
    value = field(row, name)
    if not isinstance(value, str) or value not in known:
        raise _wrong(name, f"one of {', '.join(sorted(known))}", value)
    return known[value]


def optional(row: object, name: str, read: Callable[[object, str], V]) -> V | None:
    """
    Return a field that may be missing or null.

    Args:
        row: The object.
        name: As for `field`.
        read: How it is read where it is there, such as `text`.

    Raises:
        Misread: If it holds anything else.

    >>> optional({"ip": None}, "ip", text) is None
    True
    """
    value = row
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return None if value is None else read(row, name)


def readable(rows: Iterable[V], read: Callable[[V], T], *, provider: str = "") -> list[T]:
    """
    Read what is for sale, row by row; one that cannot be read is left out with a warning, as it can't be rented.

    Machines are never read so: one that is left out would be billed unseen.

    Args:
        rows: The rows.
        read: How one is read.
        provider: The provider's name, for the warning.

    Raises:
        Misread: If there are some, and none can be read.

    >>> readable([{"slug": "a"}], lambda row: text(row, "slug"))
    ['a']
    """
    found: list[T] = []
    failure: Exception | None = None
    for row in rows:
        try:
            found.append(read(row))
        except UNREADABLE as error:
            failure = failure or error
            kind = type(error).__name__
            _log.warning("offer.unreadable provider=%s reason=%s: %s row=%.300r", provider, kind, error, row)
    if failure is not None and not found:
        if isinstance(failure, Misread):
            raise failure
        raise Misread(f"{type(failure).__name__}: {failure}") from failure
    return found


def _wrong(name: str, wanted: str, value: object) -> Misread:
    return Misread(f"{name!r} is not {wanted} but {_kind(value)}")


def _kind(value: object) -> str:
    """Show a value, briefly."""
    if value is None or isinstance(value, str | int | float):
        return f"{value!r:.60}"
    return "an object" if isinstance(value, Mapping) else "a list"
