"""
What SQL finds is what a plain filter finds, and nothing of what a user writes is part of a statement.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from skyward.model.accelerators.accelerator import Accelerator, accelerator
from skyward.model.instances.offer import Offer
from skyward.plan.offers.offer_sql import INSERT, SCHEMA, counting, offer_of, row_of, sql
from skyward.plan.offers.wanted import ORDERS, Order, Wanted, select

NAMES = [
    "H100",
    "H100 NVL",
    "NVIDIA H100 80GB HBM3",
    "A100 SXM4 40GB",
    "A100",
    "L4",
    "MI300X",
    "Frob 9000",
    "frob-9000",
]
ASKED = ["H100", "A100", "H100:4", "H100-NVL", "H100-SXM", "A100-40GB", "A100-80GB:2", "L4:0.5", "MI300X:8"]
PLACES = st.none() | st.sampled_from(["a", "b", "it's", 'a"b', "a; DROP TABLE offer"])
FIGURES = st.none() | st.sampled_from([0.5, 1, 4, 8, 80.0, 100])
PRICES = st.none() | st.sampled_from([0.0, 0.5, 1.0, 2.5])


@st.composite
def offers(draw: st.DrawFn) -> Offer:
    """Return an offer in the catalogue's words."""
    name = draw(st.none() | st.sampled_from(NAMES))
    return Offer(
        provider=draw(st.sampled_from(["a", "b"])),
        instance_type=draw(st.text(max_size=2)),
        region=draw(PLACES),
        zone=draw(PLACES),
        accelerator_name=name,
        accelerator_count=draw(st.sampled_from([0, 0.5, 1, 4, 8])),
        accelerator_memory_gb=draw(st.none() | st.sampled_from([39.6, 40, 64, 80, 94, 192])),
        accelerator_form_factor=draw(st.none() | st.sampled_from(["SXM", "PCIe", "NVL"])),
        vcpus=draw(FIGURES),
        memory_gb=draw(FIGURES),
        disk_gb=draw(FIGURES),
        architecture=draw(st.none() | st.sampled_from(["x86_64", "arm64"])),
        spot_price=draw(PRICES),
        on_demand_price=draw(PRICES),
        available=draw(st.booleans()),
        seen_at=draw(st.none() | st.floats(0, 2e9)),
        data=draw(st.sampled_from([{}, {"id": [1, "x"]}])),
    ).normalised()


def asked() -> st.SearchStrategy[Accelerator | None]:
    """Return accelerators that may be asked for."""
    custom = st.builds(
        Accelerator, st.just("FROB 9000"), memory_gb=st.none() | st.sampled_from([40, 64]), custom=st.just(True)
    )
    return st.none() | st.sampled_from(ASKED).map(accelerator) | custom


WANTED = st.builds(
    Wanted,
    accelerator=asked(),
    cpu_only=st.booleans(),
    provider=st.none() | st.sampled_from(["a", "b", "c"]),
    region=PLACES,
    accelerator_architecture=st.none() | st.sampled_from(["Hopper", "Ampere"]),
    manufacturer=st.none() | st.sampled_from(["NVIDIA", "AMD"]),
    accelerator_memory_gb=FIGURES,
    accelerator_memory_most_gb=FIGURES,
    accelerator_count=FIGURES,
    vcpus=FIGURES,
    memory_gb=FIGURES,
    way=st.sampled_from([None, "spot", "on-demand"]),
    max_price=PRICES,
    to_be_had=st.booleans(),
    orders=st.lists(st.builds(Order, st.sampled_from(ORDERS), st.booleans()), max_size=3).map(tuple),
    limit=st.none() | st.integers(1, 5),
)
# All wishes at once are met by nothing, so that most are left out most of the time.
SOME = st.builds(
    lambda wanted, kept: Wanted(**{name: getattr(wanted, name) for name in kept}),
    WANTED,
    st.sets(st.sampled_from([name for name in Wanted.__slots__ if not name.startswith("__")]), max_size=4),
)


