"""The droplets there are, described as instances."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from skyward.provider import (
    Instance,
    InstanceState,
    SSHAddress,
    Tags,
    facts,
    host_key,
    life,
    listed,
    moment,
    number,
    optional,
    text,
    whole,
)
from skyward_digitalocean.tagging import tags_of

if TYPE_CHECKING:
    from skyward.provider import KeyPair

__all__ = ["described", "state"]

_STATES = {
    "new": InstanceState.PENDING,
    "active": InstanceState.RUNNING,
    # It is billed as if it ran.
    "off": InstanceState.ENDING,
    "archive": InstanceState.ENDING,
}


def state(row: Mapping[str, Any]) -> InstanceState:
    """
    Return what DigitalOcean says about a droplet's life; a word that is not known, or none, counts as ending.

    >>> state({"id": 7, "status": "off"}).name
    'ENDING'
    """
    return life(row.get("status"), _STATES, provider="digitalocean", instance=row.get("id"))


def described(
    row: Mapping[str, Any], key: KeyPair | None = None, *, port: int = 22, rate: float | None = None
) -> Instance:
    """
    Describe a droplet; a fact that cannot be understood is not known, with a warning.

    Args:
        row: The droplet, as DigitalOcean describes it.
        key: The pool's key, which it lets in; None if it is not reached.
        port: Port of SSH.
        rate: What it costs, in USD per hour, where the row does not say so.

    Raises:
        Misread: If it has no id.
    """
    fact = facts("digitalocean", whole(row, "id"))
    fact("name", lambda: text(row, "name"))
    fact("tags", lambda: listed(row, "tags"))
    tags = tags_of(row) or Tags(pool_id="")
    now = state(row)
    ip, private = (fact("networks", partial(_address, row, kind)) for kind in ("public", "private"))
    address = None
    if key is not None and now is InstanceState.RUNNING and ip is not None:
        address = SSHAddress(
            host=ip,
            port=port,
            user="root",
            private_key=key.private,
            # Droplets that one call makes have the same user data, and so the same key.
            host_key=host_key(key, tags.token).public,
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
        launched_at=fact("created_at", lambda: optional(row, "created_at", moment)),
        reason=f"its status is {row.get('status')}" if now is InstanceState.ENDING else None,
    )


def _address(row: Mapping[str, Any], kind: str) -> str | None:
    """Return a droplet's address of a kind; the order of both says nothing."""
    networks = row.get("networks") or {}
    rows = listed(networks, "v4") if networks else []
    found = (each for each in rows if isinstance(each, Mapping) and each.get("type") == kind)
    return next((text(each, "ip_address") for each in found), None)
