"""
Offers as a table, for notebooks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skyward.markup import DIM, FRAME, cell, element, escaped, table
from skyward.model.instances.cost_report import money

__all__ = ["OfferList", "offers_html"]

# What a reader looks through; the rest is counted.
_ROWS = 50
_HEADS = ("provider", "type", "place", "accelerators", "vCPUs", "memory", "spot", "on demand")


class OfferList(list[Any]):
    """
    Be a list of offers that notebooks show as a table.

    >>> OfferList()
    []
    """

    def _repr_html_(self) -> str:
        """Return the offers as a table."""
        return offers_html(self)


def offers_html(offers: Sequence[Any]) -> str:
    """
    Return offers as a table of HTML.

    Args:
        offers: The offers, the first fifty of which are shown.
    """
    parts = [table(map(_row, offers[:_ROWS]), _HEADS)] if offers else [element("div", "no offers", DIM)]
    if len(offers) > _ROWS:
        parts.append(element("div", escaped(f"+ {len(offers) - _ROWS:,} more"), DIM))
    return element("div", "".join(parts), FRAME)


def _row(offer: Any) -> list[str]:
    facts = [
        offer.provider,
        offer.instance_type,
        offer.zone or offer.region or "",
        offer.accelerators or "",
        "" if offer.vcpus is None else f"{offer.vcpus:g}",
        "" if offer.memory_gb is None else f"{offer.memory_gb:g} GB",
        _price(offer.spot_price),
        _price(offer.on_demand_price),
    ]
    return [cell(escaped(fact), "" if offer.available else DIM) for fact in facts]


def _price(usd: float | None) -> str:
    return "" if usd is None else f"{money(usd)}/h"
