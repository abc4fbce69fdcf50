"""What EC2 sells in a region now, and what it costs there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import evolve

from skyward.provider import Offer, sold, unknown_name
from skyward_aws.catalogue import patterns, price_filters, prices, spot_prices, to_offer, useful
from skyward_aws.region import Region

if TYPE_CHECKING:
    from skyward.provider import Spec

__all__ = ["offers", "spot_by_zone", "zones_that_sell"]

FEW = 12
"""Up to so many types are priced by a call for each, side by side; more by walking the list, page after page."""

PRICING_REGIONS = ("us-east-1", "eu-central-1", "ap-south-1")
"""Where the price list can be asked."""

_TYPES_A_CALL = 100
_HOLDS = 3600.0
_OFFERINGS = ("DescribeInstanceTypeOfferings", "InstanceTypeOfferings")


async def offers(region: Region, spec: Spec, zone: str | None) -> Sequence[Offer]:
    """
    List what a region sells, one offer for each type.

    Args:
        region: Where.
        spec: What is asked for; types that can never meet it are left out.
        zone: Only what this zone sells; None for any.

    Raises:
        ConfigError: If the spec names a type that does not exist.
        SkywardError: If AWS refuses.
    """
    kinds = await _types(region, patterns(spec))
    rows = sold(kinds, lambda row: row if useful(row, spec) else None, provider="aws")
    if not rows and spec.machine is not None:
        await _refuse_unknown(region, spec.machine)
    names = [row["InstanceType"] for row in rows]
    on_demand, spot, there = await asyncio.gather(
        _on_demand(region, names), _spot(region, names, zone), _sold(region, names, zone)
    )
    seen, found = time.time(), []
    for row in rows:
        name = row["InstanceType"]
        usages = row.get("SupportedUsageClasses", ("on-demand", "spot"))
        lowest = min(spot.get(name, {}).values(), default=None) if "spot" in usages else None
        price = on_demand.get(name) if "on-demand" in usages else None
        offer = to_offer(row, region.name, price, lowest)
        if offer is not None and name in there and not (price is None and lowest is None):
            found.append(evolve(offer, zone=zone, seen_at=seen))
    return tuple(sorted(found, key=_cost))


async def spot_by_zone(region: Region, name: str) -> Mapping[str, float]:
    """
    Return what an hour of a type costs on the spot market of each zone now, in USD.

    Args:
        region: Where.
        name: The type.
    """
    return (await _spot(region, [name], None)).get(name, {})


async def zones_that_sell(region: Region, name: str) -> frozenset[str]:
    """
    Return the zones that sell a type; that they sell it does not say that they have any.

    Args:
        region: Where.
        name: The type.
    """
    rows = await region.kept(("zones", name), _HOLDS, partial(_offerings, region, None, [name]))
    return frozenset(row["Location"] for row in rows)


async def _types(region: Region, wanted: tuple[str, ...]) -> list[Any]:
    where = {"instance-type": wanted, "bare-metal": ("false",)}
    ask = partial(region.pages, "DescribeInstanceTypes", "InstanceTypes", where, MaxResults=100)
    return await region.kept(("types", wanted), _HOLDS, ask)


async def _on_demand(region: Region, names: Sequence[str]) -> dict[str, float]:
    ask = partial(_listed, region)
    if len(names) <= FEW:
        asked = (region.kept(("price", name), _HOLDS, partial(ask, name)) for name in names)
        return {name: price for found in await asyncio.gather(*asked) for name, price in found.items()}
    return await region.kept(("price",), _HOLDS, partial(ask, None))


async def _listed(region: Region, name: str | None) -> dict[str, float]:
    front = region.name.partition("-")[0]
    home = next((each for each in PRICING_REGIONS if each.startswith(front)), PRICING_REGIONS[0])
    asked = {"ServiceCode": "AmazonEC2", "Filters": price_filters(region.name, name), "MaxResults": 100}
    return prices(await region.account.pages("pricing", home, "GetProducts", "PriceList", **asked))


async def _spot(region: Region, names: Sequence[str], zone: str | None) -> dict[str, dict[str, float]]:
    now, where = datetime.now(UTC), {"availability-zone": [zone]} if zone else {}
    ask = partial(region.pages, "DescribeSpotPriceHistory", "SpotPriceHistory", where, StartTime=now, EndTime=now)
    return spot_prices(await _in_parts(names, lambda part: ask(InstanceTypes=part, ProductDescriptions=["Linux/UNIX"])))


async def _sold(region: Region, names: Sequence[str], zone: str | None) -> frozenset[str]:
    """Return which types are sold in a zone; all of them, if none is named."""
    if zone is None:
        return frozenset(names)
    return frozenset(row["InstanceType"] for row in await _in_parts(names, partial(_offerings, region, zone)))


async def _offerings(region: Region, zone: str | None, names: Sequence[str]) -> list[Any]:
    where = {"instance-type": names, **({"location": [zone]} if zone is not None else {})}
    return await region.pages(*_OFFERINGS, where, LocationType="availability-zone")


async def _in_parts(names: Sequence[str], ask: Callable[[Sequence[str]], Awaitable[list[Any]]]) -> list[Any]:
    """Return what all calls list; each is about as many types as it may be."""
    parts = (names[start : start + _TYPES_A_CALL] for start in range(0, len(names), _TYPES_A_CALL))
    return [row for rows in await asyncio.gather(*map(ask, parts)) for row in rows]


async def _refuse_unknown(region: Region, name: str) -> None:
    """Refuse a type that does not exist in a region, and offer the nearest; one that exists passes."""
    there = {row["InstanceType"] for row in await region.pages(*_OFFERINGS, LocationType="region")}
    if name not in there:
        raise unknown_name(f"There is no instance type {name!r} in {region}", name, there, provider="aws")


def _cost(offer: Offer) -> float:
    return min(price for price in (offer.spot_price, offer.on_demand_price) if price is not None)
