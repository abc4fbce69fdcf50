"""
Machines that wait for the next pool after theirs was left: which may, for how long, and which pool takes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import frozen

from skyward.errors import BudgetExceededError, ConfigError
from skyward.model.instances.cost_report import money
from skyward.model.instances.machine import ProviderFacts
from skyward.model.spec.volumes import Disk, VolumeLike

__all__ = [
    "LEAST",
    "Lingering",
    "check_budget",
    "check_linger",
    "choose_lingering",
    "claim_within",
    "granted",
    "is_over",
    "linger_cost",
]

LEAST = 5.0
"""Seconds for which a machine has to linger at least: with less, no pool would find it."""

MARGIN = 3.0
"""Seconds before its end from which a lingering machine is left to its watchdog."""

OVERDUE = 120.0
"""Seconds past their end after which machines that lingered, and what they shared, are released by the next pool."""

_HOUR = 3600.0


@frozen(kw_only=True)
class Lingering:
    """
    Say what is known of a pool whose machines linger, without the secrets that it takes to reach them.

    Args:
        pool_id: The use of the pool that they were rented for, which is written on them.
        pool_name: What the user called it.
        provider: The provider's name.
        source: Digest of what the provider says of itself.
        key: Digest of what a pool that takes them has to be alike in.
        machines: Their ids.
        hourly_rate: What all of them cost, in USD an hour.
        since: When the pool was left, in seconds since 1970.
        ends_at: When their own watchdogs end them, in seconds since 1970.
    """

    pool_id: str
    pool_name: str
    provider: str
    source: str
    key: str
    machines: tuple[str, ...]
    hourly_rate: float
    since: float
    ends_at: float


def check_linger(
    facts: ProviderFacts,
    *,
    linger: float,
    ttl: float | None,
    volumes: Sequence[VolumeLike] = (),
    plural: str = "machines",
) -> str:
    """
    Return what the user should know of `linger=` at a provider; empty if it does what it says.

    Args:
        facts: What holds for the provider.
        linger: Seconds for which its machines are to wait.
        ttl: Seconds that they outlive their client.
        volumes: What they find as folders.
        plural: What its machines are called.

    Raises:
        ConfigError: If its machines cannot end by themselves, so that they would be billed for ever; or if they would
            hold a disk meanwhile, which a watchdog does not unmount.

    >>> check_linger(ProviderFacts(name="local", ends_own_bill=True, rents=False), linger=600.0, ttl=600.0)
    'linger=600 changes nothing at local, whose machines are there anyway: what was made ready on them is kept.'
    """
    if not linger:
        return ""
    if not facts.rents:
        return (
            f"linger={linger:g} changes nothing at {facts.name}, whose {plural} are there anyway: "
            "what was made ready on them is kept."
        )
    if not facts.end_command or not facts.ends_own_bill:
        raise ConfigError(
            f"linger={linger:g} leaves {plural} running without a client, and those of {facts.name} cannot end their "
            "own bill.",
            hint="Leave linger= out; warm_image=True makes the next start faster where there are machine images.",
        )
    if not ttl:
        shown = None if ttl is None else f"{ttl:g}"
        raise ConfigError(
            f"linger={linger:g} needs the watchdog that ttl={shown} disarms: nothing else would end the {plural}.",
            hint="Leave ttl= out, or linger=.",
        )
    if disks := [volume.title for volume in volumes if isinstance(volume, Disk)]:
        raise ConfigError(
            f"linger={linger:g} would keep {disks[0]} at {plural} without a client, where no other pool can have it "
            "and nothing unmounts it at the end.",
            hint="Leave linger= out, or keep the data in a sky.Volume.",
        )
    return ""


def check_budget(*, linger: float, nodes: int, rate: float, budget: float | None, pool: str) -> None:
    """
    Refuse a pool whose machines would use up its budget by waiting alone.

    Args:
        linger: Seconds for which they are to wait.
        nodes: How many they are.
        rate: What one costs, in USD an hour.
        budget: What the pool may cost, in USD; None for no limit.
        pool: The pool's name.

    Raises:
        BudgetExceededError: If they would.
    """
    cost = linger_cost(nodes * rate, linger)
    if budget is None or not cost or cost < budget:
        return
    machines = f"{nodes} machine{'' if nodes == 1 else 's'} at {money(rate)} an hour"
    raise BudgetExceededError(
        f"Pool {pool!r} is not opened: with linger={linger:g}, {machines} cost {money(cost)} after it was left, and "
        f"the budget is {money(budget)}.",
        pool=pool,
        budget=budget,
        cost=cost,
        hint="Lower linger=, or raise budget=.",
    )


def granted(*, linger: float, rate: float, left: float | None, life: float | None) -> float:
    """
    Return for how many seconds machines linger; 0 if they are terminated instead.

    Args:
        linger: What the user asks for.
        rate: What all of them cost, in USD an hour.
        left: What is left of the budget, in USD; None where there is none.
        life: Seconds until their longest life ends; None if it never does.

    >>> granted(linger=600.0, rate=2.0, left=None, life=None), granted(linger=600.0, rate=2.0, left=0.1, life=None)
    (600.0, 180.0)
    >>> granted(linger=600.0, rate=2.0, left=0.0, life=None), granted(linger=600.0, rate=0.0, left=0.0, life=60.0)
    (0.0, 60.0)
    """
    seconds = linger
    if left is not None and rate:
        seconds = min(seconds, max(0.0, left) * _HOUR / rate)
    if life is not None:
        seconds = min(seconds, life)
    return seconds if seconds >= LEAST else 0.0


def linger_cost(rate: float, seconds: float) -> float:
    """
    Return what it costs at most that machines linger, in USD.

    Args:
        rate: What they cost, in USD an hour.
        seconds: For how long they do.

    >>> linger_cost(3.6, 100.0)
    0.1
    """
    return rate * seconds / _HOUR


def claim_within(*, ttl: float, bootstrap_timeout: float) -> float:
    """
    Return the seconds that a pool has from its claim until its own watchdog is there.

    >>> claim_within(ttl=600.0, bootstrap_timeout=300.0), claim_within(ttl=20.0, bootstrap_timeout=300.0)
    (600.0, 360.0)
    """
    return max(ttl, bootstrap_timeout + 60.0)


def choose_lingering(known: Iterable[Lingering], keys: Sequence[str], *, now: float) -> list[Lingering]:
    """
    Return the pools whose machines a new one may take, in the order to try.

    Args:
        known: What lingers.
        keys: Digests of the specs that the new pool may be of, in its order of preference.
        now: The time, in seconds since 1970.
    """
    fitting = [one for one in known if one.key in keys and now < one.ends_at - MARGIN]
    return sorted(fitting, key=lambda one: (keys.index(one.key), -len(one.machines), -one.ends_at))


def is_over(lingering: Lingering, *, now: float) -> bool:
    """
    Return whether machines should have ended by themselves for so long that what they shared is released.

    Args:
        lingering: What lingered.
        now: The time, in seconds since 1970.
    """
    return now > lingering.ends_at + OVERDUE
