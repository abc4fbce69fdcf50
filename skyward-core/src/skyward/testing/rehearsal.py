"""
A cloud for rehearsals: its machines are processes on this one, its prices play money, and it fails as its faults say.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import time
from collections.abc import Sequence

from attrs import field, frozen

from skyward.errors import TransportError
from skyward.hookspecs import Cluster, Instance, LaunchRequest, Offer, ProviderFacts, hookimpl
from skyward.model.fields.setting import whole
from skyward.model.instances.machine import EndsOwnBill
from skyward.testing import fault, market, power, programs
from skyward.testing.books import Books, Machine
from skyward.testing.cloud import Cloud
from skyward.testing.fault import Fault

__all__ = ["Rehearsal"]

_log = logging.getLogger(__name__)

TRIES = 5
"""How often a call is made that is answered with "too many requests"."""

_PAUSE = 0.05


def _directory(value: str | os.PathLike[str] | None) -> str:
    """Return where the books are; unless it is said, a directory of this program's own."""
    return programs.own() if value is None else os.path.abspath(value)


def _seed(value: int) -> int:
    """Return a seed, checked."""
    return whole(value, "seed")


@frozen(kw_only=True)
class Rehearsal:
    """
    Rent machines that are this one, from a cloud that fails on purpose.

    Nothing is installed and nothing costs money, but all the rest is real: nodes are process trees, prices are counted,
    and a machine that is reclaimed is killed with all that runs on it.
    What exists and what it has cost is written in books, which are this program's own unless `directory=` is said.

    Args:
        faults: What goes wrong, such as `NoCapacity(zone="north-a")`; nothing unless it is said.
        seed: Says what the faults leave open; the same seed always says the same.
        directory: Where the books and the machines are, with a short path; programs that name the same directory
            share them. None is a place of this program's own, where `skyward_owned` finds them all the same.
        ends_own_bill: Whether a machine terminates when its client has died: `"running"` if it has to run for that,
            False for a cloud where one that is switched off is billed all the same. Both need a guardian.

    Raises:
        ConfigError: If a fault is none.

    >>> from skyward.testing import NoCapacity, Preempt
    >>> Rehearsal(faults=[NoCapacity(zone="north-a"), Preempt(after=2.0)]).faults
    (NoCapacity(zone='north-a'), Preempt(after=2.0))
    """

    faults: tuple[Fault, ...] = field(default=(), converter=fault.checked)
    seed: int = field(default=0, converter=_seed)
    directory: str = field(default=None, converter=_directory, repr=False)
    ends_own_bill: EndsOwnBill = field(default=True, repr=False)
    # The watchers of machines that something will happen to; they live as long as the loop that launched them.
    _watchers: dict[str, asyncio.Task[None]] = field(factory=dict, init=False, eq=False, repr=False)

    @classmethod
    def bad_day(cls, seed: int | None = None, *, directory: str | os.PathLike[str] | None = None) -> Rehearsal:
        """
        Return a cloud on one of its bad days: two to four things go wrong.

        Its repr, which the log has too, says what they are, and makes the same day again.

        Args:
            seed: Which day; None draws one.
            directory: As for the class.

        >>> Rehearsal.bad_day(3) == Rehearsal.bad_day(3)
        True
        """
        chosen = random.randrange(10**6) if seed is None else _seed(seed)
        return cls(faults=fault.bad_day(chosen), seed=chosen, directory=directory)

    def machines(self) -> list[Instance]:
        """List all machines in these books that exist now and cost money, whichever pool rented them."""
        return self._cloud.listed(time.time())

    def bill(self) -> float:
        """Return what all machines in these books have cost until now, in USD of play money."""
        now = time.time()
        return sum(machine.cost(now) for machine in Books(self.directory).machines())

    def preempt(self, name: str) -> None:
        """
        Reclaim a machine now, and kill what runs on it.

        Args:
            name: Its id. One that is gone already is no error.
        """
        self._cloud.take(name)

    def clear(self) -> None:
        """
        Kill all machines and remove the books.

        Raises:
            ConfigError: If another user could have written the books.
        """
        books = Books(self.directory)
        for machine in books.machines():
            power.remove(machine.host)
        books.clear()

    @hookimpl
    def skyward_facts(self) -> ProviderFacts:
        """Return what holds here: it is as good as a cloud gets, apart from the faults."""
        return ProviderFacts(
            name=market.NAME,
            ends_own_bill=self.ends_own_bill,
            billing_granularity_s=market.GRANULARITY,
            offers_ttl_s=0,
            spot=True,
            regions=market.REGIONS,
        )

    @hookimpl
    async def skyward_preflight(self) -> None:
        """Log what will go wrong; there is nothing to log in to."""
        if self.faults:
            _log.warning("rehearsal.day %r", self)

    @hookimpl
    async def skyward_offers(self) -> Sequence[Offer]:
        """Sell a few kinds of machines in a few places, on demand and as spot."""
        await self._reach()
        return market.offers()

    @hookimpl
    async def skyward_open(self, cluster: Cluster) -> str:
        """Return where the machines are; they share nothing else."""
        await self._reach(cluster.pool_id)
        await asyncio.to_thread(programs.sweep, self.directory)
        return self.directory

    @hookimpl
    async def skyward_launch(self, request: LaunchRequest) -> Sequence[Instance]:
        """
        Rent machines; the same token finds the machines again that it rented before.

        Raises:
            CapacityError: If there are none left.
            QuotaError: If the account may have no more.
            TransportError: If the answer is lost, or the cloud is asked too often.
        """
        await self._reach(request.cluster.pool_id)
        rented = await asyncio.to_thread(self._cloud.rent, request)
        for machine in rented:
            self._watch(machine)
        if await asyncio.to_thread(self._cloud.happens, fault.LostResponse, request.cluster.pool_id):
            raise TransportError("The connection to the rehearsal cloud broke before it answered a launch.")
        now = time.time()
        return [machine.instance(now) for machine in rented]

    @hookimpl
    async def skyward_instances(self, cluster: Cluster) -> Sequence[Instance]:
        """List the pool's machines."""
        await self._reach(cluster.pool_id)
        return await asyncio.to_thread(self._cloud.listed, self._seen, cluster.pool_id)

    @hookimpl
    async def skyward_terminate(self, cluster: Cluster, ids: Sequence[str]) -> None:
        """
        End machines; one that is gone already is no error.

        Raises:
            TransportError: If it fails this time; nothing is ended then.
        """
        await self._reach(cluster.pool_id)
        await self._end(cluster.pool_id, ids)

    @hookimpl
    async def skyward_release(self, cluster: Cluster) -> None:
        """Forget how often things went wrong for the pool."""
        await asyncio.to_thread(Books(self.directory).forget_counts, cluster.pool_id)

    @hookimpl
    async def skyward_renew(self, cluster: Cluster, ids: Sequence[str], expires_at: float) -> None:
        """Write a later expiry on machines."""
        await self._reach(cluster.pool_id)
        for books, held in await asyncio.to_thread(programs.holding, self.directory, ids):
            await asyncio.to_thread(self._at(books).renew, held, expires_at)

    @hookimpl
    async def skyward_owned(self) -> Sequence[Instance]:
        """List the machines of all pools; where no directory was named, those of all such programs of this user."""
        await self._reach()
        account = await asyncio.to_thread(programs.account, self.directory)
        return [one for books in account for one in await asyncio.to_thread(self._at(books).listed, self._seen)]

    @hookimpl
    async def skyward_end(self, instances: Sequence[Instance]) -> None:
        """
        End machines that `skyward_owned` listed.

        Raises:
            TransportError: If it fails this time; nothing is ended then.
        """
        for pool_id in sorted({instance.tags.pool_id for instance in instances if instance.tags is not None}):
            await self._reach(pool_id)
            ours = [one.id for one in instances if one.tags is not None and one.tags.pool_id == pool_id]
            await self._end(pool_id, ours)

    @property
    def _cloud(self) -> Cloud:
        return self._at(Books(self.directory))

    def _at(self, books: Books) -> Cloud:
        return Cloud(self.faults, self.seed, books, self.ends_own_bill)

    @property
    def _seen(self) -> float:
        """Return the moment that lists tell about."""
        return time.time() - self._cloud.seconds(fault.ListingLag)

    async def _reach(self, pool_id: str | None = None) -> None:
        """Make a call to the cloud, for a pool or for none, as far as time and patience go."""
        for attempt in range(TRIES):
            await asyncio.sleep(self._cloud.seconds(fault.SlowApi))
            if pool_id is None or not await asyncio.to_thread(self._cloud.happens, fault.TooManyRequests, pool_id):
                return
            await asyncio.sleep(_PAUSE * 2**attempt)
        raise TransportError(
            f"The rehearsal cloud answered {TRIES} times with 429 Too Many Requests.", provider=market.NAME
        )

    async def _end(self, pool_id: str, ids: Sequence[str]) -> None:
        if await asyncio.to_thread(self._cloud.happens, fault.TerminateFails, pool_id):
            raise TransportError(
                f"The rehearsal cloud answered 500 Internal Server Error; it has not ended {', '.join(ids)}.",
                provider=market.NAME,
            )
        for name in ids:
            watcher = self._watchers.pop(name, None)
            if watcher is not None:
                watcher.cancel()
        for books, held in await asyncio.to_thread(programs.holding, self.directory, ids):
            await asyncio.to_thread(self._at(books).end, held)

    def _watch(self, machine: Machine) -> None:
        """Schedule, once, that a machine is reclaimed if that was written about it."""
        if machine.id not in self._watchers and machine.taken_at is not None:
            taking = asyncio.get_running_loop().create_task(self._take(machine, machine.taken_at))
            self._watchers[machine.id] = taking

    async def _take(self, machine: Machine, moment: float) -> None:
        await asyncio.sleep(max(0.0, moment - time.time()))
        await asyncio.to_thread(self._cloud.cut, machine.id)
