"""The droplets there are: described as instances, found by tag, deleted for good."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from skyward.provider import (
    Instance,
    InstanceState,
    SSHAddress,
    Tags,
    end_for_good,
    facts,
    host_key,
    life,
    listed,
    number,
    optional,
    text,
    whole,
)
from skyward_digitalocean.account import Account
from skyward_digitalocean.tagging import expiry_tag, pool_tag, read, tags_in

if TYPE_CHECKING:
    from skyward.provider import KeyPair

__all__ = ["Door", "described", "renew", "state", "terminate"]

_STATES = {
    "new": InstanceState.PENDING,
    "active": InstanceState.RUNNING,
    # It is billed as if it ran.
    "off": InstanceState.ENDING,
    "archive": InstanceState.ENDING,
}
_ASK_EACH = 8


@frozen(kw_only=True)
class Door:
    """
    Say how droplets are reached.

    Args:
        port: Port of SSH.
        key: The pool's key, which they let in, and know us by.
    """

    port: int
    key: KeyPair = field(repr=False, eq=False)


def state(row: Mapping[str, Any]) -> InstanceState:
    """
    Return what DigitalOcean says about a droplet's life; a word that is not known, or none, counts as ending.

    >>> state({"id": 7, "status": "off"}).name
    'ENDING'
    """
    return life(row.get("status"), _STATES, provider="digitalocean", instance=row.get("id"))


def described(row: Mapping[str, Any], door: Door | None = None, *, rate: float | None = None) -> Instance:
    """
    Describe a droplet; a fact that cannot be understood is not known, with a warning.

    Args:
        row: The droplet, as DigitalOcean describes it.
        door: How it is reached; None if it is not.
        rate: What it costs, in USD per hour, where the row does not say so.

    Raises:
        Misread: If it has no id.
    """
    fact = facts("digitalocean", whole(row, "id"))
    name = fact("name", lambda: text(row, "name")) or ""
    fact("tags", lambda: listed(row, "tags"))
    tags = read(tags_in(row), name) or Tags(pool_id="")
    now = state(row)
    ip, private = (fact("networks", partial(_address, row, kind)) for kind in ("public", "private"))
    address = None
    if door is not None and now is InstanceState.RUNNING and ip is not None:
        address = SSHAddress(
            host=ip,
            port=door.port,
            user="root",
            private_key=door.key.private,
            # Droplets that one call makes have the same user data, and so the same key.
            host_key=host_key(door.key, tags.token).public,
        )
    if now is InstanceState.RUNNING and ip is None:
        now = InstanceState.PENDING
    price = fact("size.price_hourly", lambda: optional(row, "size.price_hourly", number))
    hourly = round(price, 6) if price is not None else rate
    return Instance(
        id=str(row["id"]),
        node=tags.node or 0,
        provider="digitalocean",
        state=now,
        address=address,
        instance_type=fact("size_slug", lambda: optional(row, "size_slug", text) or optional(row, "size.slug", text)),
        region=fact("region", lambda: optional(row, "region.slug", text)),
        hourly_rate=hourly,
        on_demand_rate=hourly,
        ip=ip or private,
        private_ip=private,
        tags=tags if tags.pool_id else None,
        launched_at=fact("created_at", lambda: _moment(optional(row, "created_at", text))),
    )


async def terminate(account: Account, ids: Sequence[str]) -> None:
    """
    Delete droplets, and return when DigitalOcean has none of them any more.

    Args:
        account: Who asks.
        ids: Which; one that is gone already is no error.

    Raises:
        ProvisionError: If one may still be billed.
    """

    async def end(name: str) -> None:
        await account.api.delete(f"/v2/droplets/{name}", also=(404,), subject="delete")
        account.launched.pop(name, None)

    async def left(names: Sequence[str]) -> Collection[str]:
        if len(names) > _ASK_EACH:
            both = await asyncio.gather(account.fresh(gpus=False), account.fresh(gpus=True))
            return {name for rows in both for name in rows}
        rows = await asyncio.gather(*(account.api.get(f"/v2/droplets/{name}", also=(404,)) for name in names))
        return {name for name, row in zip(names, rows, strict=True) if row is not None}

    await end_for_good(
        # What is no number is no droplet.
        [each for each in ids if each.isascii() and each.isdigit()],
        end=end,
        left=left,
        provider="digitalocean",
        hint="Type: doctl compute droplet delete --force {ids}",
    )


async def renew(account: Account, pool_id: str, ids: Sequence[str], expires_at: float) -> None:
    """
    Write a later expiry on droplets, and take the earlier ones away.

    Args:
        account: Who asks.
        pool_id: Their pool.
        ids: Which; one that is gone already is no error.
        expires_at: Seconds since 1970.
    """
    name = expiry_tag(pool_id, expires_at)
    both = await asyncio.gather(account.fresh(gpus=False), account.fresh(gpus=True))
    there = {each: row for rows in both for each, row in rows.items() if pool_tag(pool_id) in tags_in(row)}
    wanted = [each for each in ids if each in there]
    if not wanted:
        return
    await account.api.post("/v2/tags", json={"name": name}, once=False)
    resources = [{"resource_id": each, "resource_type": "droplet"} for each in wanted]
    await account.api.post(f"/v2/tags/{name}/resources", json={"resources": resources}, once=False, also=(404,))
    front = name.rpartition(":")[0]
    worn = {tag for each in wanted for tag in tags_in(there[each]) if tag.startswith(f"{front}:") and tag != name}
    others = {tag for each, row in there.items() if each not in wanted for tag in tags_in(row)}
    for tag in sorted(worn - others):
        await account.api.delete(f"/v2/tags/{tag}", also=(404,))


def _address(row: Mapping[str, Any], kind: str) -> str | None:
    """Return a droplet's address of a kind; the order of both says nothing."""
    networks = row.get("networks") or {}
    rows = listed(networks, "v4") if networks else []
    found = (each for each in rows if isinstance(each, Mapping) and each.get("type") == kind)
    return next((text(each, "ip_address") for each in found), None)


def _moment(written: str | None) -> float | None:
    return None if written is None else datetime.fromisoformat(written).timestamp()
