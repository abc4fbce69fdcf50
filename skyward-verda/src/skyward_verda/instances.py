"""The machines there are: distinguished by their names, described as instances."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from attrs import evolve

from skyward.provider import (
    Instance,
    InstanceState,
    Misread,
    SSHAddress,
    Tags,
    by_id,
    facts,
    flag,
    host_key,
    life,
    listed,
    moment,
    number,
    optional,
    text,
)

if TYPE_CHECKING:
    from skyward.provider import KeyPair

__all__ = ["checked", "described", "door", "hostname", "pool_of", "read_rows", "state", "tags_of", "to_tags"]

SETTLING = 120.0
"""Seconds after its SSH server's first answer in which a machine may be running its startup script still."""

_STATES = {
    "new": InstanceState.PENDING,
    "ordered": InstanceState.PENDING,
    "provisioning": InstanceState.PENDING,
    "validating": InstanceState.PENDING,
    "pending": InstanceState.PENDING,
    "restoring": InstanceState.PENDING,
    "running": InstanceState.RUNNING,
    # Switched off it is billed for what it holds; and what has failed is there until it is deleted.
    "offline": InstanceState.ENDING,
    "no_capacity": InstanceState.ENDING,
    "error": InstanceState.ENDING,
    "starting_hibernation": InstanceState.ENDING,
    "hibernating": InstanceState.ENDING,
    "unknown": InstanceState.ENDING,
    "deleting": InstanceState.ENDING,
    "deleted": InstanceState.ENDED,
    "discontinued": InstanceState.ENDED,
    "notfound": InstanceState.ENDED,
}
_NAME = re.compile(r"skyward-(?P<pool>[a-z0-9]+)-(?P<token>[0-9a-f]{16})-(?P<node>\d{1,5})", re.IGNORECASE)
_LONGEST_KEY, _LONGEST_VALUE = 63, 127


def door(key: KeyPair, pool_id: str, port: int) -> Callable[[str], SSHAddress]:
    """
    Return what tells how a machine of a pool is reached at its IP address.

    Args:
        key: The pool's key, which its machines let in.
        pool_id: The pool; all of its machines prove themselves by one key.
        port: Port of SSH.
    """
    public = host_key(key, pool_id).public
    known: Mapping[str, Any] = {"port": port, "private_key": key.private, "host_key": public, "settling_s": SETTLING}
    return lambda ip: SSHAddress(host=ip, user="root", **known)


def hostname(tags: Tags) -> str:
    """
    Name a machine, so that its pool, request and node can be read in the name alone.

    Args:
        tags: What is to be written on it.

    >>> hostname(Tags(pool_id="a1", token="0123456789abcdef", node=3))
    'skyward-a1-0123456789abcdef-3'
    """
    digest = hashlib.sha256(tags.token.encode()).hexdigest()[:16]
    token = tags.token if re.fullmatch("[0-9a-f]{16}", tags.token, re.IGNORECASE) else digest
    return f"skyward-{tags.pool_id}-{token}-{tags.node or 0}"


def to_tags(tags: Tags) -> list[dict[str, str]]:
    """
    Write what a machine is to bear; whether keys may hold a colon is not documented, and a hyphen always may.

    Args:
        tags: What is to be written on it.

    >>> to_tags(Tags(pool_id="a1", node=3))
    [{'key': 'skyward-pool', 'value': 'a1'}, {'key': 'skyward-node', 'value': '3'}]
    """
    written = tags.to_strings().items()
    return [{"key": key.replace(":", "-")[:_LONGEST_KEY], "value": text[:_LONGEST_VALUE]} for key, text in written]


def tags_of(row: Mapping[str, Any]) -> Tags | None:
    """
    Read what is written on a machine, in its tags or its name alone; None if it is none of ours.

    Args:
        row: The machine, as it is listed.

    >>> tags_of({"hostname": "skyward-a1-0123456789abcdef-3"}).node
    3
    """
    name = _NAME.fullmatch(str(row.get("hostname", "")))
    if name is None:
        return None
    strings = {
        str(each.get("key", "")).replace("skyward-", "skyward:", 1): str(each.get("value") or "")
        for each in row.get("tags") or ()
        if isinstance(each, Mapping)
    }
    read = Tags.from_strings(strings) or Tags(pool_id=name["pool"])
    # What the name says cannot have been changed.
    return evolve(read, pool_id=name["pool"], token=read.token or name["token"], node=int(name["node"]))


def pool_of(name: str) -> str | None:
    """
    Return the pool that a machine's or a volume's name tells; None if it is none of ours.

    Args:
        name: The name.

    >>> pool_of("skyward-a1-0123456789abcdef-3"), pool_of("web-1")
    ('a1', None)
    """
    found = _NAME.fullmatch(name)
    return found["pool"] if found else None


def state(row: Mapping[str, Any]) -> InstanceState:
    """
    Return what Verda says about a machine's life; a word that is not known, or none, counts as ending.

    Args:
        row: The machine.

    >>> state({"id": "a", "status": "offline"}).name
    'ENDING'
    """
    return life(row.get("status"), _STATES, provider="verda", instance=row.get("id"))


def read_rows(answer: object) -> dict[str, Mapping[str, Any]]:
    """
    Read a list of machines, and keep ours, by their ids.

    Args:
        answer: What `GET /instances` says.

    Raises:
        Misread: If it is no such list: that is none without machines.
    """
    # What others have is of no interest, whatever it is like.
    ours = [row for row in listed(answer, "") if not isinstance(row, Mapping) or pool_of(str(row.get("hostname")))]
    try:
        return by_id(ours, text, provider="verda")
    except ValueError as error:
        raise Misread(str(error)) from error


def checked(row: Any) -> dict[str, Any]:
    """
    Return a machine of ours that can be read.

    Args:
        row: The machine.

    Raises:
        Misread: If it cannot: left out, it would be billed unseen.
    """
    described(row)
    found: dict[str, Any] = row
    return found


def described(
    row: Mapping[str, Any], door: Callable[[str], SSHAddress] | None = None, *, on_demand: float | None = None
) -> Instance:
    """
    Describe a machine; a fact that cannot be read is not known, with a warning.

    Args:
        row: The machine, as it is listed.
        door: Tells how it is reached at its IP address; None if it is not.
        on_demand: What it would cost on demand, in USD per hour.

    Raises:
        Misread: If it has no id.
    """
    name = text(row, "id")
    fact = facts("verda", name)
    tags, now, ip = fact("tags", lambda: tags_of(row)), state(row), fact("ip", lambda: optional(row, "ip", text))
    spot = fact("is_spot", lambda: optional(row, "is_spot", flag))
    address = None
    if door is not None and now is InstanceState.RUNNING:
        address = door(ip) if ip is not None else None
        # An address may come a little later than the state.
        now = now if address is not None else InstanceState.PENDING
    return Instance(
        id=name,
        node=(tags.node if tags is not None else None) or 0,
        provider="verda",
        state=now,
        address=address,
        instance_type=fact("instance_type", lambda: text(row, "instance_type")),
        region=fact("location", lambda: optional(row, "location", text)),
        spot=bool(spot),
        hourly_rate=fact("price_per_hour", lambda: optional(row, "price_per_hour", _price)),
        on_demand_rate=on_demand,
        ip=ip,
        tags=tags,
        launched_at=fact("created_at", lambda: optional(row, "created_at", moment)),
        reason=f"its status is {row.get('status')}"
        if now is InstanceState.ENDING and row.get("status") != "deleting"
        else None,
    )


def _price(row: object, name: str) -> float:
    return number(row, name, written=True)
