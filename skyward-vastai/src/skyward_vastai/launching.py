"""Rent a machine: one listing is one machine, and a refusal may have made one as well."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import field, frozen

from skyward.provider import (
    CapacityError,
    Instance,
    InstanceState,
    LaunchRequest,
    ProvisionError,
    SkywardError,
    reply_of,
    whole,
)
from skyward_vastai.account import Account
from skyward_vastai.catalogue import disk_gb, kind
from skyward_vastai.instances import described, owner, state
from skyward_vastai.label import label
from skyward_vastai.start import onstart

__all__ = ["Order", "body", "launch"]

_log = logging.getLogger("skyward.provider.vastai")


@frozen(kw_only=True)
class Order:
    """
    Say what is rented.

    Args:
        request: What core asks for.
        image: The Docker image that it starts from.
        registry: How the image is pulled from a private registry; None for a public one.
        mounts: Where local volumes are found, by their ids; one at most.
    """

    request: LaunchRequest
    image: str
    registry: str | None = None
    mounts: Mapping[str, str] = field(factory=dict)


async def launch(account: Account, order: Order) -> Sequence[Instance]:
    """
    Rent the machine of a listing for the first of the nodes; the others have to take other listings.

    Args:
        account: Who rents.
        order: What.

    Raises:
        CapacityError: If another customer took it, or bids more.
        ProvisionError: If it is unknown whether it was rented.
    """
    request, offer = order.request, order.request.cluster.offer
    inventory, node = account.inventory, request.nodes[0]
    known = await inventory.of_token(request, owner, state)
    if known:
        return [described(row) for node, row in known.items() if node in request.nodes]
    ask = offer.data.get("ask")
    if not isinstance(ask, int) or offer.instance_type != kind(int(offer.accelerator_count), offer.accelerator_name):
        raise CapacityError(f"Vast.ai lists no {offer.instance_type} as {offer.zone}.", provider="vastai")
    written = body(order, node, account.url)
    try:
        with inventory.creating(request):
            made = await account.api.put(
                f"/api/v0/asks/{ask}/",
                json=written,
                once=True,
                lane="create",
                subject=f"{offer.instance_type} in {offer.region or 'a place unknown'}",
                read=lambda answer: whole(answer, "new_contract"),
            )
    except SkywardError as error:
        await _take_back(account, error)
        raise
    row = _row(made, written, order)
    inventory.add(str(made), row, request, rate=offer.on_demand_price)
    await account.keys.add(str(made), request.cluster)
    return [described(row, on_demand=offer.on_demand_price)]


def body(order: Order, node: int, url: str) -> dict[str, Any]:
    """
    Write what is sent to rent a machine.

    Args:
        order: What is rented.
        node: The node it is for.
        url: Where the API is, for the machine to terminate on its own.
    """
    request, spec = order.request, order.request.cluster.spec
    found: dict[str, Any] = {
        "client_id": "me",
        "image": order.image,
        "disk": disk_gb(spec),
        "label": label(request.tags_of(node)),
        "runtype": "ssh_direct",
        "target_state": "running",
        # Without it, what cannot start at once is left behind, stopped and billed.
        "cancel_unavail": True,
        "env": {},
        "onstart": onstart(request.cluster.key.public, url, spec.ttl),
    }
    if request.spot:
        # There is no other sign that it may be reclaimed.
        found["price"] = request.cluster.offer.data["bid"]
    if order.registry:
        found["image_login"] = order.registry
    for volume, path in order.mounts.items():
        found["volume_info"] = {"create_new": False, "volume_id": int(volume), "mount_path": path}
    return found


async def _take_back(account: Account, error: SkywardError) -> None:
    """
    End the machine that a refusal made all the same: it is stopped, and billed for its disk.

    Raises:
        ProvisionError: If it may still be billed.
    """
    reply = reply_of(error)
    value = reply.value if reply is not None else None
    left = value.get("new_contract") if isinstance(value, Mapping) else None
    if isinstance(left, int) and not isinstance(left, bool):
        _log.info("launch.left instance=%d: %s", left, error)
        try:
            await account.terminate([str(left)])
        except SkywardError as failure:
            text = f"{failure.message} It was made by a launch that was refused: {error}"
            raise ProvisionError(text, provider="vastai", hint=failure.hint) from error


def _row(made: int, written: Mapping[str, Any], order: Order) -> Mapping[str, Any]:
    """Describe a machine that was just rented as a list would."""
    offer, spot = order.request.cluster.offer, order.request.spot
    row = {
        "id": made,
        "label": written["label"],
        "actual_status": None,
        "is_bid": spot,
        "num_gpus": int(offer.accelerator_count),
        "gpu_name": offer.accelerator_name,
        "geolocation": f", {offer.region}",
        "dph_total": offer.price(spot=spot),
        "start_date": time.time(),
    }
    assert state(row) is InstanceState.PENDING
    return row
