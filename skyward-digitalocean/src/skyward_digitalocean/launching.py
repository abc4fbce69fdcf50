"""Rent droplets: ten in one call, nothing twice, and what there is of too few."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from attrs import evolve, frozen

from skyward.provider import (
    CallBatch,
    CloudDisk,
    ConfigError,
    Disks,
    Instance,
    LaunchRequest,
    Misread,
    Registered,
    SkywardError,
    cloud_config,
    host_key,
    listed,
    mount_disk,
    reply_of,
    shell_file,
    text,
    whole,
)
from skyward_digitalocean.account import Account
from skyward_digitalocean.catalogue import image_for, is_gpu
from skyward_digitalocean.droplets import state
from skyward_digitalocean.failure import CREATE, is_unknown
from skyward_digitalocean.keys import open_key
from skyward_digitalocean.tagging import name_of, node_in, tags_of, written

__all__ = ["Order", "body", "launch", "mount_script"]

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
        image: Slug or id of their image; None for the one that fits.
        vpc: Id of their network; None for the region's default.
        disks: The disks that the droplet gets, each with its folder there.
    """

    request: LaunchRequest
    key: Registered
    image: str | None = None
    vpc: str | None = None
    disks: tuple[tuple[CloudDisk, str], ...] = ()


async def launch(account: Account, order: Order, disks: Disks[CloudDisk]) -> Sequence[Instance]:
    """
    Rent a droplet for each node, as far as there are any.

    Args:
        account: Who rents.
        order: What.
        disks: The disks that the droplet gets.

    Returns:
        An instance for each node that got one.

    Raises:
        CapacityError: If there is none.
        QuotaError: If the account may have none.
        ConfigError: If DigitalOcean takes nothing that is asked for.
    """
    request = order.request
    pool = request.cluster.pool_id
    account.gpus[pool] = is_gpu(request.cluster.offer) or account.gpus.get(pool, False)
    before = await account.inventory.of_token(request, tags_of, state)
    missing = [node for node in request.nodes if node not in before]
    order = evolve(order, disks=await disks.free(len(missing)))
    rows = await CallBatch(partial(_created, account, order), per_call=AT_ONCE).rented(missing, before=before)
    return [account.instance(row, request.cluster) for node, row in rows.items() if node in request.nodes]


def mount_script(disk: CloudDisk, where: str) -> str:
    """
    Write the shell commands by which a droplet mounts a disk, or its first partition, if either holds a filesystem.

    Args:
        disk: The disk.
        where: The folder.

    >>> "scsi-0DO_Volume_data-part1" in mount_script(CloudDisk(id="v1", name="data", place="nyc3"), "/data")
    True
    """
    device = shlex.quote(f"/dev/disk/by-id/scsi-0DO_Volume_{disk.name}")
    return mount_disk(shell_file(__package__, "find_volume.sh", DISK=device), where)


def body(order: Order, nodes: Sequence[int]) -> dict[str, Any]:
    """
    Write the body of the call that makes droplets.

    Args:
        order: What they have in common.
        nodes: Their nodes.
    """
    request, cluster = order.request, order.request.cluster
    own = host_key(cluster.key, request.token)
    first = [mount_script(disk, where) for disk, where in order.disks]
    data = cloud_config(cluster.key.public, own, "root", first=first)
    assert len(data) <= _LARGEST
    image = order.image or image_for(cluster.offer)
    return {
        "names": [name_of(cluster.pool_id, node) for node in nodes],
        "region": cluster.offer.region,
        "size": cluster.offer.instance_type,
        "image": int(image) if image.isdigit() else image,
        "ssh_keys": [order.key.id],
        "tags": list(written(request.tags)),
        "user_data": data,
        "monitoring": False,
        "with_droplet_agent": False,
        **({"vpc_uuid": order.vpc} if order.vpc else {}),
        **({"volumes": [disk.id for disk, _ in order.disks]} if order.disks else {}),
    }


async def _created(account: Account, order: Order, nodes: Sequence[int]) -> dict[int, Mapping[str, Any]]:
    """Create droplets for nodes by one call; a key that another program took out of the account is put back."""
    cluster = order.request.cluster
    try:
        rows = await _posted(account, order, nodes)
    except SkywardError as error:
        reply = reply_of(error)
        if reply is not None and "key" in reply.words.lower() and reply.status in (404, 422):
            await open_key(account, cluster.pool_id, cluster.key.public)
            rows = await _posted(account, order, nodes)
        else:
            if reply is not None and is_unknown(reply):
                account.odd_refusals += 1
                if account.odd_refusals > 1:
                    raise ConfigError(error.message, provider="digitalocean") from error
            raise
    account.odd_refusals = 0
    for row in rows:
        account.inventory.add(str(row["id"]), row, order.request)
    made = {node_in(text(row, "name")): row for row in rows}
    return {node: row for node, row in made.items() if node is not None and node in nodes}


async def _posted(account: Account, order: Order, nodes: Sequence[int]) -> list[Mapping[str, Any]]:
    offer = order.request.cluster.offer
    subject = f"{len(nodes)} × {offer.instance_type} in {offer.region}"
    with account.inventory.creating(order.request):
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