@pytest.fixture(scope="module")
def db() -> Iterator[sqlite3.Connection]:
    """Give a database with empty tables."""
    connection = sqlite3.connect(":memory:")
    for statement in SCHEMA:
        connection.execute(statement)
    yield connection
    connection.close()


def fill(db: sqlite3.Connection, rows: list[Offer]) -> None:
    """Have these offers in the tables, and one of another source."""
    db.execute("DELETE FROM offer")
    db.executemany(INSERT, [row_of(row, 1) for row in rows])
    db.execute(INSERT, row_of(Offer(provider="a", instance_type="of another source", spot_price=0.1), 2))


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(rows=st.lists(offers(), max_size=12), wanted=SOME | WANTED)
def test_sql_finds_what_a_plain_filter_finds(db: sqlite3.Connection, rows: list[Offer], wanted: Wanted) -> None:
    """The same offers in the same order, and as many as are counted."""
    fill(db, rows)
    expected = select(wanted, rows)
    assert expected == [offer_of(row) for row in db.execute(*sql(wanted, [1]))]
    assert len(expected) == db.execute(*counting(wanted, [1])).fetchone()[0]


@given(offers())
def test_an_offer_comes_back_as_it_was(db: sqlite3.Connection, offer: Offer) -> None:
    """With its data, and with figures of the type they had."""
    fill(db, [offer])
    [back] = [offer_of(row) for row in db.execute(*sql(Wanted(), [1]))]
    assert offer == back
    assert repr(offer) == repr(back)


@given(wanted=SOME | WANTED, text=st.text(min_size=8))
def test_what_is_asked_for_stands_in_the_parameters(wanted: Wanted, text: str) -> None:
    """Whatever text is asked for, the statement is the same."""
    one, other = (
        Wanted(**{**{name: getattr(wanted, name) for name in ("orders", "way", "limit")}, "region": region, **more})
        for region, more in ((text, {"provider": text}), ("r", {"provider": "p"}))
    )
    assert sql(other, [1, 2])[0] == sql(one, [1, 2])[0]
    assert (1, 2, text, text) == sql(one, [1, 2])[1][:4]


@pytest.mark.parametrize(
    ("wanted", "index"),
    [
        (Wanted(accelerator=accelerator("H100"), way="spot", to_be_had=True, limit=5), "of_accelerator_by_spot_price"),
        (Wanted(accelerator=accelerator("H100"), to_be_had=True, limit=5), "of_accelerator_by_least_price"),
        (Wanted(way="on-demand", limit=5), "by_on_demand_price"),
    ],
)
def test_the_cheapest_are_found_by_an_index(db: sqlite3.Connection, wanted: Wanted, index: str) -> None:
    """Only rows of the same price are sorted, so that a few cheap ones are found without looking at all."""
    text, parameters = sql(wanted, [1])
    plan: list[Any] = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {text}", parameters)]
    assert index in plan[0].split()
    assert [] == [step for step in plan if step == "USE TEMP B-TREE FOR ORDER BY"]


@pytest.mark.slow
def test_five_of_a_hundred_thousand_take_no_look_at_all_of_them(db: sqlite3.Connection) -> None:
    """The database takes hundreds of steps for each offer that it gives, and not one for each that it has."""
    rows = [
        row_of(
            Offer(
                provider="cloud",
                instance_type=f"type-{number}",
                accelerator_name=NAMES[number % len(NAMES)],
                accelerator_count=1 + number % 8,
                spot_price=1 + number / 7,
                on_demand_price=2 + number / 7,
            ).normalised(),
            1,
        )
        for number in range(1000)
    ]
    db.executemany(INSERT, (row for _ in range(100) for row in rows))
    text, parameters = sql(Wanted(accelerator=accelerator("H100"), way="spot", to_be_had=True, limit=5), [1])
    counted = [0]

    def count() -> int:
        counted[0] += 1
        return 0

    db.set_progress_handler(count, 10)
    try:
        assert 5 == len(db.execute(text, parameters).fetchall())
    finally:
        db.set_progress_handler(None, 0)
    assert 10 * counted[0] < 20_000
    print(f"{10 * counted[0]} steps")
