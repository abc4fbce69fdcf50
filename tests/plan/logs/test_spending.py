"""What pools have cost is added up: by receipts, and as an estimate by the lives of machines."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from skyward.plan.logs.spending import Spent, estimated, from_receipts, summed, within
from skyward.plan.logs.stored_pool import StoredPool

NOON = datetime(2026, 3, 1, 12).astimezone().timestamp()
HOUR = 3600.0


def event(name: str, at: float, **data: Any) -> dict[str, Any]:
    return {"n": 1, "t": at, "k": "event", "event": name, "data": data}


def spent(cost: float, began: float = NOON, ended: float = NOON + HOUR, **others: Any) -> Spent:
    return Spent(**{"pool": "train", "pool_id": "a", "provider": "aws", **others}, cost=cost, began=began, ended=ended)


def test_a_receipt_counts_for_each_provider() -> None:
    """Its savings go along with the costs."""
    nodes = [{"provider": "aws", "cost": 3.0}, {"provider": "runpod", "cost": 1.0}]
    receipt = {"total_cost": 4.0, "savings": 2.0, "nodes": nodes}
    pool = StoredPool(id="a", name="train", began=NOON, ended=NOON + HOUR, receipts=(receipt, receipt))
    found = {one.provider: (one.cost, one.savings) for one in from_receipts(pool)}
    assert {"aws": (6.0, 3.0), "runpod": (2.0, 1.0)} == found


@pytest.mark.parametrize(("state", "hours"), [("open", 3.0), ("died", 2.0)])
def test_without_a_receipt_machines_count_by_price_and_time(state: Any, hours: float) -> None:
    """Until now where the pool is open, and until the last event where its program died."""
    pool = StoredPool(id="a", name="train", began=NOON, state=state)
    machine = {"provider": "aws", "price_on_demand": 2.0, "price_spot": 1.0}
    lines = [
        event("InstanceLaunched", NOON, instance_id="i-1", spot=True, **machine),
        event("InstanceLaunched", NOON, instance_id="i-2", spot=False, **machine),
        event("InstanceDestroyed", NOON + HOUR, instance_id="i-2"),
        event("CostUpdate", NOON + 2 * HOUR),
    ]
    [one] = estimated(pool, lines, NOON + 3 * HOUR)
    assert (True, 2.0 + hours) == (one.estimate, one.cost)


def test_damaged_events_count_nothing() -> None:
    """A line of which something is missing neither."""
    pool = StoredPool(id="a", name="train", began=NOON, state="died")
    lines = [event("InstanceLaunched", NOON), {"n": 1, "t": NOON, "k": "event"}]
    assert [0.0] == [one.cost for one in estimated(pool, lines, NOON)]


def test_costs_are_added_up_by_pool_and_provider() -> None:
    """The largest first, with what of it is an estimate."""
    all_of_them = [spent(1.0), spent(5.0, pool_id="b"), spent(2.0, provider="runpod", estimate=True)]
    by_pool = summed(all_of_them, "pool")
    assert [("b", 5.0, 0.0), ("a", 3.0, 2.0)] == [(row.pool_id, row.cost, row.estimate) for row in by_pool]
    by_provider = summed(all_of_them, "provider")
    assert [("aws", 2, 6.0, 0), ("runpod", 1, 2.0, 1)] == [
        (row.label, row.pools, row.cost, row.estimated) for row in by_provider
    ]


def test_a_night_counts_on_both_days() -> None:
    """In proportion to the hours."""
    midnight = datetime(2026, 3, 2).astimezone().timestamp()
    rows = summed([spent(4.0, midnight - HOUR, midnight + 3 * HOUR)], "day")
    assert [("2026-03-01", 1.0), ("2026-03-02", 3.0)] == [(row.label, row.cost) for row in rows]


def test_a_pool_of_no_length_counts_whole() -> None:
    """It may have ended in the second in which it began."""
    assert [("2026-03-01", 4.0)] == [(row.label, row.cost) for row in summed([spent(4.0, NOON, NOON)], "day")]


def test_what_was_spent_since_then_is_a_part() -> None:
    """What was over by then is none of it."""
    found = list(within([spent(4.0), spent(7.0, NOON - HOUR, NOON - 60)], NOON + HOUR / 4))
    assert [3.0] == [one.cost for one in found]
