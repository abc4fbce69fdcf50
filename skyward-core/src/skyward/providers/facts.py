"""What a cloud tells of a machine beside its id: a fact that cannot be read is not known, and hides no machine."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeVar

from skyward.errors import OfferError
from skyward.rest.checked_answer import UNREADABLE, Misread, readable

__all__ = ["Fact", "by_id", "facts", "identified", "sold"]

_log = logging.getLogger(__name__)

WARNED = 1024
"""Warnings that are remembered, so that a machine that is listed every few seconds gives one."""

V = TypeVar("V")
W = TypeVar("W")

_THERE = "It counts as a machine that exists. The API may have changed: look for a newer release of Skyward."
_UNNAMED = "Nothing can end it from here, so it is left out: look at the cloud's console."


class Fact(Protocol):
    """Read one fact of a machine; None where it cannot be read, with one warning."""

    def __call__(self, field: str, read: Callable[[], V], /) -> V | None: ...


def facts(provider: str, instance: object) -> Fact:
    """
    Return what reads the facts of one machine, such as its price, each by itself.

    A machine that is left out of a list, or a list that is an error because of it, would be billed unseen. So what
    cannot be read of it is not known, with a warning that names provider, machine and field.

    Args:
        provider: The provider's name.
        instance: The machine's id.

    >>> fact = facts("x", "i-1")
    >>> fact("price", lambda: float("0.5")), fact("price", lambda: float("a lot"))
    (0.5, None)
    """

    def fact(field: str, read: Callable[[], V], /) -> V | None:
        try:
            return read()
        except UNREADABLE as error:
            _warn(provider, f"{instance!r:.80}", field, f"{type(error).__name__}: {error!s:.200}", _THERE)
            return None

    return fact


def identified(
    rows: Iterable[object], id_of: Callable[[Any], object], *, provider: str, field: str = "id"
) -> list[Mapping[str, Any]]:
    """
    Keep the rows of a list of machines that say which machine they are; the others are left out with a warning.

    Args:
        rows: The rows.
        id_of: Reads a row's id, or raises `ValueError`.
        provider: The provider's name, for the warning.
        field: The name of the id, for the warning.

    Raises:
        ValueError: If there are some, and none says it: that is no list without machines.

    >>> identified([{"id": 7}, {"name": "x"}], lambda row: row["id"], provider="x")
    [{'id': 7}]
    """
    found: list[Mapping[str, Any]] = []
    failure: Exception | None = None
    for row in rows:
        try:
            id_of(row)
        except UNREADABLE as error:
            failure = failure or error
            _warn(provider, f"{row!r:.200}", field, f"{type(error).__name__}: {error!s:.200}", _UNNAMED)
        else:
            if isinstance(row, Mapping):
                found.append(row)
    if failure is not None and not found:
        raise failure if isinstance(failure, ValueError) else ValueError(str(failure))
    return found


def by_id(
    rows: Iterable[object], read: Callable[[Any, str], object], *, provider: str, field: str = "id"
) -> dict[str, Mapping[str, Any]]:
    """
    Return the rows of a list of machines by their ids; those that say none are left out with a warning.

    Args:
        rows: The rows.
        read: Reads the id of a row, such as `text` or `whole`.
        provider: The provider's name, for the warning.
        field: The name of the id.

    Raises:
        ValueError: If there are some, and none says it: that is no list without machines.

    >>> by_id([{"id": 7}], lambda row, name: row[name], provider="x")
    {'7': {'id': 7}}
    """
    found = identified(rows, lambda row: read(row, field), provider=provider, field=field)
    return {str(read(row, field)): row for row in found}


def sold(rows: Iterable[V], read: Callable[[V], W | None], *, provider: str) -> list[W]:
    """
    Read what is for sale, row by row; one that cannot be read is left out with a warning, as it can't be rented.

    Args:
        rows: The rows.
        read: How one is read; None where it is nothing that is looked for.
        provider: The provider's name, for the warning.

    Raises:
        OfferError: If there are some, and none can be read.

    >>> sold(["1.5", "a lot"], float, provider="x")
    [1.5]
    """
    try:
        found = readable(rows, read, provider=provider)
    except Misread as error:
        raise OfferError(
            f"Nothing of what {provider} lists can be read: {error}.",
            provider=provider,
            hint="See whether there is a newer release of Skyward.",
        ) from error
    return [one for one in found if one is not None]


@functools.lru_cache(WARNED)
def _warn(provider: str, instance: str, field: str, reason: str, hint: str) -> None:
    """Warn once of a machine's field."""
    _log.warning(
        "instance.field_unreadable provider=%s instance=%s field=%s reason=%s hint=%s",
        provider,
        instance,
        field,
        reason,
        hint,
    )
