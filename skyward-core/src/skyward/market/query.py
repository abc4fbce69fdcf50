"""
Queries for offers, as values that are made narrower step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol, overload

from attrs import evolve, field, frozen

from skyward.errors import ConfigError
from skyward.market.store import OfferStore
from skyward.model.accelerators.accelerator import Accelerator, accelerator
from skyward.model.accelerators.catalogue import CATALOGUE
from skyward.model.fields.memory import gigabytes
from skyward.model.fields.setting import nearest, positive, text, whole
from skyward.model.instances.offer_table import OfferList
from skyward.plan.offers.wanted import Order, Wanted, order

if TYPE_CHECKING:
    from skyward.market.query_answer import Counted, Listed

__all__ = ["Query"]

# The name keeps the method's name free inside `Query`.
_parsed = accelerator


class Sellers(Protocol):
    """Where offers are looked up."""

    @property
    def providers(self) -> tuple[str, ...]:
        """Return the names of the providers."""

    @property
    def regions(self) -> tuple[str, ...] | None:
        """Return where they sell; None where one of them does not say."""

    def look_up(self, wanted: Wanted, look: Callable[..., Any], read: Callable[[Any], Any] = ...) -> Any:
        """Look once what is known is new enough: `look` gives what there is, and `read` makes the answer of it."""


@frozen(kw_only=True)
class Query:
    """
    Ask for offers: each step returns a narrower query, and `cheapest`, `all`, `first` and `count` give the answer.

    An offer without a figure that is asked for is left out.

    Args:
        offers: Where they are looked up.
        wanted: What is asked for so far.

    >>> import skyward as sky
    >>> query = sky.offers([sky.Local()]).select().vcpus(1)
    >>> query.max_price(1.0).first().provider
    'local'
    """

    offers: Sellers = field(repr=False)
    wanted: Wanted = field(factory=Wanted)

    def accelerator(self, name: Accelerator | str) -> Query:
        """
        Ask for accelerators.

        Args:
            name: As `sky.Compute(accelerator=...)` takes it: `"H100"`, `"H100:8"`, `sky.accelerators.H100(count=8)`.

        Raises:
            ConfigError: If there are none of this name; the nearest are offered.
        """
        asked = _parsed(name)
        if asked is None:
            raise ConfigError("accelerator must be an accelerator or its name, not None.", hint="Write cpu_only().")
        return self._with(accelerator=asked)

    def provider(self, name: str) -> Query:
        """
        Ask for the offers of one provider.

        Args:
            name: The provider's name in offers, such as `"local"`.

        Raises:
            ConfigError: If it is none of those that are looked at.
        """
        return self._with(provider=_one_of(name, "provider", self.offers.providers))

    def region(self, region: str) -> Query:
        """
        Ask for the offers in one region.

        Args:
            region: As the provider calls it.

        Raises:
            ConfigError: If all providers say where they sell, and none of them sells there.
        """
        known = self.offers.regions
        return self._with(region=text(region, "region") if known is None else _one_of(region, "region", known))

    def architecture(self, name: str) -> Query:
        """
        Ask for accelerators of one generation.

        Args:
            name: As its maker calls it, such as `"Hopper"`.

        Raises:
            ConfigError: If the catalogue has none; the nearest is offered.
        """
        CATALOGUE.complete()
        known = dict.fromkeys(device.architecture for device in CATALOGUE)
        return self._with(accelerator_architecture=_one_of(name, "architecture", known))

    def manufacturer(self, name: str) -> Query:
        """
        Ask for accelerators of one maker.

        Args:
            name: The maker, such as `"NVIDIA"`.

        Raises:
            ConfigError: If the catalogue has none; the nearest is offered.
        """
        CATALOGUE.complete()
        known = dict.fromkeys(device.manufacturer for device in CATALOGUE)
        return self._with(manufacturer=_one_of(name, "manufacturer", known))

    def cpu_only(self) -> Query:
        """
        Ask for machines without accelerators.

        Raises:
            ConfigError: If accelerators are asked for, too.
        """
        return self._with(cpu_only=True)

    def accelerator_memory(self, min_gb: float | str, max_gb: float | str | None = None) -> Query:
        """
        Ask for the memory of one accelerator.

        Args:
            min_gb: What it has at least, in GB or as text such as `"40GB"`.
            max_gb: What it has at most.

        Raises:
            ConfigError: If one is no amount of memory, or the second is less than the first.
        """
        least = gigabytes(min_gb, "min_gb")
        most = None if max_gb is None else gigabytes(max_gb, "max_gb")
        if most is not None and most < least:
            raise ConfigError(f"max_gb={max_gb!r} is less than min_gb={min_gb!r}.")
        return self._with(accelerator_memory_gb=least, accelerator_memory_most_gb=most)

    def accelerator_count(self, n: float) -> Query:
        """
        Ask for a number of accelerators.

        Args:
            n: How many a machine has at least; below 1 for a share of one.

        Raises:
            ConfigError: If it is no number above zero.
        """
        return self._with(accelerator_count=positive(n, "accelerator_count"))

    def vcpus(self, min: float) -> Query:  # noqa: A002
        """
        Ask for virtual CPUs.

        Args:
            min: How many a machine has at least.

        Raises:
            ConfigError: If it is no number above zero.
        """
        return self._with(vcpus=positive(min, "vcpus"))

    def memory(self, min_gb: float | str) -> Query:
        """
        Ask for main memory.

        Args:
            min_gb: What a machine has at least, in GB or as text such as `"64GB"`.

        Raises:
            ConfigError: If it is no amount of memory.
        """
        return self._with(memory_gb=gigabytes(min_gb, "memory"))

    def spot(self) -> Query:
        """
        Ask for what is sold as spot; from here on, the price is that of spot.

        Raises:
            ConfigError: If on-demand machines are asked for, too.
        """
        return self._sold("spot")

    def on_demand(self) -> Query:
        """
        Ask for what is sold on demand; from here on, the price is that of on demand.

        Raises:
            ConfigError: If spot machines are asked for, too.
        """
        return self._sold("on-demand")

    def max_price(self, usd_per_hour: float) -> Query:
        """
        Ask for what costs no more than this.

        Args:
            usd_per_hour: The most that an hour of one machine may cost; 0 for what is free.

        Raises:
            ConfigError: If it is no price.
        """
        price = 0.0 if usd_per_hour == 0 and not isinstance(usd_per_hour, bool) else positive(usd_per_hour, "max_price")
        return self._with(max_price=price)

    def order_by(self, expr: str) -> Query:
        """
        Return what comes first; where nothing is said, the lowest price.

        Args:
            expr: `"price"` or a field of an offer, such as `"vcpus"`; `"-vcpus"` puts the most first. Asked for
                again, it orders those that are equal so far.

        Raises:
            ConfigError: If offers have no such field; the nearest is offered.
        """
        return self._with(orders=(*self.wanted.orders, order(expr)))

    def limit(self, n: int) -> Query:
        """
        Ask for the first so many.

        Args:
            n: How many at most.

        Raises:
            ConfigError: If it is no whole number above zero.
        """
        return self._with(limit=whole(n, "limit", least=1))

    @overload
    def cheapest(self, n: None = None) -> Any: ...
    @overload
    def cheapest(self, n: int) -> Listed: ...
    def cheapest(self, n: int | None = None) -> Any:
        """
        Return the cheapest offer that can be had now, or the cheapest few.

        Args:
            n: How many; without it, the one.

        Returns:
            An `Offer`, or None if there is none; with `n`, a list.
        """
        most = 1 if n is None else whole(n, "n", least=1)
        query = self._with(
            to_be_had=True,
            orders=(Order("price"), *self.wanted.orders),
            limit=min(most, self.wanted.limit or most),
        )
        return query.first() if n is None else query.all()

    def all(self) -> Listed:
        """Return all offers asked for, as a list."""
        found: Listed = self.offers.look_up(self.wanted, OfferStore.find, OfferList)
        return found

    def first(self) -> Any:
        """Return the first offer asked for, or None if there is none."""
        return self.offers.look_up(evolve(self.wanted, limit=1), OfferStore.find, lambda found: next(iter(found), None))

    def count(self) -> Counted:
        """Return how many offers are asked for."""
        found: Counted = self.offers.look_up(self.wanted, OfferStore.count)
        return found

    def _sold(self, way: Any) -> Query:
        """Return a query for what is sold in one way."""
        if self.wanted.way not in (None, way):
            raise ConfigError("spot() and on_demand() exclude each other.", hint="Leave out both for either.")
        return self._with(way=way)

    def _with(self, **changes: Any) -> Query:
        """Return a narrower query, unless nothing could meet it."""
        wanted = evolve(self.wanted, **changes)
        about = (wanted.accelerator, wanted.accelerator_architecture, wanted.manufacturer)
        figures = (wanted.accelerator_memory_gb, wanted.accelerator_count)
        if wanted.cpu_only and any(one is not None for one in (*about, *figures)):
            raise ConfigError("cpu_only() and accelerators exclude each other.", hint="Leave out one of them.")
        return evolve(self, wanted=wanted)


def _one_of(value: object, parameter: str, known: Iterable[str]) -> str:
    """Return the one of the known names that is meant, in any case; refuse all others."""
    names = {name.lower(): name for name in known}
    if isinstance(value, str) and value.strip().lower() in names:
        return names[value.strip().lower()]
    meant = nearest(value, names.values())
    raise ConfigError(
        f"{parameter}={value!r} is none of those that are known.",
        hint=(f'Did you mean "{meant}"? ' if meant else "") + f"Accepted: {', '.join(names.values())}.",
    )
