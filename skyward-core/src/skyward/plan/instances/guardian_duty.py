"""
What the guardian of a pool knows: which machines it ends if its client dies, when, and how often it tries.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

from attrs import evolve, field, frozen

from skyward.model.instances.cluster import Cluster
from skyward.model.instances.machine import Instance, InstanceState, ProviderFacts
from skyward.model.spec.image import Image
from skyward.plan.instances.instance_list import APPEARING, MISSES
from skyward.plan.instances.owned_instances import of_another

__all__ = ["Dismissed", "Duty", "InstanceEnded", "Message", "RegionOpened", "Opening", "InstanceRented", "TakeOver"]
__all__ += ["LIFE", "Ender", "due", "ender", "existing", "needed", "over", "pause", "promise", "spared", "take"]
__all__ += ["to_end"]

LIFE = (InstanceState.PENDING, InstanceState.RUNNING, InstanceState.ENDING)
"""The states in which a machine may be billed, in the order of its life."""

Ender = Literal["machine", "guardian"]
"""The process that ends a machine when its client is dead."""

LONGEST_PAUSE = 300.0
"""Seconds between two attempts to end machines at most."""


def _lean(cluster: Cluster) -> Cluster:
    """Return a pool without what only its nodes need: plugins, and an image whose variables may be secret."""
    return evolve(cluster, spec=evolve(cluster.spec, provider=None, plugins=(), image=Image(), trust=None))


@frozen
class Opening:
    """
    Say that what a pool's machines share in a region is about to be set up.

    Args:
        cluster: The pool, with an offer of that region; without what only nodes need.
    """

    cluster: Cluster = field(converter=_lean)


@frozen
class RegionOpened:
    """
    Say that machines are about to be rented in a region.

    Args:
        cluster: The pool, with an offer of that region; without what only nodes need.
        infra: What the pool's machines share there.
    """

    cluster: Cluster = field(converter=_lean)
    infra: Any


@frozen
class InstanceRented:
    """
    Say which machines there are now.

    Args:
        ids: The provider's names for them.
    """

    ids: tuple[str, ...]


@frozen
class InstanceEnded:
    """
    Say which machines are no more.

    Args:
        ids: The provider's names for them.
    """

    ids: tuple[str, ...]


@frozen
class Dismissed:
    """Say that everything was terminated: there is nothing left to guard."""


@frozen
class TakeOver:
    """Say that the pool was left, and that something of it may still exist."""


@frozen(kw_only=True)
class Duty:
    """
    Hold what a guardian knows.

    Args:
        pool_id: The use of the pool whose machines it ends.
        pool_name: What the user calls the pool.
        ttl: Seconds from the client's death until the machines are ended.
        lease: Seconds from then until those are ended that another client may go on with; 0 where there are none.
        lag: Seconds from the client's death until a list without machines is believed.
        opening: Where something that machines share may have been set up, and no more: the pool there.
        regions: Where machines may have been rented: the pool there, and what they share.
        machines: Those that are known to exist.
        spared: Those that are left alone, because another client may go on with them.
        at_once: Whether no guardian has to be waited for.
        dismissed: Whether nothing is left to guard.
    """

    pool_id: str
    pool_name: str
    ttl: float
    lease: float = 0.0
    lag: float = APPEARING
    opening: tuple[Cluster, ...] = ()
    regions: tuple[tuple[Cluster, Any], ...] = ()
    machines: frozenset[str] = frozenset()
    spared: frozenset[str] = frozenset()
    at_once: bool = False
    dismissed: bool = False

    @property
    def idle(self) -> bool:
        """Return whether nothing can have been set up, or everything was terminated."""
        return self.dismissed or not (self.regions or self.opening)

    @property
    def shared(self) -> tuple[tuple[Cluster, Any], ...]:
        """Return the pool in each region, and what machines share there; None where that is unknown."""
        return (*self.regions, *((cluster, None) for cluster in self.opening))

    def knows(self, cluster: Cluster) -> bool:
        """Return whether machines may have been rented in the region of an offer already."""
        return any(known.offer.region == cluster.offer.region for known, _ in self.regions)

    def prepared(self, cluster: Cluster) -> bool:
        """Return whether something may have been set up in the region of an offer already."""
        return any(known.offer.region == cluster.offer.region for known, _ in self.shared)


Message: TypeAlias = Opening | RegionOpened | InstanceRented | InstanceEnded | Dismissed | TakeOver | Duty
"""What a client tells its guardian; a duty is all of it at once."""


def needed(facts: ProviderFacts, ttl: float | None) -> bool:
    """
    Return whether a pool needs a guardian: where its machines cannot end their own bill in every state of their lives,
    unless that is disarmed.

    Args:
        facts: What holds for the provider.
        ttl: Seconds that machines outlive their client; 0 or None for ever.

    >>> needed(ProviderFacts(name="cloud", ends_own_bill=False), 600.0)
    True
    >>> needed(ProviderFacts(name="cloud", ends_own_bill="running"), 600.0)
    True
    >>> needed(ProviderFacts(name="cloud", ends_own_bill=True), 600.0)
    False
    """
    return facts.rents and bool(ttl) and any(ender(facts, state) == "guardian" for state in LIFE)


def ender(facts: ProviderFacts, state: InstanceState) -> Ender:
    """
    Return the process that ends a machine's bill when its client is dead.

    Args:
        facts: What holds for its provider.
        state: What the provider says about its life; one that failed, or was reclaimed and is billed, is ending.

    >>> [ender(ProviderFacts(name="cloud", ends_own_bill="running"), state) for state in LIFE]
    ['guardian', 'machine', 'guardian']
    """
    itself = facts.ends_own_bill
    if itself == "running":
        itself = state is InstanceState.RUNNING
    return "machine" if itself else "guardian"


def promise(machines: str, guardian: int, duty: Duty, facts: ProviderFacts, *, expire: bool) -> str:
    """
    Return what a guardian is there for.

    Args:
        machines: Which machines, in words.
        guardian: Its process.
        duty: What it knows.
        facts: What holds for the provider.
        expire: Whether machines bear the time at which their client counts as gone.
    """
    when = "cannot end their own bill"
    if facts.ends_own_bill == "running":
        when = "end their own bill only once they run"
    after = f"{max(duty.ttl, duty.lease):g} s after this process dies{', unless it is attached' if duty.lease else ''}"
    return (
        f"{machines} {when}: guardian (process {guardian}) ends them {after}. "
        f"If this computer dies too, they are found and ended with: sky down {'--expired' if expire else duty.pool_id}"
    )


def take(duty: Duty, message: Message) -> Duty:
    """
    Return what a guardian knows after it received a message.

    Args:
        duty: What it knew before.
        message: What it received.

    >>> duty = Duty(pool_id="a1", pool_name="train", ttl=600.0)
    >>> sorted(take(take(duty, InstanceRented(("i-1", "i-2"))), InstanceEnded(("i-1",))).machines)
    ['i-2']
    """
    match message:
        case Opening(cluster):
            return duty if duty.prepared(cluster) else evolve(duty, opening=(*duty.opening, cluster))
        case RegionOpened(cluster, infra):
            region = cluster.offer.region
            others = [one for one in duty.regions if one[0].offer.region != region]
            opening = tuple(one for one in duty.opening if one.offer.region != region)
            return evolve(duty, opening=opening, regions=(*others, (cluster, infra)))
        case InstanceRented(ids):
            return evolve(duty, machines=duty.machines | set(ids))
        case InstanceEnded(ids):
            return evolve(duty, machines=duty.machines - set(ids))
        case Dismissed():
            return evolve(duty, dismissed=True)
        case TakeOver():
            return evolve(duty, at_once=True)
        case Duty():
            return message


def due(duty: Duty, *, died: float) -> float:
    """
    Return when the machines are to be ended.

    Args:
        duty: What the guardian knows.
        died: When its client died, in seconds of any clock.

    >>> due(Duty(pool_id="a1", pool_name="train", ttl=600.0), died=50.0)
    650.0
    """
    return died if duty.at_once else died + duty.ttl


def spared(duty: Duty, machines: Iterable[str]) -> Duty:
    """
    Return what a guardian knows without the machines that another client may go on with.

    Args:
        duty: What it knows.
        machines: Those that the client had written down as nodes that outlive it.

    >>> duty = Duty(pool_id="a1", pool_name="train", ttl=600.0, machines=frozenset({"i-1", "i-2"}))
    >>> sorted(spared(duty, ["i-1"]).machines)
    ['i-2']
    """
    return evolve(duty, machines=duty.machines - set(machines), spared=frozenset(machines))


def existing(instances: Iterable[Instance], pool_id: str, *, tagged: bool = False) -> frozenset[str]:
    """
    Return the ids of a pool's machines that may cost money; never one on which another pool is written.

    Args:
        instances: What the provider lists.
        pool_id: The pool.
        tagged: Whether the pool has to be written on them, because the list is not of the pool alone.
    """
    return frozenset(
        one.id
        for one in instances
        if one.state is not InstanceState.ENDED
        and not of_another(one, pool_id)
        and (one.tags is not None or not tagged)
    )


def to_end(duty: Duty, listed: frozenset[str], ended: frozenset[str]) -> tuple[str, ...]:
    """
    Return the machines that are to be ended now.

    Args:
        duty: What the guardian knows: a list that lags may lack what the client knew of.
        listed: What the provider lists.
        ended: What the guardian has ended; if it is listed all the same, it is ended once more.
    """
    return tuple(sorted((listed | (duty.machines - ended)) - duty.spared))


def over(duty: Duty, *, empty: int, since: float) -> bool:
    """
    Return whether nothing is left for certain.

    Args:
        duty: What the guardian knows.
        empty: Lists in a row without a machine.
        since: Seconds since the client died: what it asked for last may still be on its way onto lists.
    """
    return empty >= MISSES and since >= duty.lag


def pause(attempts: int, draw: float) -> float:
    """
    Return the seconds until machines are looked for again.

    Args:
        attempts: How often they could not be ended in a row.
        draw: A number drawn between 0 and 1.

    >>> [pause(attempts, 0.5) for attempts in (0, 1, 3, 2000)]
    [1.0, 2.0, 8.0, 300.0]
    """
    return float(min(LONGEST_PAUSE, 2.0 ** min(attempts, 20))) * (0.8 + 0.4 * draw)
