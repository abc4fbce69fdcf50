"""
Which of the offers a query asks for, and in which order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from attrs import frozen

from skyward.errors import ConfigError
from skyward.model.accelerators.accelerator import Accelerator
from skyward.model.fields.setting import nearest
from skyward.model.instances.offer import Offer

__all__ = ["ORDERS", "Order", "Wanted", "order", "select"]

ORDERS = (
    "price",
    "spot_price",
    "on_demand_price",
    "accelerator_count",
    "accelerator_memory_gb",
    "vcpus",
    "memory_gb",
    "disk_gb",
    "accelerator_name",
    "architecture",
    "provider",
    "instance_type",
    "region",
    "zone",
    "seen_at",
)
"""What offers can be ordered by: the price that the query is about, and fields of an offer."""


@frozen
class Order:
    """
    Order offers by one of their facts; those without it come last either way.

    Args:
        by: One of `ORDERS`.
        descending: Whether the greatest comes first.
    """

    by: str
    descending: bool = False


def order(expression: object) -> Order:
    """
    Read what a user writes for an order.

    Args:
        expression: One of `ORDERS`, for the greatest first with a minus before it or `desc` behind it.

    Raises:
        ConfigError: If it is none of them; the nearest is offered.

    >>> order("-vcpus") == order("vcpus desc") == Order("vcpus", descending=True)
    True
    """
    if not isinstance(expression, str):
        raise ConfigError(f"order_by must be the name of a field, not {expression!r}.", hint='Write order_by("price").')
    name, _, way = expression.strip().removeprefix("-").partition(" ")
    way = way.strip().lower()
    minus = expression.strip().startswith("-")
    if name in ORDERS and way in ("", "asc", "desc") and not (minus and way):
        return Order(name, descending=minus or way == "desc")
    meant = nearest(name, ORDERS)
    raise ConfigError(
        f"order_by={expression!r} is no order of offers.",
        hint=(f'Did you mean "{meant}"? ' if meant and meant != name else "")
        + f'Accepted: {", ".join(ORDERS)}; with "-" before it, the greatest comes first.',
    )


@frozen(kw_only=True)
class Wanted:
    """
    Say which offers are wanted; what is None does not matter.

    An offer without a fact that is asked for is not wanted, except memory and form factor of an
    accelerator that is asked for by name, which are then taken to be right.

    Args:
        accelerator: What it must have, as `Accelerator.accepts` checks.
        cpu_only: Whether it must be without accelerators.
        provider: The provider's name.
        region: Where it must be.
        accelerator_architecture: Generation of its accelerators.
        manufacturer: That of its accelerators.
        accelerator_memory_gb: Memory of one accelerator at least.
        accelerator_memory_most_gb: Memory of one accelerator at most.
        accelerator_count: Accelerators at least.
        vcpus: Virtual CPUs at least.
        memory_gb: Main memory at least, in GB.
        way: In which of both ways it must be sold; the price is that of this way, else the lower one.
        max_price: The most that an hour may cost, in USD.
        to_be_had: Whether it must have a price, and be available.
        orders: What comes first; where nothing is said, the lowest price.
        limit: How many at most.

    >>> Wanted(way="spot").price(Offer(provider="a", instance_type="b", spot_price=1.0, on_demand_price=3.0))
    1.0
    """

    accelerator: Accelerator | None = None
    cpu_only: bool = False
    provider: str | None = None
    region: str | None = None
    accelerator_architecture: str | None = None
    manufacturer: str | None = None
    accelerator_memory_gb: float | None = None
    accelerator_memory_most_gb: float | None = None
    accelerator_count: float | None = None
    vcpus: float | None = None
    memory_gb: float | None = None
    way: Literal["spot", "on-demand"] | None = None
    max_price: float | None = None
    to_be_had: bool = False
    orders: tuple[Order, ...] = ()
    limit: int | None = None

    @property
    def price_field(self) -> str:
        """Return the field of an offer that holds the price the query is about."""
        return {"spot": "spot_price", "on-demand": "on_demand_price"}.get(self.way or "", "least_price")

    def price(self, offer: Offer) -> float | None:
        """Return the price that the query is about; None where it is not sold so."""
        price: float | None = getattr(offer, self.price_field)
        return price

    def accepts(self, offer: Offer) -> bool:
        """
        Return whether an offer is one of those wanted.

        Args:
            offer: What is sold, in the catalogue's words; see `Offer.normalised`.
        """
        price = self.price(offer)
        return (
            self._accepts_accelerator(offer)
            and self.provider in (None, offer.provider)
            and self.region in (None, offer.region)
            and _at_least(offer.vcpus, self.vcpus)
            and _at_least(offer.memory_gb, self.memory_gb)
            and (self.way is None or price is not None)
            and (self.max_price is None or (price is not None and price <= self.max_price))
            and (not self.to_be_had or (price is not None and offer.available))
        )

    def _accepts_accelerator(self, offer: Offer) -> bool:
        """Return whether the accelerators of an offer will do."""
        seen = offer.accelerator
        most = math.inf if self.accelerator_memory_most_gb is None else self.accelerator_memory_most_gb
        return (
            (self.accelerator is None or (seen is not None and self.accelerator.accepts(seen)))
            and not (self.cpu_only and (offer.accelerator_name is not None or offer.accelerator_count))
            and self.accelerator_architecture in (None, offer.accelerator_architecture)
            and self.manufacturer in (None, offer.accelerator_manufacturer)
            and _at_least(offer.accelerator_count, self.accelerator_count)
            and _at_least(offer.accelerator_memory_gb, self.accelerator_memory_gb)
            and (most == math.inf or (offer.accelerator_memory_gb or math.inf) <= most)
        )


def select(wanted: Wanted, offers: Iterable[Offer]) -> list[Offer]:
    """
    Return the offers that are wanted, in the order asked for; equal ones by their keys.

    Args:
        wanted: What is asked for.
        offers: What is sold, in the catalogue's words.
    """
    found = sorted((offer for offer in offers if wanted.accepts(offer)), key=lambda offer: offer.key)
    for one in reversed(wanted.orders or (Order("price"),)):
        known, unknown = _split(found, _reader(wanted, one.by))
        # Sorting in reverse keeps equal ones in their order too.
        found = [*sorted(known, key=_reader(wanted, one.by), reverse=one.descending), *unknown]
    return found[: wanted.limit]


def _reader(wanted: Wanted, name: str) -> Callable[[Offer], Any]:
    """Return what reads a fact that offers are ordered by."""
    return wanted.price if name == "price" else lambda offer: getattr(offer, name)


def _split(offers: Sequence[Offer], read: Callable[[Offer], Any]) -> tuple[list[Offer], list[Offer]]:
    """Return the offers that have a fact, and those that do not."""
    return [one for one in offers if read(one) is not None], [one for one in offers if read(one) is None]


def _at_least(figure: float | None, least: float | None) -> bool:
    """Return whether a figure that may be unknown is large enough."""
    return least is None or (figure is not None and figure >= least)
