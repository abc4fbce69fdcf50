"""Events about what a pool costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from skyward.model.events.event_base import SkywardEvent

if TYPE_CHECKING:
    from skyward.model.instances.cost_report import Receipt


@frozen(kw_only=True)
class CostUpdate(SkywardEvent):
    """Report what the pool has cost until now; money in USD, `hourly_rate` in USD an hour."""

    elapsed_seconds: float
    accumulated_cost: float
    hourly_rate: float
    spot_count: int
    ondemand_count: int


@frozen(kw_only=True)
class CostFinal(SkywardEvent):
    """
    Report what the pool has cost in the end, and what it saved against on-demand prices, in USD.

    Args:
        hourly_rate: The most that an hour of it cost at any moment.
        spot_count: Machines that it rented as spot, in all.
        ondemand_count: Machines that it rented on demand, in all.
        receipt: Where money and time went.
    """

    total_cost: float
    total_seconds: float
    hourly_rate: float = 0.0
    spot_count: int = 0
    ondemand_count: int = 0
    savings_vs_ondemand: float = 0.0
    receipt: Receipt | None = None
