"""In which order the specs of a pool are tried."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from attrs import field, frozen

from skyward.errors import ConfigError
from skyward.model.instances.offer import Offer
from skyward.model.spec.spec import Spec


def _offers(value: Iterable[Offer]) -> tuple[Offer, ...]:
    """Return offers as a tuple."""
    return tuple(value)


@frozen(kw_only=True, eq=False)
class ProviderView:
    """
    Show a selection function one provider, and what it sells now.

    Args:
        name: The provider's name.
        provider: The value that the user wrote.
        spec: The spec that it would be taken for.
        offers: What it sells that meets the spec; empty if nothing does, or if it could not be asked.
    """

    name: str
    provider: Any
    spec: Spec
    offers: tuple[Offer, ...] = field(default=(), converter=_offers)

    def has_spot_capacity(self, spec: Spec | None = None) -> bool:
        """Return whether it sells machines that may be reclaimed, at this moment."""
        return any(offer.spot_price is not None and offer.available is not False for offer in self.offers)

    @property
    def price(self) -> float:
        """Return the least price in USD an hour that the spec's allocation allows; infinite if there is none."""
        prices = []
        for offer in self.offers:
            if offer.on_demand_price is not None and self.spec.allocation.allows_on_demand:
                prices.append(offer.on_demand_price)
            if offer.spot_price is not None and self.spec.allocation.allows_spot:
                prices.append(offer.spot_price)
        return min(prices, default=math.inf)


def in_order(views: Sequence[ProviderView], selection: str) -> tuple[ProviderView, ...]:
    """
    Order providers by a named strategy; those that sell nothing fitting come last in any case but `first`.

    Args:
        views: In the order that the user gave.
        selection: `"first"`, `"cheapest"` or `"available"`.
    """
    if selection == "cheapest":
        return tuple(sorted(views, key=lambda view: view.price))
    if selection == "available":
        return tuple(sorted(views, key=lambda view: not view.offers))
    return tuple(views)


def select_first(providers: Sequence[ProviderView], spec: Spec) -> tuple[ProviderView, ...]:
    """
    Return providers in the order that the user gave; `selection="first"` as a function.

    Args:
        providers: What a selection function is given.
        spec: The spec, which this does not look at.
    """
    return in_order(providers, "first")


def select_cheapest(providers: Sequence[ProviderView], spec: Spec) -> tuple[ProviderView, ...]:
    """
    Return providers by their least price; `selection="cheapest"` as a function.

    Args:
        providers: What a selection function is given.
        spec: The spec, which this does not look at: each view has its own.

    >>> from skyward.model.instances.offer import Offer
    >>> def view(name, price):
    ...     offer = Offer(provider=name, instance_type="x", on_demand_price=price)
    ...     return ProviderView(name=name, provider=None, spec=Spec(), offers=[offer])
    >>> [view.name for view in select_cheapest([view("expensive", 3.0), view("cheap", 1.0)], Spec())]
    ['cheap', 'expensive']
    """
    return in_order(providers, "cheapest")


def select_available(providers: Sequence[ProviderView], spec: Spec) -> tuple[ProviderView, ...]:
    """
    Return providers that sell something fitting now before the others; `selection="available"` as a function.

    Args:
        providers: What a selection function is given.
        spec: The spec, which this does not look at: each view has its own.
    """
    return in_order(providers, "available")


def as_chosen(views: Sequence[ProviderView], chosen: Any) -> tuple[ProviderView, ...]:
    """
    Read what a selection function returned.

    Args:
        views: What it was given.
        chosen: One of them, or its provider, which the others follow in the order given; or several, which nothing
            follows.

    Raises:
        ConfigError: If it is anything else.
    """
    picks = chosen if isinstance(chosen, list | tuple) else [chosen]
    found = []
    for pick in picks:
        match = [view for view in views if view is pick or view.provider is pick]
        if not match:
            raise ConfigError(
                f"The selection function returned {pick!r}, which is none of the providers it was given.",
                hint="Return one of them, or a list of them in the order to try.",
            )
        found.append(match[0])
    if not found:
        raise ConfigError("The selection function returned no provider.", hint="Return at least one of those it gets.")
    if picks is not chosen:
        found += [view for view in views if view is not found[0]]
    return tuple(found)
