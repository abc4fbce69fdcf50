"""What was rented, as Vast.ai tells it: pure translation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from skyward.provider import (
    Instance,
    InstanceState,
    Misread,
    SSHAddress,
    Tags,
    facts,
    flag,
    life,
    number,
    optional,
    text,
    whole,
)
from skyward_vastai.catalogue import country, kind
from skyward_vastai.label import tags_of

if TYPE_CHECKING:
    from skyward.provider import KeyPair

__all__ = ["described", "owner", "state"]

_STATES = {
    "created": InstanceState.PENDING,
    "loading": InstanceState.PENDING,
    "rebooting": InstanceState.PENDING,
    "running": InstanceState.RUNNING,
    # It is billed in each of these, for its disk at least, and none of them leads back to where it runs.
    "stopped": InstanceState.ENDING,
    "frozen": InstanceState.ENDING,
    "exited": InstanceState.ENDING,
    "unknown": InstanceState.ENDING,
    "offline": InstanceState.ENDING,
}
_BROKEN = "oci runtime create failed"
_LAST_PORT = 65535


def owner(row: Mapping[str, Any]) -> Tags | None:
    """Read whose a machine is; None if it is none of ours."""
    written = row.get("label")
    return tags_of(written) if isinstance(written, str) else None


def state(row: Mapping[str, Any]) -> InstanceState:
    """
    Return what Vast.ai says about a machine's life.

    One that was outbid is stopped and billed for its disk: it is of no use any more, and has to be ended. So has one
    whose state is a word that is not known, or missing.

    Args:
        row: The machine.

    >>> state({"actual_status": None}).name, state({"actual_status": "exited"}).name
    ('PENDING', 'ENDING')
    """
    if _BROKEN in str(row.get("status_msg") or "").lower():
        return InstanceState.ENDING
    if row.get("intended_status") == row.get("cur_state") == "stopped":
        return InstanceState.ENDING
    if "actual_status" in row and row["actual_status"] is None:
        return InstanceState.PENDING
    return life(row.get("actual_status"), _STATES, provider="vastai", instance=row.get("id"))


def described(
    row: Mapping[str, Any],
    key: KeyPair | None = None,
    *,
    known_hosts: str | None = None,
    on_demand: float | None = None,
) -> Instance:
    """
    Describe a machine; a fact that cannot be read is not known, with a warning.

    Args:
        row: The machine, as a list has it.
        key: What lets us in; None if no login is wanted.
        known_hosts: Path of the file in which its host key is remembered.
        on_demand: What it would cost on demand, in USD per hour; None where that is not known.

    Raises:
        Misread: If it has no id.
    """
    name = str(whole(row, "id"))
    fact = facts("vastai", name)
    tags = owner(row) or Tags(pool_id="")
    now, rate = state(row), fact("dph_total", lambda: optional(row, "dph_total", number))
    spot = fact("is_bid", lambda: flag(row, "is_bid")) or False
    address = None
    if now is InstanceState.RUNNING:
        address = fact("ports", lambda: _address(row, key, known_hosts))
        # Where it is reached comes a little later than the state.
        now = now if address is not None else InstanceState.PENDING
    count = fact("num_gpus", lambda: optional(row, "num_gpus", whole)) or 0
    return Instance(
        id=name,
        node=tags.node or 0,
        provider="vastai",
        state=now,
        address=address if key is not None else None,
        instance_type=kind(count, fact("gpu_name", lambda: optional(row, "gpu_name", text))),
        region=fact("geolocation", lambda: country(row.get("geolocation"))),
        spot=spot,
        hourly_rate=rate,
        on_demand_rate=on_demand if spot else rate,
        ip=address.host if address is not None else None,
        tags=tags if tags.pool_id else None,
        launched_at=fact("start_date", lambda: optional(row, "start_date", number)),
        doing="image pull" if now is InstanceState.PENDING and row.get("actual_status") == "loading" else None,
        reason=_reason(row) if now is InstanceState.ENDING else None,
    )


def _reason(row: Mapping[str, Any]) -> str:
    """Return why a machine is of no use, in Vast.ai's words."""
    status = f"its status is {row.get('actual_status')}: {row.get('status_msg') or ''}".rstrip(": ")
    return "it is stopped, as a bid that was outbid is" if row.get("cur_state") == "stopped" else status


def _address(row: Mapping[str, Any], key: KeyPair | None, known_hosts: str | None) -> SSHAddress | None:
    """Return where a machine is reached directly: its host's address, and the port that leads to its own."""
    ports = row.get("ports")
    mapped = ports.get("22/tcp") if isinstance(ports, Mapping) else None
    if not mapped or not row.get("public_ipaddr"):
        return None
    first = mapped[0] if isinstance(mapped, list) else mapped
    port, host = text(first, "HostPort").strip(), text(row, "public_ipaddr").strip()
    if not port.isascii() or not port.isdigit() or not 1 <= int(port) <= _LAST_PORT:
        raise Misread(f"'HostPort' is not the number of a port but {port!r:.60}")
    private = key.private if key is not None else None
    return SSHAddress(host=host, port=int(port), user="root", private_key=private, known_hosts=known_hosts)
