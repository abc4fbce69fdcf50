"""What the rehearsal cloud does with what it is asked for, behind its counter."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TypeVar

from attrs import evolve, frozen

from skyward.errors import CapacityError, Limited, QuotaError
from skyward.hookspecs import Instance, InstanceState, LaunchRequest
from skyward.model.instances.machine import EndsOwnBill
from skyward.testing import power
from skyward.testing.books import Books, Machine
from skyward.testing.fault import (
    Fault,
    ListingLag,
    LostResponse,
    NeverBoots,
    NoCapacity,
    Preempt,
    Quota,
    SlowApi,
    SlowBoot,
    TerminateFails,
    TooManyRequests,
    fate,
)
from skyward.testing.market import NAME

__all__ = ["Cloud"]

F = TypeVar("F")

_EXPIRES = "skyward:expires"
_ACCOUNT: tuple[Limited, ...] = ()
_MARKET: tuple[Limited, ...] = ("market",)


@frozen
class Cloud:
    """
    Rent out machines by the books. Every method blocks for as long as files take.

    Args:
        faults: What goes wrong.
        seed: Says what the faults leave open.
        books: Where it is all written.
        ends_own_bill: Whether machines terminate when they are expired, as `ProviderFacts` has it.
    """

    faults: tuple[Fault, ...]
    seed: int
    books: Books
    ends_own_bill: EndsOwnBill = True

    def happens(self, kind: type[LostResponse | TerminateFails | TooManyRequests], pool_id: str) -> bool:
        """
        Return whether a call goes wrong, and count it.

        Args:
            kind: In which way.
            pool_id: The pool it is made for.
        """
        found = self._find(kind)
        return found is not None and self.books.use(pool_id, kind.__name__, found.times)

    def seconds(self, kind: type[SlowApi | SlowBoot | ListingLag]) -> float:
        """Return how long something takes that takes time."""
        found = self._find(kind)
        return 0.0 if found is None else found.seconds

    def listed(self, seen: float, pool_id: str | None = None) -> list[Instance]:
        """
        List machines.

        Args:
            seen: As they were at this time.
            pool_id: Those of one pool only.
        """
        return [
            row.instance(seen)
            for row in self.books.machines()
            if pool_id in (None, row.pool_id) and row.launched_at <= seen and row.state(seen) is not InstanceState.ENDED
        ]

    def end(self, names: Iterable[str]) -> None:
        """End machines, and kill what runs there; nothing for those that are gone."""
        wanted = set(names)
        for machine in self.books.machines():
            if machine.id in wanted:
                self.books.end(machine.id)
                power.remove(machine.host)

    def cut(self, name: str) -> None:
        """Kill what runs on a machine, and let nothing start there; nothing for one that was ended."""
        # Under the lock, because one that is ended meanwhile has to stay away.
        with self.books.locked():
            for machine in self.books.machines():
                if machine.id == name and machine.ended_at is None:
                    power.switch_off(machine.host)

    def take(self, name: str) -> None:
        """Reclaim a machine, and kill what runs there; nothing for one that is gone."""
        now = time.time()
        for machine in self.books.machines():
            if machine.id == name and machine.state(now) is not InstanceState.ENDED:
                self.books.change(name, lambda row: evolve(row, taken_at=now))
                self.cut(name)

    def renew(self, names: Iterable[str], expires_at: float) -> None:
        """Write a later expiry on machines."""
        later = {_EXPIRES: str(int(expires_at))}
        for name in names:
            self.books.change(name, lambda machine: evolve(machine, tags={**machine.tags, **later}))

    def rent(self, request: LaunchRequest) -> list[Machine]:
        """
        Rent machines, as many as there are, or find those again that the same token rented before.

        Raises:
            CapacityError: If there are none left.
            QuotaError: If the account may have no more.
        """
        now, pool_id = time.time(), request.cluster.pool_id
        with self.books.locked():
            rows = self.books.machines()
            before = [row for row in rows if (row.pool_id, row.token) == (pool_id, request.token)]
            if before:
                return before
            existing = [row for row in rows if row.state(now) is not InstanceState.ENDED]
            self._check_quota(request, existing)
            granted = request.nodes[: self._left(request, existing)]
            number = sum(row.pool_id == pool_id for row in rows)
            made = [self._machine(request, node, number + index, now) for index, node in enumerate(granted)]
            for machine in made:
                self.books.write(machine)
        for machine in made:
            if machine.fate == "Unreachable":
                power.switch_off(machine.host)
            elif machine.fate == "DiesInBootstrap":
                power.fail_bootstrap(machine.host)
        return made

    def _find(self, kind: type[F]) -> F | None:
        """Return the first fault of a kind."""
        return next((each for each in self.faults if isinstance(each, kind)), None)

    def _check_quota(self, request: LaunchRequest, existing: Sequence[Machine]) -> None:
        quota, wanted = self._find(Quota), len(request.nodes)
        if quota is None or quota.spot not in (None, request.spot):
            return
        has = sum(quota.spot in (None, row.spot) for row in existing)
        if has + wanted > quota.machines:
            raise QuotaError(
                f"The account may have {quota.machines} machines at a time; it has {has}, and wants {wanted} more.",
                provider=NAME,
                of=_ACCOUNT if quota.spot is None else _MARKET,
            )

    def _left(self, request: LaunchRequest, existing: Sequence[Machine]) -> int:
        """Count the machines that can be had of what is asked for."""
        offer, left = request.cluster.offer, len(request.nodes)
        if offer.price(spot=request.spot) is None:
            left = 0
        for each in self.faults:
            if isinstance(each, NoCapacity) and each.concerns(
                offer.instance_type, offer.region, offer.zone, spot=request.spot
            ):
                has = sum(each.concerns(row.instance_type, row.region, row.zone, spot=row.spot) for row in existing)
                left = min(left, max(0, each.left - has))
        if not left:
            how = "as spot" if request.spot else "on demand"
            raise CapacityError(f"There is no {offer.instance_type} left {how} in {offer.zone}.", provider=NAME)
        return left

    def _machine(self, request: LaunchRequest, node: int, number: int, now: float) -> Machine:
        """Write out what becomes of a machine."""
        offer = request.cluster.offer
        name, host = self.books.new_host()
        coming = fate(self.faults, number, self.seed)
        boots_at = None if isinstance(coming, NeverBoots) else now + self.seconds(SlowBoot)
        taken_at = None
        if isinstance(coming, Preempt) and boots_at is not None:
            taken_at = boots_at + (coming.after or 0.0)
        return Machine(
            id=name,
            tags=request.tags_of(node).to_strings(),
            instance_type=offer.instance_type,
            region=offer.region,
            zone=offer.zone,
            spot=request.spot,
            rate=offer.price(spot=request.spot) or 0.0,
            on_demand_rate=offer.on_demand_price,
            host=host,
            launched_at=now,
            boots_at=boots_at,
            fate="" if coming is None else type(coming).__name__,
            taken_at=taken_at,
            ends_own_bill=self.ends_own_bill,
        )
