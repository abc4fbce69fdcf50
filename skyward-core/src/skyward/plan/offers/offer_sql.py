"""
Offers as rows of a table, and queries for them as SQL.

What a user writes is never part of a statement's text: it is a parameter of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from skyward.model.accelerators.accelerator import Accelerator
from skyward.model.accelerators.device import compact
from skyward.model.instances.details import Details
from skyward.model.instances.offer import Offer
from skyward.plan.offers.wanted import Order, Wanted

__all__ = ["INSERT", "SCHEMA", "VERSION", "counting", "offer_of", "row_of", "sql"]

VERSION = 1
"""Of the tables; a file of another version is rebuilt."""

_FIELDS = (
    "provider",
    "instance_type",
    "region",
    "zone",
    "accelerator_name",
    "accelerator_count",
    "accelerator_memory_gb",
    "accelerator_form_factor",
    "vcpus",
    "memory_gb",
    "disk_gb",
    "architecture",
    "spot_price",
    "on_demand_price",
    "available",
    "seen_at",
)
_DERIVED = ("least_price", "accelerator", "accelerator_architecture", "manufacturer", "key", "data", "source")
_COLUMNS = (*_FIELDS, *_DERIVED)

# Columns are without a type, so that a number comes back as the int or float it was.
SCHEMA = (
    "CREATE TABLE source (id INTEGER PRIMARY KEY, provider, digest, asked_at, UNIQUE (provider, digest))",
    f"CREATE TABLE offer (id INTEGER PRIMARY KEY, {', '.join(_COLUMNS)})",
    "CREATE INDEX of_source ON offer (source)",
    *(
        f"CREATE INDEX {name}_{price} ON offer ({first}{price}, accelerator_count, source, available)"
        for name, first in (("by", ""), ("of_accelerator_by", "accelerator, "))
        for price in ("spot_price", "on_demand_price", "least_price")
    ),
)
"""What makes the tables, a statement each."""

INSERT = f"INSERT INTO offer ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"  # noqa: S608
"""The statement that takes a row."""

Value: TypeAlias = str | float | int | None
Condition: TypeAlias = tuple[str, tuple[Value, ...]]


def row_of(offer: Offer, source: int) -> tuple[Value, ...]:
    """
    Return the row of an offer.

    Args:
        offer: What is sold, in the catalogue's words.
        source: Number of the source that it comes from.
    """
    seen = offer.accelerator
    return (
        *(getattr(offer, name) for name in _FIELDS),
        offer.least_price,
        None if seen is None else compact(seen.name),
        None if seen is None else seen.architecture,
        None if seen is None else seen.manufacturer,
        offer.key,
        offer.data.text if isinstance(offer.data, Details) else "{}",
        source,
    )


def offer_of(row: Sequence[Any]) -> Offer:
    """
    Return the offer of a row that `sql` asks for.

    >>> small = Offer(provider="a", instance_type="small", vcpus=2, data={"ami": "x"})
    >>> row = row_of(small, 1)
    >>> offer_of((*row[:16], row[-2])) == small
    True
    """
    facts: dict[str, Any] = dict(zip(_FIELDS, row, strict=False))
    facts["available"] = bool(facts["available"])
    return Offer(**facts, data=Details(row[len(_FIELDS)] or "{}"))


def sql(wanted: Wanted, sources: Sequence[int]) -> tuple[str, tuple[Value, ...]]:
    """
    Return the statement that finds what is wanted, and its parameters.

    Args:
        wanted: What is asked for.
        sources: Numbers of the sources to look at.

    >>> text, parameters = sql(Wanted(provider="aws'; DROP TABLE offer", way="spot", limit=5), [1])
    >>> text[text.index("WHERE") :]
    'WHERE +source IN (?) AND provider = ? AND unlikely(spot_price IS NOT NULL) ORDER BY spot_price, key, id LIMIT ?'
    >>> parameters
    (1, "aws'; DROP TABLE offer", 5)
    """
    return _statement(", ".join((*_FIELDS, "data")), wanted, sources, f" ORDER BY {_ordering(wanted)}")


def counting(wanted: Wanted, sources: Sequence[int]) -> tuple[str, tuple[Value, ...]]:
    """Return the statement that counts what is wanted, and its parameters; arguments as for `sql`."""
    text, parameters = _statement("1", wanted, sources, "")
    return f"SELECT count(*) FROM ({text})", parameters  # noqa: S608


def _statement(columns: str, wanted: Wanted, sources: Sequence[int], ordering: str) -> tuple[str, tuple[Value, ...]]:
    """Return a statement whose text is all of this module's, and the parameters that hold what is asked for."""
    # With the plus, the index of a source is not taken, which would mean to sort all of it by price.
    conditions = [(f"+source IN ({', '.join('?' * len(sources))})", tuple(sources)), *_conditions(wanted)]
    where = " AND ".join(text for text, _ in conditions)
    parameters = [value for _, values in conditions for value in values]
    text = f"SELECT {columns} FROM offer WHERE {where}{ordering}"  # noqa: S608
    return (text, tuple(parameters)) if wanted.limit is None else (f"{text} LIMIT ?", (*parameters, wanted.limit))


