"""What pools have cost: by their receipts, and without one by the events of their machines."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from attrs import evolve, frozen

from skyward.plan.logs.log_format import Record
from skyward.plan.logs.stored_pool import StoredPool

__all__ = ["By", "SpentRow", "Spent", "estimated", "from_receipts", "summed", "within"]

By: TypeAlias = Literal["day", "pool", "provider"]

_ENDS = frozenset({"InstanceDestroyed", "InstanceLingers"})


@frozen(kw_only=True)
class Spent:
    """
    Say what one pool has cost at one provider.

    Args:
        pool: The pool's name.
        pool_id: Its id.
        provider: The provider's name.
        began: From when, in seconds since 1970.
        ended: Until when.
        cost: In USD.
        savings: USD less than the same machines on demand, where that is known.
        estimate: Whether it follows from prices and times alone, because there is no receipt.
    """

    pool: str
    pool_id: str
    provider: str
    began: float
    ended: float
    cost: float
    savings: float = 0.0
    estimate: bool = False


@frozen(kw_only=True)
class SpentRow:
    """
    Say what was spent in all on one day, by one pool, or at one provider.

    Args:
        label: The day, the pool's name or the provider.
        pool_id: The pool's id, where it is one pool.
        pools: How many pools it was.
        cost: In USD.
        savings: USD less than on demand.
        estimate: How much of the cost is estimated, in USD.
        estimated: How many of the pools have no receipt.
    """

    label: str
    pool_id: str | None = None
    pools: int
    cost: float
    savings: float
    estimate: float = 0.0
    estimated: int = 0


def from_receipts(pool: StoredPool) -> list[Spent]:
    """
    Return what a pool has cost by its receipts, a value for each provider.

    Args:
        pool: The pool.
    """
    costs: dict[str, float] = defaultdict(float)
    total = savings = 0.0
    for receipt in pool.receipts:
        savings += float(receipt.get("savings", 0.0))
        total += float(receipt.get("total_cost", 0.0))
        for node in receipt.get("nodes", ()):
            costs[str(node.get("provider", ""))] += float(node.get("cost", 0.0))
    costs = costs or {pool.provider: 0.0}
    whole = math.fsum(costs.values())
    return [
        Spent(
            pool=pool.name,
            pool_id=pool.id,
            provider=provider,
            began=pool.began,
            ended=pool.ended or pool.began,
            cost=cost,
            # The receipt has one sum for all of them.
            savings=savings * cost / whole if whole else 0.0,
        )
        for provider, cost in costs.items()
    ]


def estimated(pool: StoredPool, events: Iterable[Record], now: float) -> list[Spent]:
    """
    Return what a pool without a receipt has cost, by the prices and times of its machines, a value for each provider.

    A machine whose end is not known counts until now if the pool is open, and else until the last event.

    Args:
        pool: The pool.
        events: The lines of its log that are events.
        now: The time, in seconds since 1970.
    """
    rates: dict[str, tuple[str, float, float]] = {}
    ends: dict[str, float] = {}
    last = pool.began
    for found in events:
        last = max(last, float(found["t"]))
        data = found.get("data") or {}
        machine = data.get("instance_id")
        if found.get("event") == "InstanceLaunched" and isinstance(machine, str):
            rate = data.get("price_spot") if data.get("spot") else data.get("price_on_demand")
            rates[machine] = (str(data.get("provider", "")), float(rate or 0.0), float(found["t"]))
        elif found.get("event") in _ENDS and isinstance(machine, str):
            ends[machine] = float(found["t"])
    over = now if pool.state == "open" else last
    costs: dict[str, float] = defaultdict(float)
    for machine, (provider, rate, since) in rates.items():
        costs[provider] += rate * max(0.0, ends.get(machine, over) - since) / 3600.0
    return [
        Spent(
            pool=pool.name,
            pool_id=pool.id,
            provider=provider,
            began=pool.began,
            ended=over,
            cost=cost,
            estimate=True,
        )
        for provider, cost in (costs or {pool.provider: 0.0}).items()
    ]


def within(spent: Iterable[Spent], since: float) -> Iterator[Spent]:
    """
    Return the part of each cost that falls after a moment, in proportion to the time.

    Args:
        spent: The costs.
        since: The moment, in seconds since 1970.

    >>> [one] = within([Spent(pool="a", pool_id="1", provider="aws", began=0.0, ended=10.0, cost=5.0)], 8.0)
    >>> one.cost, one.began
    (1.0, 8.0)
    """
    for one in spent:
        if one.began >= since:
            yield one
        elif one.ended > since:
            yield _part(one, since, one.ended)


def summed(spent: Sequence[Spent], by: By) -> list[SpentRow]:
    """
    Add up costs by day, by pool or by provider: days in order, the others with the largest cost first.

    A pool that was open on several days counts on each of them, in proportion to the time.

    Args:
        spent: The costs.
        by: What makes a row.

    >>> a = Spent(pool="a", pool_id="1", provider="aws", began=0.0, ended=10.0, cost=5.0)
    >>> [(row.label, row.pools, row.cost) for row in summed([a, evolve(a, pool_id="2", estimate=True)], "provider")]
    [('aws', 2, 10.0)]
    """
    parts = [part for one in spent for part in _days(one)] if by == "day" else list(spent)
    groups: dict[str, list[Spent]] = defaultdict(list)
    for part in parts:
        groups[_key(part, by)].append(part)
    rows = [
        SpentRow(
            label=group[0].pool if by == "pool" else key,
            pool_id=key if by == "pool" else None,
            pools=len({one.pool_id for one in group}),
            cost=math.fsum(one.cost for one in group),
            savings=math.fsum(one.savings for one in group),
            estimate=math.fsum(one.cost for one in group if one.estimate),
            estimated=len({one.pool_id for one in group if one.estimate}),
        )
        for key, group in groups.items()
    ]
    if by == "day":
        return sorted(rows, key=lambda row: row.label)
    return sorted(rows, key=lambda row: (-row.cost, row.label))


def _key(one: Spent, by: By) -> str:
    if by == "day":
        return datetime.fromtimestamp(one.began).astimezone().strftime("%Y-%m-%d")
    return one.pool_id if by == "pool" else one.provider


def _days(one: Spent) -> Iterator[Spent]:
    """Return the parts of a cost that fall on each day, by this computer's time zone."""
    start = one.began
    while True:
        # Without a zone, so that midnight is one here also where clocks are changed that day.
        day = datetime.fromtimestamp(start)  # noqa: DTZ006
        midnight = datetime.combine(day.date() + timedelta(days=1), datetime.min.time())
        end = min(max(midnight.timestamp(), start + 1.0), one.ended)
        yield _part(one, start, end)
        if end >= one.ended:
            return
        start = end


def _part(one: Spent, since: float, until: float) -> Spent:
    whole = one.ended - one.began
    share = (until - since) / whole if whole > 0 else 1.0
    return evolve(one, began=since, ended=until, cost=one.cost * share, savings=one.savings * share)
