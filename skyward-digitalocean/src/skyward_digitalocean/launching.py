"""Rent droplets: ten in one call, nothing twice, and what there is of too few."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from skyward.provider import (
    CapacityError,
    ConfigError,
    Instance,
    LaunchRequest,
    Misread,
    QuotaError,
    SkywardError,
    Tags,
    Volume,
    check_volume,
    cloud_config,
    host_key,
    listed,
    mount_point,
    of_token,
    rented,
    reply_of,
    text,
    until_free,
    whole,
)
from skyward_digitalocean.account import Account, Launched
from skyward_digitalocean.catalogue import image_for, is_gpu
from skyward_digitalocean.droplets import Door, described, state
from skyward_digitalocean.failure import CREATE, is_unknown
from skyward_digitalocean.keys import Key, open_key
from skyward_digitalocean.tagging import name_of, node_in, read, tags_in, written
from skyward_digitalocean.volumes import find_volume, mount_script

__all__ = ["Order", "body", "launch"]

_log = logging.getLogger(__name__)

AT_ONCE = 10
"""Droplets that one call makes at most."""

_LARGEST = 64 * 1024


@frozen(kw_only=True)
class Order:
    """
    Hold what all droplets of one launch have in common.

    Args:
        request: What core asks for.
        key: The key that they let in.
        door: How they are reached.
        image: Slug or id of their image; None for the one that fits.
        vpc: Id of their network; None for the region's default.
        volume: The volume that the droplet gets; None for none.
        mount: Where it is found there; None for below `/mnt` by its name.
    """

    request: LaunchRequest
    key: Key
    door: Door
    image: str | None = None
    vpc: str | None = None
    volume: Volume | None = None
    mount: str | None = None


async def launch(account: Account, order: Order, volume: str | None = None) -> Sequence[Instance]:
    """
    Rent a droplet for each node, as far as there are any.

    Args:
        account: Who rents.
        order: What.
        volume: Id or name of the volume that the droplet gets; None for none.

    Returns:
        An instance for each node that got one.

    Raises:
        CapacityError: If there is none.
        QuotaError: If the account may have none.
        ConfigError: If DigitalOcean takes nothing that is asked for.
    """
    request = order.request
    offer, pool = request.cluster.offer, request.cluster.pool_id
    account.gpus[pool] = is_gpu(offer) or account.gpus.get(pool, False)
    rows = await _present(account, request)
    missing = [node for node in request.nodes if node not in rows]
    if volume is not None and missing:
        free = await until_free(lambda: find_volume(account, volume), "digitalocean")
        check_volume(free, "DigitalOcean", nodes=len(missing))
        order = evolve(order, volume=free)
    groups = [missing[begin : begin + AT_ONCE] for begin in range(0, len(missing), AT_ONCE)]
    calls = {group[0]: _some(account, order, group) for group in groups}
    for made in (await rented(calls, before={-1: rows} if rows else {})).values():
        rows |= made
    return [_instance(account, row, order) for node, row in rows.items() if node in request.nodes]


def body(order: Order, nodes: Sequence[int]) -> dict[str, Any]:
    """
    Write the body of the call that makes droplets.

    Args:
        order: What they have in common.
        nodes: Their nodes.
    """
    request, cluster = order.request, order.request.cluster
    own = host_key(cluster.key, request.token)
    volume = order.volume
    first = [mount_script(volume, mount_point(volume, order.mount))] if volume is not None else []
    data = cloud_config(cluster.key.public, own, "root", first=first)
    assert len(data) <= _LARGEST
    image = order.image or image_for(cluster.offer)
    return {
        "names": [name_of(cluster.pool_id, node) for node in nodes],
        "region": cluster.offer.region,
        "size": cluster.offer.instance_type,
        "image": int(image) if image.isdigit() else image,
        "ssh_keys": [order.key.fingerprint],
        "tags": list(written(request.tags)),
        "user_data": data,
        "monitoring": False,
        "with_droplet_agent": False,
        **({"vpc_uuid": order.vpc} if order.vpc else {}),
        **({"volumes": [volume.id]} if volume is not None else {}),
    }


async def _present(account: Account, request: LaunchRequest) -> dict[int, Mapping[str, Any]]:
    """Find what an earlier call with the same token rented already, by node."""
    pool = request.cluster.pool_id
    rows = dict(await account.fresh(gpus=False))
    if account.gpus[pool]:
        rows |= await account.fresh(gpus=True)
    for name, known in account.launched.items():
        rows.setdefault(name, known.row)
    return account.api.understood(
        list(rows.values()), lambda rows: of_token(rows, request, _tags, state), "GET /v2/droplets"
    )


def _tags(row: Mapping[str, Any]) -> Tags | None:
    return read(tags_in(row), str(row["name"]))


async def _some(account: Account, order: Order, nodes: Sequence[int]) -> dict[int, Mapping[str, Any]]:
    """Rent droplets for nodes; where there are too few for all, for as many as there are."""
    try:
        return await _made(account, order, nodes)
    except (CapacityError, QuotaError):
        if len(nodes) == 1:
            raise
        middle = (len(nodes) + 1) // 2
        rows = await _some(account, order, nodes[:middle])
        if len(rows) < middle:
            return rows
        try:
            return rows | await _some(account, order, nodes[middle:])
        except (CapacityError, QuotaError) as error:
            _log.info("digitalocean.too_few rented=%d wanted=%d reason=%s", len(rows), len(nodes), error)
            return rows


async def _made(account: Account, order: Order, nodes: Sequence[int]) -> dict[int, Mapping[str, Any]]:
    request = order.request
    cluster = request.cluster
    subject = f"{len(nodes)} × {cluster.offer.instance_type} in {cluster.offer.region}"
    try:
        rows = await _created(account, order, nodes, subject)
    except SkywardError as error:
        reply = reply_of(error)
        if reply is not None and "key" in reply.words.lower() and reply.status in (404, 422):
            # Another program took the key out of the account.
            await open_key(account, cluster.pool_id, cluster.key.public)
            rows = await _created(account, order, nodes, subject)
        else:
            if reply is not None and is_unknown(reply):
                account.odd_refusals += 1
                if account.odd_refusals > 1:
                    raise ConfigError(error.message, provider="digitalocean") from error
            raise
    account.odd_refusals = 0
    made = {}
    for row in rows:
        node = node_in(text(row, "name"))
        if node is not None and node in nodes:
            made[node] = row
        known = Launched(pool_id=cluster.pool_id, token=request.token, row=row)
        account.launched[str(row["id"])] = known
    return made


async def _created(account: Account, order: Order, nodes: Sequence[int], subject: str) -> list[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = await account.api.post(
        CREATE, json=body(order, nodes), subject=subject, read=lambda answer: _rows(answer, len(nodes))
    )
    return rows


def _rows(answer: Any, count: int) -> list[Mapping[str, Any]]:
    rows = listed(answer, "droplets")
    for row in rows:
        whole(row, "id")
        text(row, "name")
        state(row)
    if len(rows) != count:
        raise Misread(f"there are {len(rows)} droplets in it, and {count} were asked for")
    return rows


def _instance(account: Account, row: Mapping[str, Any], order: Order) -> Instance:
    rate = order.request.cluster.offer.on_demand_price
    return account.api.understood(row, lambda row: described(row, order.door, rate=rate), f"POST {CREATE}")
