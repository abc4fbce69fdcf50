"""
Providers of these tests: they sell what a test says, and do as it says while they are asked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from attrs import field, frozen

from skyward.hookspecs import Offer, ProviderFacts, hookimpl


async def at_once() -> None:
    """Answer without waiting."""


@frozen(kw_only=True)
class Cloud:
    """
    Sell what the test says, and write down that it was asked.

    Args:
        name: The provider's name.
        sold: What it sells; an exception is raised.
        ttl: How long that may be kept.
        key: What else its offers depend on.
        regions: Where it sells.
        secret: A setting that no output may show.
        meanwhile: Awaited while it is asked.
        asked: Gets the spec of each question.
    """

    name: str = "cloud"
    sold: Any = field(default=(), eq=False)
    ttl: float = 300.0
    key: str = ""
    regions: tuple[str, ...] = ()
    secret: str = field(default="", repr=False)
    meanwhile: Callable[[], Awaitable[object]] = field(default=at_once, eq=False, repr=False)
    asked: list[Any] = field(factory=list, eq=False, repr=False)

    @hookimpl
    def skyward_facts(self) -> ProviderFacts:
        return ProviderFacts(
            name=self.name, ends_own_bill=True, offers_ttl_s=self.ttl, offers_key=self.key, regions=self.regions
        )

    @hookimpl
    async def skyward_offers(self, spec: Any) -> Any:
        self.asked.append(spec)
        await self.meanwhile()
        if isinstance(self.sold, Exception):
            raise self.sold
        return self.sold

    @hookimpl
    async def skyward_launch(self) -> Any:
        raise AssertionError("nothing is to be rented")

    @hookimpl
    async def skyward_instances(self) -> Any:
        raise AssertionError("nothing is to be rented")

    @hookimpl
    async def skyward_terminate(self) -> Any:
        raise AssertionError("nothing is to be rented")


def gpu(name: str = "H100", price: float | None = 2.0, **facts: Any) -> Offer:
    """Return an offer with one accelerator."""
    defaults = {"provider": "cloud", "instance_type": f"{name}-box", "accelerator_count": 1}
    return Offer(**{**defaults, "accelerator_name": name, "on_demand_price": price, **facts})
