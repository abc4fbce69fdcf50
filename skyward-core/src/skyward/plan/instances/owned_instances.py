"""
Machines of ours that clouds list, of all clients: which are meant, and which are forgotten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from skyward.model.instances.machine import Instance, InstanceState

__all__ = ["GRACE", "chosen", "expired", "forgotten", "of_another"]

GRACE = 600.0
"""Seconds past its expiry after which a machine counts as forgotten: clocks differ, and clients may be slow."""


def of_another(instance: Instance, pool_id: str) -> bool:
    """
    Return whether what is written on a machine names another pool: then it is never ours to end.

    Args:
        instance: The machine; one on which no pool is written is what its provider says.
        pool_id: Our pool.

    >>> from skyward.model.instances.tags import Tags
    >>> machine = Instance(id="i-1", node=0, provider="aws", tags=Tags(pool_id="a1"))
    >>> of_another(machine, "a1"), of_another(machine, "b2")
    (False, True)
    """
    return instance.tags is not None and instance.tags.pool_id != pool_id


def expired(instance: Instance, *, now: float) -> bool:
    """
    Return whether a machine's client is gone for sure.

    Args:
        instance: The machine; one on which no expiry is written never expires.
        now: The time, in seconds since 1970.
    """
    until = instance.tags.expires_at if instance.tags is not None else None
    return until is not None and now > until + GRACE


def chosen(
    instances: Iterable[Instance],
    *,
    pools: Iterable[str] = (),
    only_expired: bool = False,
    owner: str | None = None,
    now: float,
) -> list[Instance]:
    """
    Choose machines.

    Args:
        instances: What clouds list.
        pools: Names or ids of pools; none means all.
        only_expired: Whether only those are meant whose clients are gone.
        owner: Only machines of this owner, as in `Tags.owner`; None for all. A machine that bears no owner is meant
            where its pool is named by its id.
        now: The time, in seconds since 1970.
    """
    wanted = frozenset(pools)
    return [
        instance
        for instance in instances
        if instance.state is not InstanceState.ENDED
        and (not only_expired or expired(instance, now=now))
        and (not wanted or (instance.tags is not None and wanted & {instance.tags.pool_id, instance.tags.pool_name}))
        and (owner is None or _is_of(instance, owner, wanted))
    ]


def _is_of(instance: Instance, owner: str, pools: frozenset[str]) -> bool:
    tags = instance.tags
    if tags is None or not tags.owner:
        return tags is not None and tags.pool_id in pools
    return tags.owner == owner


def forgotten(instances: Iterable[Instance], *, owner: str, now: float) -> list[str]:
    """
    Return which machines of a user no client looks after any more, a sentence for each pool.

    Args:
        instances: What a cloud lists.
        owner: The user, as in `Tags.owner`.
        now: The time, in seconds since 1970.
    """
    gone = [one for one in chosen(instances, only_expired=True, now=now) if one.tags and one.tags.owner == owner]
    counted = Counter((one.provider, one.tags.pool_name or one.tags.pool_id) for one in gone if one.tags)
    return [
        f"{f'{count} machines' if count > 1 else '1 machine'} of pool {pool!r} {'were' if count > 1 else 'was'} "
        f"forgotten and {'are' if count > 1 else 'is'} still billed by {provider}. "
        "To end what is forgotten, type: sky down --expired"
        for (provider, pool), count in counted.items()
    ]
