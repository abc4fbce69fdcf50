"""
Pools that were detached: which may be, for how long, and which one a name means.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import frozen

from skyward.errors import ConfigError
from skyward.model.fields.setting import lasting
from skyward.model.instances.machine import ProviderFacts
from skyward.model.spec.volumes import VolumeLike

__all__ = ["Detached", "check_detach", "choose_detached", "lease_of"]


@frozen(kw_only=True)
class Detached:
    """
    Say what is known of a detached pool, without the secrets that it takes to reach its machines.

    Args:
        pool_id: The use of the pool, which is written on its machines.
        pool_name: What it is attached by, besides its id.
        provider: The provider's name.
        machines: Their ids.
        calls: How many calls were left on them.
        hourly_rate: What all of them cost, in USD an hour.
        since: When it was detached, in seconds since 1970.
        ends_at: When its lease ends, in seconds since 1970: the machines' own watchdogs end them.
        runtime: Digest of the Skyward that its nodes run.
        owned: Whether this was written down by a client that had not left it: it is to be attached once that is dead.
    """

    pool_id: str
    pool_name: str
    provider: str
    machines: tuple[str, ...]
    calls: int
    hourly_rate: float
    since: float
    ends_at: float
    runtime: str
    owned: bool = False


def lease_of(lease: float | None, ttl: float | None) -> float:
    """
    Return for how many seconds a pool is to be left: what was asked for, or its `ttl`.

    Args:
        lease: What was asked for; None for nothing.
        ttl: Seconds that machines outlive their client.

    Raises:
        ConfigError: If it is no length of time.

    >>> lease_of(None, 600.0), lease_of(3600, 600.0)
    (600.0, 3600.0)
    """
    return (ttl or 0.0) if lease is None else lasting(lease, "lease")


def check_detach(
    facts: ProviderFacts, *, pool: str, ttl: float | None, volumes: Sequence[VolumeLike] = (), local: bool = False
) -> None:
    """
    Check that a pool may be detached: whatever becomes of its client, it ends by itself.

    Args:
        facts: What holds for the provider.
        pool: The pool's name.
        ttl: Seconds that its machines outlive their client.
        volumes: What they find as folders.
        local: Whether its nodes are processes of this machine.

    Raises:
        ConfigError: If it may not.

    >>> check_detach(ProviderFacts(name="ssh", rents=False, ends_own_bill=True), pool="train", ttl=600.0)
    """
    why = hint = ""
    if local:
        why, hint = "its nodes are processes of this program, and end with it", "Use machines over SSH or of a cloud."
    elif not ttl:
        shown = None if ttl is None else f"{ttl:g}"
        why, hint = f"ttl={shown} disarms the watchdogs that end its nodes", "Leave ttl= out."
    elif facts.rents and not (facts.end_command and facts.ends_own_bill):
        why = f"machines of {facts.name} cannot end their own bill, and nothing else would without a client"
        hint = "Keep the program running, as in a terminal multiplexer on a machine that stays on."
    elif volumes:
        why = f"what its tasks write to {volumes[0].title} may not all be there when its lease ends"
        hint = "Write results to the bucket by yourself, or return them."
    if why:
        raise ConfigError(f"Pool {pool!r} cannot be detached: {why}.", pool=pool, hint=hint)


def choose_detached(known: Iterable[Detached], name: str, *, now: float) -> Detached:
    """
    Find the detached pool that a name or an id means.

    Args:
        known: The detached pools of this user.
        name: The name or the id.
        now: The time, in seconds since 1970.

    Raises:
        ConfigError: If there is none, its lease has ended, or there are several.
    """
    pools = list(known)
    named = [one for one in pools if one.pool_id == name] or [one for one in pools if one.pool_name == name]
    there = [one for one in named if now < one.ends_at]
    if len(there) == 1:
        return there[0]
    if there:
        ids = ", ".join(one.pool_id for one in there)
        raise ConfigError(
            f"{len(there)} pools named {name!r} are detached: {ids}.", pool=name, hint="Attach one of them by its id."
        )
    if named:
        late = max(now - one.ends_at for one in named)
        raise ConfigError(
            f"The lease of the detached pool {name!r} ended {late:.0f} s ago: its machines have ended themselves, and "
            "results that were on them are gone.",
            pool=name,
            hint="Give pool.detach(lease=...) more seconds.",
        )
    others = ", ".join(f"{one.pool_name!r} ({one.pool_id})" for one in pools if now < one.ends_at)
    raise ConfigError(
        f"No pool {name!r} is detached.",
        pool=name,
        hint=f"There are {others}."
        if others
        else "It may be attached elsewhere, ended, or of another user or computer.",
    )