def _conditions(wanted: Wanted) -> Iterator[Condition]:
    """Yield what an offer must be, with the parameters of each."""
    price = wanted.price_field
    if wanted.accelerator is not None:
        yield from _accelerator(wanted.accelerator)
    if wanted.cpu_only:
        yield "accelerator_name IS NULL AND accelerator_count = 0", ()
    for column, value in (
        ("provider", wanted.provider),
        ("region", wanted.region),
        ("accelerator_architecture", wanted.accelerator_architecture),
        ("manufacturer", wanted.manufacturer),
    ):
        if value is not None:
            yield f"{column} = ?", (value,)
    for column, least in (
        ("accelerator_memory_gb", wanted.accelerator_memory_gb),
        ("accelerator_count", wanted.accelerator_count),
        ("vcpus", wanted.vcpus),
        ("memory_gb", wanted.memory_gb),
    ):
        if least is not None:
            yield f"{column} >= ?", (least,)
    if wanted.accelerator_memory_most_gb is not None:
        yield "accelerator_memory_gb <= ?", (wanted.accelerator_memory_most_gb,)
    if wanted.way is not None or wanted.to_be_had:
        # Without the hint, newer versions of SQLite sort all offers rather than follow the index of prices.
        yield f"unlikely({price} IS NOT NULL)", ()
    if wanted.max_price is not None:
        yield f"{price} <= ?", (wanted.max_price,)
    if wanted.to_be_had:
        yield "available", ()


def _accelerator(asked: Accelerator) -> Iterator[Condition]:
    """Yield what `Accelerator.accepts` checks, as conditions."""
    yield "accelerator = ? AND accelerator_count >= ?", (compact(asked.name), asked.count)
    if asked.form_factor is not None:
        yield "(accelerator_form_factor IS NULL OR accelerator_form_factor = ?)", (asked.form_factor,)
    if memories := asked.memories_gb:
        least = asked.least_memory_gb
        known = f"accelerator_memory_gb IS NULL OR accelerator_memory_gb IN ({', '.join('?' * len(memories))})"
        if least is None:
            yield f"({known})", memories
        else:
            yield f"({known} OR accelerator_memory_gb >= ?)", (*memories, least)


def _ordering(wanted: Wanted) -> str:
    """Return what comes first, in columns; equal ones stand by their keys."""
    orders = wanted.orders or (Order("price"),)
    sure = wanted.way is not None or wanted.to_be_had or wanted.max_price is not None
    terms = []
    for one in orders:
        column = wanted.price_field if one.by == "price" else one.by
        # An index helps only where no second term stands before the column.
        untold_last = "" if sure and column == wanted.price_field else f"{column} IS NULL, "
        terms.append(f"{untold_last}{column}{' DESC' if one.descending else ''}")
    return ", ".join((*terms, "key", "id"))
