"""
A pool at one moment as HTML, for notebooks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from skyward.markup import DIM, FRAME, element, escaped
from skyward.model.instances.cost_report import Cost, money

__all__ = ["PoolTable", "pool_html"]


class PoolTable:
    """Show a pool in a notebook; the part of a pool that does."""

    def _repr_html_(self: Any) -> str:
        return pool_html(self.snapshot(), self.cost)


def pool_html(snapshot: Mapping[str, Any], cost: Cost) -> str:
    """
    Return a pool as HTML: whether it is open, its nodes, calls and cost.

    Args:
        snapshot: What `pool.snapshot()` returns.
        cost: What it costs.

    >>> "not open" in pool_html({"name": "train", "active": False}, Cost())
    True
    """
    active = bool(snapshot["active"])
    title = element("b", escaped(f"pool {snapshot['name']}"))
    parts = [f"{title} {element('span', escaped('open' if active else 'not open'), DIM)}", *_facts(snapshot, cost)]
    return element("div", "".join(element("div", part) for part in parts), FRAME)


def _facts(snapshot: Mapping[str, Any], cost: Cost) -> Iterator[str]:
    if snapshot["active"]:
        states = Counter(snapshot["nodes"].values())
        nodes = ", ".join(f"{number} {state}" for state, number in states.items()) or "none"
        yield escaped(f"nodes {nodes} of {snapshot['desired']}")
        yield escaped(f"calls {snapshot['running']} running, {snapshot['queued']} queued, {snapshot['slots']} slots")
    if cost.accumulated or cost.hourly_rate:
        rate = f" · {money(cost.hourly_rate)}/h" if cost.hourly_rate else ""
        yield escaped(f"cost {money(cost.accumulated)}{rate}")
