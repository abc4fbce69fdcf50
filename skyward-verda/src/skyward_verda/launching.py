"""Rent machines: one call for each node, nothing twice and nothing left."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from attrs import evolve, frozen

from skyward.provider import CallBatch, ConfigError, Disks, Instance, InstanceState, LaunchRequest
from skyward_verda.account import Account
from skyward_verda.catalogue import choose_image
from skyward_verda.instances import described, hostname, state, to_tags
from skyward_verda.place import Place, identifier
from skyward_verda.volumes import OwnVolume

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
        disks: The disks of the user's that they get, each with its folder there.
    """

    request: LaunchRequest
    place: Place
    image: str
    disks: tuple[tuple[OwnVolume, str], ...] = ()


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
    read = partial(choose_image, gpus=gpus, wanted=wanted, subject=instance_type)
    return await account.api.get("/images", params={"instance_type": instance_type}, read=read)


async def launch(account: Account, order: Order, disks: Disks[OwnVolume]) -> Sequence[Instance]:
    """
    Rent a machine for each node, as far as there are any.

    Args:
        account: Who rents.
        order: What.
        disks: The disks of the user's that they get.

    Returns:
        An instance for each node that got one.

    Raises:
        CapacityError: If the location has none.
        QuotaError: If the account may have none.
    """
    cluster = order.request.cluster
    before = await _present(account, order)
    order = evolve(order, disks=await disks.free(sum(node not in before for node in order.request.nodes)))
    batch = CallBatch(lambda nodes: _create(account, order, nodes[0]), at_once=AT_ONCE)
    rows = await batch.rented(order.request.nodes, before=before)
    door, on_demand = account.door(cluster), cluster.offer.data.get("on_demand")
    return [described(rows[node], door, on_demand=on_demand) for node in order.request.nodes if node in rows]


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
        # Else the disk stays when the machine is reclaimed, and is billed. Other machines must not say so.
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
    if order.disks:
        found["existing_volumes"] = [disk.id for disk, _ in order.disks]
    return {**found, "tags": to_tags(tags)} if tagged else found


async def _present(account: Account, order: Order) -> dict[int, Mapping[str, Any]]:
    """Find what an earlier call with the same token rented already, by node."""
    names = {hostname(order.request.tags_of(node)): node for node in order.request.nodes}
    alive = (row for row in await account.rows() if state(row) in (InstanceState.PENDING, InstanceState.RUNNING))
    return {names[row["hostname"]]: row for row in alive if row["hostname"] in names}


async def _create(account: Account, order: Order, node: int) -> dict[int, Mapping[str, Any]]:
    offer, request = order.request.cluster.offer, order.request
    market = "spot" if request.spot else "on demand"
    subject = f"{offer.instance_type} ({market}) in {order.place.region}"
    wanted = parameters(order, node, tagged=not account.tags_refused)
    with account.inventory.creating(request):
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
    account.inventory.add(name, row, request)
    return {node: row}


async def _made(account: Account, wanted: Mapping[str, Any], subject: str) -> str:
    return await account.api.post("/instances", json=wanted, plain=True, read=identifier, subject=subject)
