"""
Which machines a pool asks for: the offers that meet its spec, in the order to try, and why the others do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, TypeAlias

from attrs import field, frozen

from skyward.errors import LIMITED, Limited
from skyward.model.accelerators.accelerator import Accelerator, recognise
from skyward.model.instances.offer import Offer
from skyward.model.spec.allocation import Allocation
from skyward.model.spec.spec import Spec
from skyward.plan.offers.nearest import Rejection, why_not
from skyward.plan.offers.permission import Least, least_of, not_asked_for, seen, too_expensive

__all__ = ["Candidate", "Choice", "Refusal", "Rejection", "Unasked", "choose", "in_order"]
__all__ += ["must_be_spot", "remaining"]

Kind = Literal["capacity", "quota", "failed"]
"""Why a launch gave no machine: none left, none allowed, or something else."""

REMEMBERED = 300.0
"""Seconds for which an offer that was refused is not asked for again."""

_Wish: TypeAlias = tuple[str, Callable[[Offer], bool]]


def _limited(value: Iterable[str]) -> tuple[Limited, ...]:
    """Return what a limit is of, as far as that is known here."""
    return tuple(each for each in LIMITED if each in value)


@frozen(kw_only=True)
class Candidate:
    """
    Name one way to rent a machine: an offer, on one of its two markets.

    Args:
        offer: The offer.
        spot: Whether the machine may be reclaimed.
        price: What it costs, in USD per hour.
    """

    offer: Offer
    spot: bool
    price: float

    def __str__(self) -> str:
        place = self.offer.zone or self.offer.region
        market = "spot" if self.spot else "on demand"
        return f"{self.offer.instance_type}{f' in {place}' if place else ''}, {market} at ${self.price:.4g}/h"


@frozen
class Unasked:
    """
    Name a way to rent that meets a spec, and that nothing asks for.

    Args:
        candidate: The way to rent.
        why: Why it is not taken, in words that follow its name.
    """

    candidate: Candidate
    why: str


@frozen(kw_only=True)
class Choice:
    """
    Hold what became of the offers that were looked at.

    Args:
        spot: Ways to rent on the spot market, cheapest first.
        on_demand: Ways to rent on demand, cheapest first.
        rejections: The offers that will not do.
        others: Ways to rent the offers that will do, on the market that will not.
        unasked: Ways to rent that meet the spec, and that nothing asks for: too expensive, or with
            accelerators. They are named in errors, and not rented; cheapest first.
        least: The cheapest of what has met the spec so far.
        spec: What the user asks for.
    """

    spot: tuple[Candidate, ...] = ()
    on_demand: tuple[Candidate, ...] = ()
    rejections: tuple[Rejection, ...] = ()
    others: tuple[Candidate, ...] = ()
    unasked: tuple[Unasked, ...] = ()
    least: Least = field(factory=Least)
    spec: Spec = field(factory=Spec)

    @property
    def why_not(self) -> str:
        """
        Return which wish excludes how many offers, which of them comes nearest, and what to write to get it.

        >>> offers = [Offer(provider="x", instance_type="big", memory_gb=16, on_demand_price=1)]
        >>> choose(Spec(memory_gb=64), offers).why_not
        'memory_gb=64 excludes 1 of 1. Nearest is big, $1/h on demand, with memory_gb=16. Write memory_gb=16 to get it.'
        """
        if not self.rejections:
            return "It sells nothing at this moment."
        met = (*self.spot, *self.on_demand, *(each.candidate for each in self.unasked))
        total = len(self.rejections) + len({id(made.offer) for made in met})
        return why_not(self.spec, self.rejections, total)


@frozen(kw_only=True)
class Refusal:
    """
    Remember that a launch gave no machine.

    Args:
        candidate: What was asked for.
        kind: Why it was refused.
        reason: The same in words.
        at: When, in seconds of a monotonic clock.
        of: What a quota is of, besides the account, as in `QuotaError`.
    """

    candidate: Candidate
    kind: Kind
    reason: str
    at: float
    of: tuple[Limited, ...] = field(default=LIMITED, converter=_limited)


def choose(spec: Spec, offers: Iterable[Offer], least: Least | None = None) -> Choice:
    """
    Return the offers that meet a spec from those that do not.

    Args:
        spec: What the user asks for. What an offer leaves out counts as not met, except its disk, which clouds make
            as large as it has to be.
        offers: What a provider sells now.
        least: The cheapest of what met the spec when it was looked for before; None the first time.

    >>> offers = [Offer(provider="x", instance_type="a", spot_price=0.3, on_demand_price=1)]
    >>> [str(candidate) for candidate in in_order(Spec(), choose(Spec(), offers))]
    ['a, spot at $0.3/h', 'a, on demand at $1/h']
    """
    wishes, offers = _wishes(spec), tuple(offers)
    least = seen(least or Least(), offers)
    unasked: list[Unasked] = []
    spot: list[Candidate] = []
    on_demand: list[Candidate] = []
    rejections: list[Rejection] = []
    others: list[Candidate] = []
    for offer in offers:
        unmet = tuple(wish for wish, meets in wishes if not meets(offer))
        markets = [candidate for candidate in _markets(offer) if _allowed(spec.allocation, spot=candidate.spot)]
        if not markets:
            unmet = (*unmet, f"allocation={str(spec.allocation)!r}")
        affordable = [made for made in markets if spec.max_hourly_cost is None or made.price <= spec.max_hourly_cost]
        if markets and not affordable:
            unmet = (*unmet, f"max_hourly_cost={spec.max_hourly_cost:g}")
        if unmet:
            rejections.append(Rejection(offer, unmet))
            continue
        if why := not_asked_for(spec, offer, least):
            unasked += [Unasked(candidate, why) for candidate in affordable]
            continue
        for candidate in affordable:
            (spot if candidate.spot else on_demand).append(candidate)
        others += [made for made in _markets(offer) if made not in affordable]
    least = least_of(least, spot=[made.price for made in spot], on_demand=[made.price for made in on_demand])
    expensive = {id(made): too_expensive(spec, made.price, least, spot=made.spot) for made in (*spot, *on_demand)}
    unasked += [Unasked(made, expensive[id(made)]) for made in (*spot, *on_demand) if expensive[id(made)]]
    return Choice(
        spot=tuple(sorted((made for made in spot if not expensive[id(made)]), key=_price)),
        on_demand=tuple(sorted((made for made in on_demand if not expensive[id(made)]), key=_price)),
        rejections=tuple(rejections),
        others=tuple(others),
        unasked=tuple(sorted(unasked, key=lambda each: each.candidate.price)),
        least=least,
        spec=spec,
    )


def in_order(spec: Spec, choice: Choice, *, spot: bool | None = None) -> tuple[Candidate, ...]:
    """
    Return the ways to rent a machine in the order to try.

    Spot comes first where the user prefers it, unless it is more expensive than the cheapest machine on demand.

    Args:
        spec: What the user asks for.
        choice: What meets it.
        spot: True for a node that has to be spot, False for one that had better not be, None for one that the
            allocation alone decides on.
    """
    if spot is True or not spec.allocation.allows_on_demand:
        return choice.spot
    if spot is False:
        return (*choice.on_demand, *(choice.spot if spec.allocation.allows_spot else ()))
    both = sorted((*choice.spot, *choice.on_demand), key=_price)
    if spec.allocation.strategy == "cheapest" or not choice.on_demand:
        return tuple(both)
    least = choice.on_demand[0].price
    return tuple(sorted(both, key=lambda made: not (made.spot and made.price <= least)))


def must_be_spot(allocation: Allocation, *, total: int, spot: int, staying: int) -> int:
    """
    Count how many of the nodes still to be rented have to be spot.

    Args:
        allocation: What the user asks for.
        total: How many nodes the pool is to have.
        spot: How many of those that it has are spot.
        staying: How many it has.

    >>> must_be_spot(Allocation.Percent(spot=0.8), total=4, spot=0, staying=0)
    4
    >>> must_be_spot(Allocation.Percent(spot=0.5), total=4, spot=2, staying=3)
    0
    """
    return max(0, min(total - staying, allocation.least_spot(total) - spot))


def remaining(candidates: Sequence[Candidate], refusals: Iterable[Refusal], *, now: float) -> tuple[Candidate, ...]:
    """
    Remove what was refused a short while ago, and what a quota forbids with it.

    Args:
        candidates: The ways to rent a machine, in order.
        refusals: What was refused.
        now: The time, in seconds of the clock that `Refusal.at` was read from.
    """
    fresh = [refusal for refusal in refusals if now - refusal.at < REMEMBERED]
    gone = {_identity(refusal.candidate) for refusal in fresh}
    closed = {(refusal.of, _counted(refusal.candidate, refusal.of)) for refusal in fresh if refusal.kind == "quota"}
    return tuple(
        made
        for made in candidates
        if _identity(made) not in gone and not any(_counted(made, of) == limit for of, limit in closed)
    )


def _identity(candidate: Candidate) -> tuple[object, ...]:
    offer = candidate.offer
    return (offer.instance_type, offer.region, offer.zone, candidate.spot)


def _counted(candidate: Candidate, of: Sequence[Limited]) -> tuple[object, ...]:
    """Return what a machine is counted by, where a quota is of so much."""
    offer = candidate.offer
    facts: dict[Limited, object] = {
        "region": offer.region,
        # Machines without accelerators are one kind: a quota that is full for one size is full for all.
        "kind": offer.accelerator_name if offer.accelerator_count else None,
        "market": candidate.spot,
    }
    return tuple(facts[each] for each in of)


def _price(candidate: Candidate) -> float:
    return candidate.price


def _markets(offer: Offer) -> tuple[Candidate, ...]:
    prices = ((True, offer.spot_price), (False, offer.on_demand_price))
    return tuple(Candidate(offer=offer, spot=spot, price=price) for spot, price in prices if price is not None)


def _allowed(allocation: Allocation, *, spot: bool) -> bool:
    return allocation.allows_spot if spot else allocation.allows_on_demand


def _wishes(spec: Spec) -> list[_Wish]:
    """List what a spec asks of an offer, each with the words the user would write."""
    wishes: list[_Wish] = [("available", lambda offer: offer.available)]
    if (wanted := spec.accelerator) is not None:
        wishes.append((f"accelerator={str(wanted)!r}", lambda offer: _has(offer, wanted)))
    if (vcpus := spec.vcpus) is not None:
        wishes.append((f"vcpus={vcpus:g}", lambda offer: (offer.vcpus or 0) >= vcpus))
    if (memory := spec.memory_gb) is not None:
        wishes.append((f"memory_gb={memory:g}", lambda offer: (offer.memory_gb or 0) >= memory))
    if (disk := spec.disk_gb) is not None:
        wishes.append((f"disk_gb={disk:g}", lambda offer: offer.disk_gb is None or offer.disk_gb >= disk))
    if (architecture := spec.architecture) is not None:
        wishes.append((f"architecture={architecture!r}", lambda offer: offer.architecture in (None, architecture)))
    if (machine := spec.machine) is not None:
        wishes.append((f"machine={machine!r}", lambda offer: offer.instance_type == machine))
    if (region := spec.region) is not None:
        wishes.append((f"region={region!r}", lambda offer: offer.region in (None, region)))
    return wishes


def _has(offer: Offer, wanted: Accelerator) -> bool:
    """Return whether an offer has the accelerators that are asked for."""
    if not offer.accelerator_name or not offer.accelerator_count:
        return False
    memory = offer.accelerator_memory_gb
    return wanted.accepts(recognise(offer.accelerator_name, count=offer.accelerator_count, memory_gb=memory))
