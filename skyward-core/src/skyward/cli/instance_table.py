"""The table of machines that `sky ls` and `sky down` print."""

from __future__ import annotations

from collections.abc import Mapping

from skyward.model.fields.span import span
from skyward.model.instances.machine import Instance

__all__ = ["HEADER", "row"]

HEADER = ("POOL", "NODE", "MACHINE", "PROVIDER", "TYPE", "REGION", "STATE", "PRICE", "AGE", "OWNER", "EXPIRES")


def row(
    instance: Instance, *, now: float, waits: Mapping[tuple[str, str], tuple[str, float]] | None = None
) -> tuple[str, ...]:
    """
    Describe a machine in words, a column each, as `HEADER` names them.

    Args:
        instance: The machine.
        now: The time, in seconds since 1970.
        waits: How and until when machines are without a client, by provider and id; None if none is.

    >>> row(Instance(id="i-1", node=0, provider="aws", launched_at=0.0, hourly_rate=1.5, spot=True), now=7300.0)
    ('?', '0', 'i-1', 'aws', '?', '?', 'running', '$1.5/h spot', '2 h', '?', '?')
    """
    tags = instance.tags
    state, until = (waits or {}).get((instance.provider, instance.id), (instance.state.value, None))
    price = "?" if instance.hourly_rate is None else f"${instance.hourly_rate:.4g}/h{' spot' if instance.spot else ''}"
    return (
        (tags.pool_name or tags.pool_id) if tags is not None else "?",
        str(instance.node),
        instance.id,
        instance.provider,
        instance.instance_type or "?",
        instance.region or "?",
        state,
        price,
        "?" if instance.launched_at is None else span(now - instance.launched_at),
        (tags.owner if tags is not None else "") or "?",
        _expiry(instance, now, until),
    )


def _expiry(instance: Instance, now: float, waits: float | None) -> str:
    until = instance.tags.expires_at if instance.tags is not None else None
    if until is None or (waits is not None and until):
        until = waits
    if until is None:
        return "?"
    if not until:
        return "being ended"
    return f"in {span(until - now)}" if until >= now else f"{span(now - until)} ago"
