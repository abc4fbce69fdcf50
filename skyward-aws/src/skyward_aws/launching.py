"""Rent machines: one call for each node, from zone to zone, nothing twice and nothing left."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import define, evolve, field, frozen

from skyward.errors import CapacityError, SkywardError
from skyward.hookspecs import Instance, InstanceState, LaunchRequest
from skyward.plan.first_boot import host_key
from skyward.providers.renting import rented
from skyward_aws.account import Account, Launched
from skyward_aws.failure import code_of
from skyward_aws.instances import LAG, Door, described, label, listed, node_of, state
from skyward_aws.machine_image import RootDisk
from skyward_aws.market import spot_by_zone, zones_that_sell
from skyward_aws.place import Place, open_group
from skyward_aws.user_data import user_data

__all__ = ["Order", "client_token", "launch", "parameters", "tags", "zones_in_order"]

_log = logging.getLogger(__name__)

AT_ONCE = 8
"""Launches under way at the same time; AWS refills its allowance by two a second."""

LEAST_DEADLINE = 120.0
"""Seconds that a machine waits at least for somebody to make a node of it; `ttl` may be shorter than a boot."""

_LONGEST_TAG = 256
_TAGGED = ("instance", "volume", "network-interface")


def _rates(value: Mapping[str, float]) -> dict[str, float]:
    """Return prices by zone, as a copy."""
    return dict(value)


@frozen(kw_only=True)
class Order:
    """
    Hold what all machines of one launch have in common.

    Args:
        request: What core asks for.
        place: Where they are put.
        disk: What they boot from.
        door: How they are reached.
        zones: The zones to try, in order.
        rates: What an hour costs in each zone, in USD.
        profile: Name or ARN of the instance profile that they get.
    """

    request: LaunchRequest
    place: Place
    disk: RootDisk
    door: Door
    zones: tuple[str, ...] = ()
    rates: Mapping[str, float] = field(factory=dict, converter=_rates)
    profile: str | None = None


@define(eq=False)
class _Course:
    """
    Hold what the machines of one launch tell each other.

    Args:
        closed: Zones that have none left, and what AWS said.
        over: Whether nothing more is to be rented.
        slots: Keeps the number of launches under way.
    """

    closed: dict[str, SkywardError] = field(factory=dict)
    over: bool = False
    slots: asyncio.Semaphore = field(factory=lambda: asyncio.Semaphore(AT_ONCE))

    def give_up(self) -> None:
        """Rent nothing more."""
        self.over = True


async def launch(account: Account, order: Order, zone: str | None) -> Sequence[Instance]:
    """
    Rent a machine for each node, as far as there are any.

    What is under way when something goes wrong, or when we are cancelled, is waited for a little: it is a machine soon.

    Args:
        account: Who rents.
        order: What.
        zone: The only zone to try; None for all that sell the type.

    Returns:
        An instance for each node that got one.

    Raises:
        CapacityError: If there is none in any zone.
        QuotaError: If the account may have none.
    """
    order = await _with_zones(account, order, zone)
    rows = await _present(account, order)
    course = _Course()
    missing = [node for node in order.request.nodes if node not in rows]
    calls = {node: _one(account, order, node, course) for node in missing}
    rows = await rented(calls, before=rows, give_up=course.give_up)
    return [_instance(account, order, rows[node]) for node in order.request.nodes if node in rows]


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


def client_token(order: Order, node: int, zone: str) -> str:
    """
    Name a launch of one machine like no other: the same again rents nothing more.

    Args:
        order: What is rented.
        node: The node it is for.
        zone: Where it is tried.
    """
    request = order.request
    words = (request.token, node, zone, request.spot, request.cluster.offer.instance_type, order.place.group)
    return hashlib.sha256("/".join(map(str, words)).encode()).hexdigest()


def tags(request: LaunchRequest, node: int) -> list[dict[str, str]]:
    """
    Return what is written on a machine and all that comes with it.

    Args:
        request: What core asks for.
        node: The node it is for.
    """
    written = {"Name": f"skyward-{request.cluster.pool_name}-{node}", **request.tags_of(node).to_strings()}
    return [{"Key": name, "Value": text[:_LONGEST_TAG]} for name, text in written.items()]


def parameters(order: Order, node: int, zone: str) -> dict[str, Any]:
    """
    Return the parameters of `RunInstances` for one machine.

    Args:
        order: What is rented.
        node: The node it is for.
        zone: Where it is tried.
    """
    request, cluster = order.request, order.request.cluster
    own = host_key(cluster.key, label(request.token, node))
    kinds = (*_TAGGED, "spot-instances-request") if request.spot else _TAGGED
    found: dict[str, Any] = {
        "ClientToken": client_token(order, node, zone),
        "MinCount": 1,
        "MaxCount": 1,
        "ImageId": order.disk.image,
        "InstanceType": cluster.offer.instance_type,
        "UserData": user_data(cluster.key.public, own, order.door.user, _deadline(cluster.spec.ttl)),
        # A shutdown from within has to end the bill.
        "InstanceInitiatedShutdownBehavior": "terminate",
        # Two hops, so that containers reach it.
        "MetadataOptions": {"HttpTokens": "required", "HttpEndpoint": "enabled", "HttpPutResponseHopLimit": 2},
        "BlockDeviceMappings": [
            {
                "DeviceName": order.disk.device,
                "Ebs": {
                    "VolumeSize": max(order.disk.least_gb, round(cluster.spec.disk_gb or 0)),
                    "VolumeType": "gp3",
                    "DeleteOnTermination": True,
                },
            }
        ],
        "NetworkInterfaces": [
            {
                "DeviceIndex": 0,
                "SubnetId": order.place.subnets[zone],
                "Groups": [order.place.group],
                # A tunnel needs none, and leaves it to the subnet.
                **({} if order.door.tunnel else {"AssociatePublicIpAddress": True}),
                "DeleteOnTermination": True,
            }
        ],
        "TagSpecifications": [{"ResourceType": kind, "Tags": tags(request, node)} for kind in kinds],
    }
    if request.spot:
        once = {"SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"}
        found["InstanceMarketOptions"] = {"MarketType": "spot", "SpotOptions": once}
    if order.profile:
        found["IamInstanceProfile"] = {"Arn" if order.profile.startswith("arn:") else "Name": order.profile}
    return found


def _deadline(ttl: float | None) -> float:
    """Return after how many seconds a machine ends itself that nobody came to; 0 for never."""
    return max(ttl, LEAST_DEADLINE) if ttl else 0.0


async def _with_zones(account: Account, order: Order, zone: str | None) -> Order:
    offer, request = order.request.cluster.offer, order.request
    name, region = offer.instance_type, order.place.region
    selling = frozenset([zone]) if zone else await zones_that_sell(account, region, name)
    prices = await spot_by_zone(account, region, name) if request.spot else {}
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


async def _present(account: Account, order: Order) -> dict[int, Mapping[str, Any]]:
    """Find what an earlier call with the same token rented already, by node."""
    request = order.request
    fresh = (each for each in account.launched.values() if time.monotonic() - each.at < LAG)
    rows: list[Mapping[str, Any]] = [each.row for each in fresh if each.token == request.token]
    rows += await listed(account, order.place.region, pool=request.cluster.pool_id, token=request.token)
    alive = (row for row in rows if state(row) in (InstanceState.PENDING, InstanceState.RUNNING))
    return {node: row for row in alive if (node := node_of(row)) is not None}


async def _one(account: Account, order: Order, node: int, course: _Course) -> Mapping[str, Any]:
    """Rent one machine in the first zone that has one."""
    async with course.slots:
        for zone in order.zones:
            if course.over:
                raise CapacityError("The launch was given up.", provider="aws")
            if zone in course.closed:
                continue
            try:
                return await _run(account, order, node, zone)
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
        f"AWS has no {offer.instance_type} ({market}) left in {order.place.region}: {tried}.",
        provider="aws",
        hint="Try another region or instance type, or the other market.",
    )


async def _run(account: Account, order: Order, node: int, zone: str) -> Mapping[str, Any]:
    region = order.place.region
    subject = f"{order.request.cluster.offer.instance_type} in {zone}"
    try:
        answer = await account.call("ec2", region, "RunInstances", subject, **parameters(order, node, zone))
    except SkywardError as error:
        if code_of(error) != "InvalidGroup.NotFound" or not order.place.own_group:
            raise
        # Another pool, which was the last in it, took the group along.
        group = await open_group(account, region, order.place.vpc, order.place.port)
        order = evolve(order, place=evolve(order.place, group=group))
        answer = await account.call("ec2", region, "RunInstances", subject, **parameters(order, node, zone))
    row: Mapping[str, Any] = answer["Instances"][0]
    request = order.request
    account.launched[row["InstanceId"]] = Launched(
        region=region,
        pool_id=request.cluster.pool_id,
        token=request.token,
        node=node,
        at=time.monotonic(),
        row=row,
        rate=order.rates.get(zone),
    )
    return row


def _instance(account: Account, order: Order, row: Mapping[str, Any]) -> Instance:
    known = account.launched.get(row["InstanceId"])
    rate = known.rate if known is not None else order.rates.get(row["Placement"]["AvailabilityZone"])
    offer = order.request.cluster.offer
    return described(row, order.place.region, order.door, rate=rate, on_demand=offer.on_demand_price)
