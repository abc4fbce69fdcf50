"""Rent machines, each by a call from zone to zone or many by one, nothing twice and nothing left."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import define, evolve, field

from skyward.provider import CapacityError, Disks, Instance, InstanceState, SkywardError, rented
from skyward_aws.disks import EBSVolume
from skyward_aws.failure import code_of
from skyward_aws.fleet import MANY, named, rent_together
from skyward_aws.instances import described, machines, node_of, state, tags_of
from skyward_aws.market import spot_by_zone, zones_that_sell
from skyward_aws.order import Order, parameters
from skyward_aws.place import Place, open_group
from skyward_aws.region import Region

__all__ = ["launch", "zones_in_order"]

_log = logging.getLogger("skyward.provider.aws")

AT_ONCE = 8
"""Launches under way at the same time; AWS refills its allowance by two a second."""


@define(eq=False)
class _Course:
    """
    Hold what the machines of one launch tell each other.

    Args:
        closed: Zones that have none left, and what AWS said.
        over: Whether nothing more is to be rented.
        slots: Keeps the number of launches under way.
        together: Rents machines for many nodes by one call, as far as it can; None where there are few.
    """

    closed: dict[str, SkywardError] = field(factory=dict)
    over: bool = False
    slots: asyncio.Semaphore = field(factory=lambda: asyncio.Semaphore(AT_ONCE))
    together: asyncio.Future[dict[int, Mapping[str, Any]]] | None = None

    def give_up(self) -> None:
        """Rent nothing more."""
        self.over = True


async def launch(region: Region, order: Order, zone: str | None, disks: Disks[EBSVolume]) -> Sequence[Instance]:
    """
    Rent a machine for each node, as far as there are any.

    What is under way when something goes wrong, or when we are cancelled, is waited for a little: it is a machine soon.

    Args:
        region: Where.
        order: What.
        zone: The only zone to try; None for all that sell the type.
        disks: The disks of the user's that they get once they run.

    Returns:
        An instance for each node that got one.

    Raises:
        CapacityError: If there is none in any zone.
        QuotaError: If the account may have none.
        ProvisionError: If another machine still has a disk.
    """
    order = await _with_zones(region, order, zone)
    rows = await _present(region, order)
    course = _Course()
    missing = [node for node in order.request.nodes if node not in rows]
    await disks.free(len(missing))
    if len(missing) >= MANY:
        course.together = asyncio.ensure_future(rent_together(region, order, missing, lambda: course.over))
    calls = {node: _one(region, order, node, course) for node in missing}
    rows = await rented(calls, before=rows, give_up=course.give_up)
    return [_instance(region, order, rows[node]) for node in order.request.nodes if node in rows]


def zones_in_order(
    place: Place, selling: frozenset[str], prices: Mapping[str, float], cap: float | None
) -> tuple[str, ...]:
    """
    Return the zones to try: those with a subnet that sell the type, the cheapest first.

    Args:
        place: Where machines can be put.
        selling: The zones that sell the type.
        prices: What an hour costs in each, in USD; empty where it is the same in all.
        cap: The most that it may cost; None for no limit.

    >>> place = Place(region="r", vpc="v", subnets={"ra": "s1", "rb": "s2"}, group="g", own_group=True, port=22)
    >>> zones_in_order(place, frozenset(["ra", "rb", "rc"]), {"ra": 0.2, "rb": 0.1}, None)
    ('rb', 'ra')
    """
    usable = [zone for zone in place.subnets if zone in selling]
    if prices:
        usable = [zone for zone in usable if zone in prices and (cap is None or prices[zone] <= cap)]
    return tuple(sorted(usable, key=lambda zone: (prices.get(zone, 0.0), zone)))


async def _with_zones(region: Region, order: Order, zone: str | None) -> Order:
    offer, request = order.request.cluster.offer, order.request
    name = offer.instance_type
    selling = frozenset([zone]) if zone else await zones_that_sell(region, name)
    prices = await spot_by_zone(region, name) if request.spot else {}
    zones = zones_in_order(order.place, selling, prices, request.cluster.spec.max_hourly_cost)
    if not zones:
        market = "on the spot market" if request.spot else "on demand"
        raise CapacityError(
            f"No zone of {region} sells {name} {market} where the network has a subnet"
            f"{' and at the price you allow' if prices else ''}: it is sold in {', '.join(sorted(selling)) or 'none'}, "
            f"and there are subnets in {', '.join(sorted(order.place.subnets))}.",
            provider="aws",
        )
    rates = prices or {each: offer.on_demand_price for each in zones if offer.on_demand_price is not None}
    return evolve(order, zones=zones, rates=rates)


async def _present(region: Region, order: Order) -> dict[int, Mapping[str, Any]]:
    """Find what an earlier call with the same token rented already, by node."""
    request = order.request
    rows = (await machines(region, request.cluster.pool_id)).values()
    ours = [row for row in rows if (tags := tags_of(row)) is not None and tags.token == request.token]
    alive = [row for row in ours if state(row) in (InstanceState.PENDING, InstanceState.RUNNING)]
    found = {node: row for row in alive if (node := node_of(row)) is not None}
    # Those of a fleet whose client died before it tagged them with their nodes.
    left = (node for node in request.nodes if node not in found)
    nobodys = dict(zip(left, (row for row in alive if node_of(row) is None), strict=False))
    return {**found, **await named(region, order, nobodys)}


async def _one(region: Region, order: Order, node: int, course: _Course) -> Mapping[str, Any]:
    """Rent one machine in the first zone that has one, unless it came with the others."""
    if course.together is not None and (row := (await asyncio.shield(course.together)).get(node)) is not None:
        return row
    async with course.slots:
        for zone in order.zones:
            if course.over:
                raise CapacityError("The launch was given up.", provider="aws")
            if zone in course.closed:
                continue
            try:
                return await _run(region, order, node, zone)
            except CapacityError as error:
                _log.info("aws.no_capacity zone=%s node=%d code=%s", zone, node, code_of(error))
                course.closed[zone] = error
            except SkywardError:
                course.over = True
                raise
    offer = order.request.cluster.offer
    codes: dict[str, list[str]] = {}
    for zone, closed in course.closed.items():
        codes.setdefault(code_of(closed), []).append(zone)
    tried = "; ".join(f"{code} in {', '.join(zones)}" for code, zones in codes.items())
    market = "spot" if order.request.spot else "on demand"
    raise CapacityError(
        f"AWS has no {offer.instance_type} ({market}) left in {region}: {tried}.",
        provider="aws",
        hint="Try another region or instance type, or the other market.",
    )


async def _run(region: Region, order: Order, node: int, zone: str) -> Mapping[str, Any]:
    subject = f"{order.request.cluster.offer.instance_type} in {zone}"
    try:
        answer = await region.call("RunInstances", subject, **parameters(order, node, zone))
    except SkywardError as error:
        if code_of(error) != "InvalidGroup.NotFound" or not order.place.own_group:
            raise
        # Another pool, which was the last in it, took the group along.
        group = await open_group(region, order.place.vpc, order.place.port)
        order = evolve(order, place=evolve(order.place, group=group))
        answer = await region.call("RunInstances", subject, **parameters(order, node, zone))
    row: Mapping[str, Any] = answer["Instances"][0]
    region.inventory.add(row["InstanceId"], row, order.request, order.rates.get(zone))
    return row


def _instance(region: Region, order: Order, row: Mapping[str, Any]) -> Instance:
    rate = region.inventory.rate(row["InstanceId"], order.rates.get(row["Placement"]["AvailabilityZone"]))
    on_demand = order.request.cluster.offer.on_demand_price
    return described(row, region.name, order.door, rate=rate, on_demand=on_demand)
