"""Rent machines: one call for each node, nothing twice and nothing left."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import define, evolve, field, frozen

from skyward.provider import (
    CapacityError,
    ConfigError,
    Instance,
    InstanceState,
    LaunchRequest,
    SkywardError,
    Volume,
    check_volume,
    rented,
    until_free,
)
from skyward_verda.account import Account
from skyward_verda.catalogue import choose_image
from skyward_verda.instances import Door, described, hostname, state, to_tags
from skyward_verda.place import Place, identifier
from skyward_verda.volumes import find_volume

__all__ = ["LEAST_DISK", "Order", "find_image", "launch", "parameters"]

_log = logging.getLogger("skyward.provider.verda")

AT_ONCE = 8
"""Launches under way at the same time."""

LEAST_DISK = 50
"""Size of a machine's disk in GB, where no more is asked for."""


@frozen(kw_only=True)
class Order:
    """
    Hold what all machines of one launch have in common.

    Args:
        request: What core asks for.
        place: Where they are put, and what they get there.
        image: What they boot.
        door: How they are reached.
        volume: The volume of the user's that they get; None for none.
    """

    request: LaunchRequest
    place: Place
    image: str
    door: Door
    volume: Volume | None = None


@define(eq=False)
class _Course:
    """
    Hold what the machines of one launch tell each other.

    Args:
        over: Why nothing more is to be rented; None as long as there may be more.
        slots: Keeps the number of launches under way.
    """

    over: SkywardError | None = None
    slots: asyncio.Semaphore = field(factory=lambda: asyncio.Semaphore(AT_ONCE))

    def give_up(self) -> None:
        """Rent nothing more."""
        self.over = CapacityError("The launch was given up.", provider="verda")


async def find_image(account: Account, instance_type: str, wanted: str | None, *, gpus: bool) -> str:
    """
    Return what a type boots; older GPUs refuse the newest images.

    Args:
        account: Who asks.
        instance_type: The type.
        wanted: The image that the user names; None for any.
        gpus: Whether it has GPUs.

    Raises:
        ConfigError: If there is none, or not the one that is wanted.
    """
    image: str = await account.api.get(
        "/images",
        params={"instance_type": instance_type},
        read=lambda rows: choose_image(rows, gpus=gpus, wanted=wanted, subject=instance_type),
    )
    return image


async def launch(account: Account, order: Order, volume: str | None = None) -> Sequence[Instance]:
    """
    Rent a machine for each node, as far as there are any.

    What is under way when something goes wrong, or when we are cancelled, is waited for a little: it is a machine soon.

    Args:
        account: Who rents.
        order: What.
        volume: Id or name of the volume of the user's that they get; None for none.

    Returns:
        An instance for each node that got one.

    Raises:
        CapacityError: If the location has none.
        QuotaError: If the account may have none.
    """
    rows = await _present(account, order)
    course = _Course()
    missing = [node for node in order.request.nodes if node not in rows]
    if volume is not None and missing:
        free = await until_free(lambda: find_volume(account, volume), "verda")
        check_volume(free, "Verda", nodes=len(missing))
        order = evolve(order, volume=free)
    calls = {node: _one(account, order, node, course) for node in missing}
    rows = await rented(calls, before=rows, give_up=course.give_up)
    on_demand = order.request.cluster.offer.data.get("on_demand")
    nodes = [node for node in order.request.nodes if node in rows]
    return [described(rows[node], order.door, on_demand=on_demand) for node in nodes]


def parameters(order: Order, node: int, *, tagged: bool = True) -> dict[str, Any]:
    """
    Return what `POST /instances` is given for one machine.

    Args:
        order: What is rented.
        node: The node it is for.
        tagged: Whether it gets tags; its name tells whose it is in any case.
    """
    request, cluster = order.request, order.request.cluster
    tags = request.tags_of(node)
    name, size = hostname(tags), max(LEAST_DISK, math.ceil(cluster.spec.disk_gb or 0))
    disk: dict[str, Any] = {"name": name, "size": size}
    if request.spot:
        # Else the disk stays when the machine is taken back, and is billed. Other machines must not say so.
        disk["on_spot_discontinue"] = "delete_permanently"
    found: dict[str, Any] = {
        "instance_type": cluster.offer.instance_type,
        "image": order.image,
        "hostname": name,
        "description": f"Node {node} of a pool of Skyward",
        "ssh_key_ids": [order.place.key],
        "startup_script_id": order.place.script,
        # Without it Verda picks one, and official clients differ in which.
        "location_code": order.place.region,
        "is_spot": request.spot,
        "contract": "SPOT" if request.spot else "PAY_AS_YOU_GO",
        # What was shown is what is paid.
        "pricing": "FIXED_PRICE",
        "os_volume": disk,
    }
    if order.volume is not None:
        found["existing_volumes"] = [order.volume.id]
    return {**found, "tags": to_tags(tags)} if tagged else found


async def _present(account: Account, order: Order) -> dict[int, Mapping[str, Any]]:
    """Find what an earlier call with the same token rented already, by node."""
    request = order.request
    names = {hostname(request.tags_of(node)): node for node in request.nodes}
    alive = (
        row
        for row in await account.rows(request.cluster.pool_id)
        if state(row) in (InstanceState.PENDING, InstanceState.RUNNING)
    )
    return {names[row["hostname"]]: row for row in alive if row["hostname"] in names}


async def _one(account: Account, order: Order, node: int, course: _Course) -> Mapping[str, Any]:
    async with course.slots:
        if course.over is not None:
            raise course.over
        try:
            return await _run(account, order, node)
        except SkywardError as error:
            course.over = error
            raise


async def _run(account: Account, order: Order, node: int) -> Mapping[str, Any]:
    offer, request = order.request.cluster.offer, order.request
    market = "spot" if request.spot else "on demand"
    subject = f"{offer.instance_type} ({market}) in {order.place.region}"
    wanted = parameters(order, node, tagged=not account.tags_refused)
    try:
        name = await _made(account, wanted, subject)
    except ConfigError as error:
        if "tags" not in wanted or "tag" not in error.message.lower():
            raise
        # Younger than the rest of the API, and not everybody has them.
        _log.warning("verda.no_tags: %s", error)
        account.tags_refused = True
        wanted = parameters(order, node, tagged=False)
        name = await _made(account, wanted, subject)
    row = {
        "id": name,
        "status": "ordered",
        "ip": None,
        "location": order.place.region,
        "price_per_hour": offer.price(spot=request.spot),
        "os_volume_id": None,
        **{each: wanted.get(each) for each in ("hostname", "instance_type", "is_spot", "tags")},
    }
    account.launched(row)
    return row


async def _made(account: Account, wanted: Mapping[str, Any], subject: str) -> str:
    name: str = await account.api.post("/instances", json=wanted, plain=True, read=identifier, subject=subject)
    return name
