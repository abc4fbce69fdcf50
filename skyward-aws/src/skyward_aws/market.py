"""What EC2 sells in a region now, and what it costs there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import evolve

from skyward.provider import ConfigError, Offer, sold
from skyward_aws.account import PRICING_REGIONS, Account
from skyward_aws.catalogue import patterns, price_filters, prices, spot_prices, to_offer, useful

if TYPE_CHECKING:
    from skyward.provider import Spec

__all__ = ["offers", "spot_by_zone", "zones_that_sell"]

FEW = 12
"""Up to so many types are priced by a call for each, side by side; more by walking the list, page after page."""

_TYPES_A_CALL = 100
_PRICES_HOLD = 3600.0
_TYPES_HOLD = 3600.0
_ZONES_HOLD = 3600.0


async def offers(account: Account, region: str, spec: Spec, zone: str | None) -> Sequence[Offer]:
    """
    List what a region sells, one offer for each type.

    Args:
        account: Who asks.
        region: Where.
        spec: What is asked for; types that can never meet it are left out.
        zone: Only what this zone sells; None for any.

    Raises:
        ConfigError: If the spec names a type that does not exist.
        SkywardError: If AWS refuses.
    """
    rows = sold(
        await _types(account, region, patterns(spec)), lambda row: row if useful(row, spec) else None, provider="aws"
    )
    if not rows and spec.machine is not None:
        await _refuse_unknown(account, region, spec.machine)
    names = [row["InstanceType"] for row in rows]
    on_demand, spot, there = await asyncio.gather(
        _on_demand(account, region, names),
        _spot(account, region, names, zone),
        _sold(account, region, names, zone),
    )
    seen, found = time.time(), []
    for row in rows:
        name = row["InstanceType"]
        usages = row.get("SupportedUsageClasses", ("on-demand", "spot"))
        lowest = min(spot.get(name, {}).values(), default=None) if "spot" in usages else None
        price = on_demand.get(name) if "on-demand" in usages else None
        offer = to_offer(row, region, price, lowest)
        if offer is not None and name in there and not (price is None and lowest is None):
            found.append(evolve(offer, zone=zone, seen_at=seen))
    return tuple(sorted(found, key=_cost))


async def spot_by_zone(account: Account, region: str, name: str) -> Mapping[str, float]:
    """
    Return what an hour of a type costs on the spot market of each zone now, in USD.

    Args:
        account: Who asks.
        region: Where.
        name: The type.
    """
    return (await _spot(account, region, [name], None)).get(name, {})


async def zones_that_sell(account: Account, region: str, name: str) -> frozenset[str]:
    """
    Return the zones that sell a type; that they sell it does not say that they have any.

    Args:
        account: Who asks.
        region: Where.
        name: The type.
    """
    rows = await account.answers.ask(
        ("zones", region, name), _ZONES_HOLD, partial(_offerings, account, region, [name], None)
    )
    return frozenset(row["Location"] for row in rows)


async def _types(account: Account, region: str, wanted: tuple[str, ...]) -> list[Any]:
    return await account.answers.ask(
        ("types", region, wanted),
        _TYPES_HOLD,
        lambda: account.pages(
            "ec2",
            region,
            "DescribeInstanceTypes",
            "InstanceTypes",
            Filters=[
                {"Name": "instance-type", "Values": list(wanted)},
                {"Name": "bare-metal", "Values": ["false"]},
            ],
            MaxResults=100,
        ),
    )


async def _on_demand(account: Account, region: str, names: Sequence[str]) -> dict[str, float]:
    ask = partial(_listed, account, region)
    if len(names) <= FEW:
        each = await asyncio.gather(
            *(account.answers.ask(("price", region, name), _PRICES_HOLD, partial(ask, name)) for name in names)
        )
        return {name: price for found in each for name, price in found.items()}
    return await account.answers.ask(("price", region), _PRICES_HOLD, partial(ask, None))


async def _listed(account: Account, region: str, name: str | None) -> dict[str, float]:
    front = region.partition("-")[0]
    home = next((each for each in PRICING_REGIONS if each.startswith(front)), PRICING_REGIONS[0])
    return prices(
        await account.pages(
            "pricing",
            home,
            "GetProducts",
            "PriceList",
            ServiceCode="AmazonEC2",
            Filters=price_filters(region, name),
            MaxResults=100,
        )
    )


async def _spot(account: Account, region: str, names: Sequence[str], zone: str | None) -> dict[str, dict[str, float]]:
    now = datetime.now(UTC)
    zones = [{"Name": "availability-zone", "Values": [zone]}] if zone else []
    pieces = await asyncio.gather(
        *(
            account.pages(
                "ec2",
                region,
                "DescribeSpotPriceHistory",
                "SpotPriceHistory",
                InstanceTypes=names[start : start + _TYPES_A_CALL],
                ProductDescriptions=["Linux/UNIX"],
                StartTime=now,
                EndTime=now,
                Filters=zones,
            )
            for start in range(0, len(names), _TYPES_A_CALL)
        )
    )
    return spot_prices(row for piece in pieces for row in piece)


async def _sold(account: Account, region: str, names: Sequence[str], zone: str | None) -> frozenset[str]:
    """Return which types are sold in a zone; all of them, if none is named."""
    if zone is None:
        return frozenset(names)
    pieces = await asyncio.gather(
        *(
            _offerings(account, region, names[start : start + _TYPES_A_CALL], zone)
            for start in range(0, len(names), _TYPES_A_CALL)
        )
    )
    return frozenset(row["InstanceType"] for piece in pieces for row in piece)


async def _offerings(account: Account, region: str, names: Sequence[str], zone: str | None) -> list[Any]:
    filters = [{"Name": "instance-type", "Values": list(names)}]
    if zone is not None:
        filters.append({"Name": "location", "Values": [zone]})
    return await account.pages(
        "ec2",
        region,
        "DescribeInstanceTypeOfferings",
        "InstanceTypeOfferings",
        LocationType="availability-zone",
        Filters=filters,
    )


async def _refuse_unknown(account: Account, region: str, name: str) -> None:
    """Refuse a type that does not exist in a region, and offer the nearest; one that exists passes."""
    rows = await account.pages(
        "ec2", region, "DescribeInstanceTypeOfferings", "InstanceTypeOfferings", LocationType="region"
    )
    sold = {row["InstanceType"] for row in rows}
    if name in sold:
        return
    near = get_close_matches(name, sorted(sold), n=3)
    hint = f"Did you mean {' or '.join(map(repr, near))}?" if near else None
    raise ConfigError(f"There is no instance type {name!r} in {region}.", provider="aws", hint=hint)


def _cost(offer: Offer) -> float:
    return min(price for price in (offer.spot_price, offer.on_demand_price) if price is not None)
