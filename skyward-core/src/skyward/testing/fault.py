"""
What can go wrong at a rehearsal, as values: each says what, where and how often.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import TypeAlias

from attrs import AttrsInstance, field, fields, frozen
from attrs.converters import optional

from skyward.errors import ConfigError
from skyward.model.fields.setting import lasting, whole
from skyward.testing.market import REGIONS, ZONES

__all__ = [
    "DiesInBootstrap",
    "Fault",
    "ListingLag",
    "LostResponse",
    "NeverBoots",
    "NoCapacity",
    "Preempt",
    "Quota",
    "SlowApi",
    "SlowBoot",
    "TerminateFails",
    "TooManyRequests",
    "Unreachable",
    "bad_day",
    "fate",
]


def _spelled(fault: AttrsInstance) -> str:
    """Write a fault as the user would: without what it says anyway."""
    said = ", ".join(
        f"{each.name}={getattr(fault, each.name)!r}"
        for each in fields(type(fault))
        if getattr(fault, each.name) != each.default
    )
    return f"{type(fault).__name__}({said})"


def _times(value: int) -> int:
    """Return how often something happens, checked."""
    return whole(value, "times", least=1)


def _left(value: int) -> int:
    """Return a number of machines, checked."""
    return whole(value, "left")


def _machines(value: int) -> int:
    """Return a number of machines, checked."""
    return whole(value, "machines")


def _seconds(value: float) -> float:
    """Return a number of seconds, checked."""
    return lasting(value, "seconds")


def _after(value: float) -> float:
    """Return a number of seconds, checked."""
    return lasting(value, "after")


@frozen(kw_only=True, repr=False)
class NoCapacity:
    """
    Have no machines left, everywhere or of one kind only.

    Args:
        instance_type: Only of this kind.
        region: Only in this region.
        zone: Only in this zone.
        spot: Only on the spot market, or only on demand.
        left: How many there are nevertheless; a launch may get fewer machines than it asks for.

    >>> NoCapacity(zone="north-a", spot=True)
    NoCapacity(zone='north-a', spot=True)
    """

    __repr__ = _spelled

    instance_type: str | None = None
    region: str | None = None
    zone: str | None = None
    spot: bool | None = None
    left: int = field(default=0, converter=_left)

    def concerns(self, instance_type: str | None, region: str | None, zone: str | None, *, spot: bool) -> bool:
        """Return whether a machine of this kind, at this place, is one that there are none of."""
        wishes = (self.instance_type, self.region, self.zone, self.spot)
        return all(
            wish is None or wish == fact for wish, fact in zip(wishes, (instance_type, region, zone, spot), strict=True)
        )


@frozen(kw_only=True, repr=False)
class Quota:
    """
    Allow the account so many machines at a time and no more.

    Args:
        machines: How many.
        spot: Counted, and refused, on the spot market only, or on demand only.
    """

    __repr__ = _spelled

    machines: int = field(default=0, converter=_machines)
    spot: bool | None = None


@frozen(kw_only=True, repr=False)
class SlowBoot:
    """
    Let every machine take its time until it runs.

    Args:
        seconds: How long.
    """

    __repr__ = _spelled

    seconds: float = field(default=1.0, converter=_seconds)


@frozen(kw_only=True, repr=False)
class NeverBoots:
    """
    Grant machines that never run; they are billed all the same.

    Args:
        times: How many machines of each pool.
    """

    __repr__ = _spelled

    times: int = field(default=1, converter=_times)


@frozen(kw_only=True, repr=False)
class Unreachable:
    """
    Grant machines that run and that let no client in.

    Args:
        times: How many machines of each pool.
    """

    __repr__ = _spelled

    times: int = field(default=1, converter=_times)


@frozen(kw_only=True, repr=False)
class DiesInBootstrap:
    """
    End what runs on machines before it is ready. The cloud notices nothing and goes on billing them.

    Args:
        times: How many machines of each pool.
    """

    __repr__ = _spelled

    times: int = field(default=1, converter=_times)


@frozen(kw_only=True, repr=False)
class Preempt:
    """
    Reclaim machines, whatever runs on them; what runs is killed.

    Args:
        after: Seconds for which such a machine runs; None lets the seed say, up to three.
        times: How many machines of each pool.

    >>> Preempt(after=2.0)
    Preempt(after=2.0)
    """

    __repr__ = _spelled

    after: float | None = field(default=None, converter=optional(_after))
    times: int = field(default=1, converter=_times)


@frozen(kw_only=True, repr=False)
class LostResponse:
    """
    Break the connection after a launch: there are machines now, and the caller does not know.

    Args:
        times: How many launches of each pool.
    """

    __repr__ = _spelled

    times: int = field(default=1, converter=_times)


@frozen(kw_only=True, repr=False)
class TerminateFails:
    """
    Answer calls that end machines with an error, and end nothing.

    Args:
        times: How many calls of each pool.
    """

    __repr__ = _spelled

    times: int = field(default=1, converter=_times)


@frozen(kw_only=True, repr=False)
class ListingLag:
    """
    List what was true a while ago, as many clouds do.

    Args:
        seconds: How long it takes until a new machine appears in the list, and one that is gone disappears.
    """

    __repr__ = _spelled

    seconds: float = field(default=1.0, converter=_seconds)


@frozen(kw_only=True, repr=False)
class SlowApi:
    """
    Let every call to the cloud take longer.

    Args:
        seconds: How much.
    """

    __repr__ = _spelled

    seconds: float = field(default=0.2, converter=_seconds)


@frozen(kw_only=True, repr=False)
class TooManyRequests:
    """
    Answer calls with "429 Too Many Requests"; the provider asks again, up to four times.

    Args:
        times: How many calls of each pool.
    """

    __repr__ = _spelled

    times: int = field(default=3, converter=_times)


Fault: TypeAlias = (
    NoCapacity
    | Quota
    | SlowBoot
    | NeverBoots
    | Unreachable
    | DiesInBootstrap
    | Preempt
    | LostResponse
    | TerminateFails
    | ListingLag
    | SlowApi
    | TooManyRequests
)
"""Anything that can go wrong."""

Fate: TypeAlias = NeverBoots | Unreachable | DiesInBootstrap | Preempt
"""What can become of one machine."""

LONGEST_LIFE = 3.0
"""Seconds after which a machine is reclaimed at the latest, where only the seed says when."""


def fate(faults: Iterable[Fault], number: int, seed: int) -> Fate | None:
    """
    Return what becomes of a pool's machine.

    Faults of machines happen to a pool's first machines, in the order in which they are written.

    Args:
        faults: What goes wrong.
        number: Which machine of the pool it is, from 0.
        seed: Says what the faults leave open.

    >>> [fate([Unreachable(), Preempt(after=2.0)], number, seed=0) for number in range(3)]
    [Unreachable(), Preempt(after=2.0), None]
    """
    coming = [each for each in faults if isinstance(each, Fate) for _ in range(each.times)]
    if number >= len(coming):
        return None
    found = coming[number]
    if isinstance(found, Preempt) and found.after is None:
        return Preempt(after=random.Random(f"{seed}/{number}").uniform(0.05, LONGEST_LIFE), times=found.times)
    return found


def bad_day(seed: int) -> tuple[Fault, ...]:
    """
    Draw what goes wrong on one day: two to four things, and always the same for one seed.

    Args:
        seed: Which day.

    >>> bad_day(3) == bad_day(3)
    True
    """
    random_ = random.Random(seed)
    moment = round(random_.uniform(0.05, LONGEST_LIFE), 2)
    possible: tuple[Fault, ...] = (
        NoCapacity(zone=random_.choice(ZONES)),
        NoCapacity(region=random_.choice(REGIONS)),
        NoCapacity(spot=True),
        NoCapacity(left=random_.randint(1, 2), instance_type="small"),
        Quota(machines=random_.randint(1, 4)),
        SlowBoot(seconds=round(random_.uniform(0.1, 1.0), 2)),
        NeverBoots(),
        Unreachable(times=random_.randint(1, 2)),
        DiesInBootstrap(times=random_.randint(1, 2)),
        Preempt(after=moment, times=random_.randint(1, 2)),
        LostResponse(),
        TerminateFails(times=random_.randint(1, 2)),
        ListingLag(seconds=round(random_.uniform(0.2, 1.5), 2)),
        SlowApi(seconds=round(random_.uniform(0.05, 0.3), 2)),
        TooManyRequests(times=random_.randint(1, 4)),
    )
    return tuple(random_.sample(possible, random_.randint(2, 4)))


def checked(value: Iterable[Fault]) -> tuple[Fault, ...]:
    """
    Return faults as a tuple.

    Args:
        value: What the user wrote.

    Raises:
        ConfigError: If one is no fault.
    """
    given: object = value
    faults: tuple[object, ...] = (given,) if isinstance(given, Fault) else tuple(value)
    for each in faults:
        if not isinstance(each, Fault):
            raise ConfigError(
                f"faults must be a list of faults such as NoCapacity(zone='north-a'), but holds {each!r}."
            )
    return faults  # type: ignore[return-value]
