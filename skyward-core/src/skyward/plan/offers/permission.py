"""
Limits of renting without permission: no machine far more expensive than the cheapest, no accelerator not asked for.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve, frozen

from skyward.model.instances.offer import Offer
from skyward.model.spec.spec import Spec

__all__ = ["OVERPRICED", "Least", "least_of", "not_asked_for", "seen", "too_expensive"]

OVERPRICED = 2.0
"""The most that a machine may cost without `max_hourly_cost`, in multiples of the cheapest."""


@frozen(kw_only=True)
class Least:
    """
    Remember the cheapest of what met a spec, also when it is sold out by now.

    Args:
        spot: The lowest price on the spot market, in USD per hour; None where nothing was sold so.
        on_demand: The lowest price on demand, in USD per hour; None where nothing was sold so.
        plain: Whether the provider sells machines without accelerators at all.
    """

    spot: float | None = None
    on_demand: float | None = None
    plain: bool = False


def seen(least: Least, offers: Iterable[Offer]) -> Least:
    """
    Record whether a provider sells machines without accelerators, available now or not.

    Args:
        least: What was known before.
        offers: What the provider lists.
    """
    return evolve(least, plain=least.plain or any(not offer.accelerator_count for offer in offers))


def least_of(least: Least, *, spot: Iterable[float], on_demand: Iterable[float]) -> Least:
    """
    Record the lowest prices.

    Args:
        least: What was known before.
        spot: Prices of what meets the spec on the spot market, in USD per hour.
        on_demand: The same on demand.

    >>> least_of(Least(spot=0.2), spot=[0.3], on_demand=[1.0, 0.5])
    Least(spot=0.2, on_demand=0.5, plain=False)
    """
    return evolve(least, spot=_lower(least.spot, spot), on_demand=_lower(least.on_demand, on_demand))


def not_asked_for(spec: Spec, offer: Offer, least: Least) -> str:
    """
    Return what an offer that meets a spec has that costs money and is not asked for; nothing if there is no such thing.

    A provider that sells accelerators only was chosen with them.

    Args:
        spec: What the user asks for.
        offer: What meets it.
        least: What is known of the provider.

    >>> gpu = Offer(provider="x", instance_type="a", accelerator_name="T4", accelerator_count=1, on_demand_price=1)
    >>> not_asked_for(Spec(), gpu, Least(plain=True))
    'has 1 × T4, which is not asked for'
    >>> not_asked_for(Spec(machine="a"), gpu, Least(plain=True))
    ''
    """
    wanted = spec.accelerator is not None or spec.machine is not None or spec.max_hourly_cost is not None
    if wanted or not offer.accelerator_count or not offer.least_price or not least.plain:
        return ""
    return f"has {offer.accelerator_count:g} × {offer.accelerator_name}, which is not asked for"


def too_expensive(spec: Spec, price: float, least: Least, *, spot: bool) -> str:
    """
    Return why a machine costs more than may be paid without permission; nothing if it does not.

    Where both markets are allowed, a spot machine may cost what one on demand may.

    Args:
        spec: What the user asks for.
        price: What it costs, in USD per hour.
        least: The cheapest of what meets the spec.
        spot: On which market.

    >>> too_expensive(Spec(), 0.7, Least(spot=0.1, on_demand=0.5), spot=True)
    ''
    >>> too_expensive(Spec(), 1.2, Least(spot=0.1, on_demand=0.5), spot=False)
    'costs more than twice $0.5/h, the cheapest that meets the requirements'
    """
    lowest = least.spot if spot and least.on_demand is None else least.on_demand
    if spec.max_hourly_cost is not None or lowest is None or price <= OVERPRICED * lowest:
        return ""
    return f"costs more than twice ${lowest:.4g}/h, the cheapest that meets the requirements"


def _lower(before: float | None, prices: Iterable[float]) -> float | None:
    return min((*prices, *(() if before is None else (before,))), default=None)
