"""A cloud in memory that answers as the test says: offers, machines on virtual time, and faults as values."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, TypeVar

from attrs import define, evolve, frozen

import skyward as sky
from skyward.hookspecs import Cluster, Instance, InstanceState, LaunchRequest, Offer, ProviderFacts, hookimpl
from skyward.testing import DiesInBootstrap, ListingLag, NeverBoots, NoCapacity, Preempt, Quota, SlowApi, Unreachable
from skyward.testing.fault import fate
from tests.simulated.host import SimulatedMachine

F = TypeVar("F")

SMALL = Offer(provider="cloud", instance_type="small", region="eu", zone="a", spot_price=0.1, on_demand_price=0.5)
"""What the cloud sells if nothing else is said: one offer, on both markets."""

ALWAYS = 1000
"""Times that no test comes to the end of."""


@frozen
class Fails:
    """
    Have calls of a hook fail.

    Args:
        hook: Its name without `skyward_`.
        error: Makes what is raised.
        times: How many calls, the first ones after `skip`.
        skip: How many go well before.
        done: Whether what was asked for is done before the answer is lost.
    """

    hook: str
    error: Callable[[], Exception] = lambda: ConnectionResetError("the line is cut")
    times: int = 1
    skip: int = 0
    done: bool = False


@frozen
class Hangs:
    """
    Have calls of a hook never answered.

    Args:
        hook: Its name without `skyward_`.
        times: How many calls, the first ones after `skip`.
        skip: How many go well before.
    """

    hook: str
    times: int = 1
    skip: int = 0


Script: TypeAlias = (
    Fails | Hangs | NoCapacity | Quota | NeverBoots | Unreachable | DiesInBootstrap | Preempt | ListingLag | SlowApi
)
"""What can go wrong: how hooks answer, what there is none of, and what becomes of the first machines."""


@define(eq=False)
class Row:
    """
    Be a machine in the cloud's books.

    Args:
        machine: What its address leads to.
        request: What it was rented by.
        node: The node it was rented for.
        since: When it was rented.
        runs_at: When it runs; None never.
        ended_at: When it ended; None while it is there.
        state: What is said of it instead of what is so.
        hidden: Whether lists leave it out.
        answered: Whether the launch was answered that rented it.
        asked_at: When its end was first asked for; None never.
        doing: What it does before it runs, in words.
        reason: Why it is of no use, in words.
    """

    machine: SimulatedMachine
    request: LaunchRequest
    node: int
    since: float
    runs_at: float | None
    ended_at: float | None = None
    state: InstanceState | None = None
    hidden: bool = False
    answered: bool = False
    asked_at: float | None = None
    doing: str | None = None
    reason: str | None = None

    @property
    def id(self) -> str:
        """Name it."""
        return self.machine.id

    @property
    def there(self) -> bool:
        """Tell whether it is billed."""
        return self.ended_at is None


class ScriptedCloud:
    """
    Rent machines in memory, and fail as the script says.

    Args:
        script: What goes wrong.
        offers: What is for sale.
        boots: Seconds until a machine runs.
        prepares: Seconds that it takes then to be made ready.
        ends: Seconds that ending machines takes.
        forgets: Whether a token means nothing, so that the same request rents twice.
        ends_itself: Whether a machine that is asked to end itself does.
        facts: Other facts of the provider than those of a cloud.
    """

    def __init__(
        self,
        *script: Script,
        name: str = "cloud",
        offers: Sequence[Offer] = (SMALL,),
        boots: float = 10.0,
        prepares: float = 5.0,
        ends: float = 2.0,
        forgets: bool = False,
        ends_itself: bool = True,
        **facts: Any,
    ) -> None:
        self.name = name
        self.offers = offers
        self.script: list[Script] = list(script)
        self.boots, self.prepares, self.ends = boots, prepares, ends
        self.forgets, self.ends_itself = forgets, ends_itself
        self.facts = {"ends_own_bill": True, "billing_granularity_s": 1.0, "spot": True, **facts}
        self.rows: list[Row] = []
        self.requests: list[LaunchRequest] = []
        self.calls: list[tuple[float, str]] = []
        self.open: list[str | None] = []
        self.owned: list[Instance] = []
        self.ahead: float | None = None
        self.renewals: list[tuple[float, tuple[str, ...]]] = []
        self.expiries: list[float] = []
        self.called_off = False
        self.most = 0
        self.when: Callable[[str], object] = lambda hook: None
        self.after: Callable[[str], object] = lambda hook: None
        self.answer: Callable[[Sequence[Instance]], Sequence[Instance]] = lambda answer: answer
        self._counts: Counter[str] = Counter()
        self._numbers = itertools.count()

    # What tests ask and do.

    @property
    def there(self) -> list[Row]:
        """List the machines that are billed."""
        return [row for row in self.rows if row.there]

    def times(self, hook: str) -> list[float]:
        """List when a hook was called."""
        return [at for at, name in self.calls if name == hook]

    def take(self, row: Row) -> None:
        """Take a machine back, whatever runs there; call it in the loop."""
        if row.there:
            row.ended_at = asyncio.get_running_loop().time()
            row.machine.switch_off("the machine was taken back")

    # What the engine asks.

    @hookimpl
    def skyward_facts(self) -> ProviderFacts:
        return ProviderFacts(name=self.name, **self.facts)

    @hookimpl
    async def skyward_preflight(self) -> None:
        await self._asked("preflight")

    @hookimpl
    async def skyward_offers(self) -> Sequence[Offer]:
        await self._asked("offers")
        return self.offers

    @hookimpl
    async def skyward_open(self, cluster: Cluster) -> str | None:
        await self._asked("open")
        self.open.append(cluster.offer.region)
        self._answered("open")
        return cluster.offer.region

    @hookimpl
    async def skyward_launch(self, request: LaunchRequest, infra: str | None) -> Sequence[Instance]:
        assert infra == request.cluster.offer.region
        self.requests.append(request)
        await self._asked("launch")
        before = [row for row in self.rows if row.request.token == request.token]
        made = before if before and not self.forgets else self._rent(request)
        self._answered("launch")
        for row in made:
            row.answered = True
        # Whatever it does by now, it was granted as one that does not run yet.
        return self.answer([self._instance(row, state=InstanceState.PENDING) for row in made])

    @hookimpl
    async def skyward_instances(self, cluster: Cluster, infra: str | None) -> Sequence[Instance]:
        await self._asked("instances")
        lag = self._find(ListingLag)
        seen = asyncio.get_running_loop().time() - (lag.seconds if lag is not None else 0.0)
        return [
            self._instance(row)
            for row in self.rows
            if row.request.cluster.pool_id == cluster.pool_id
            and row.request.cluster.offer.region == infra
            and row.since <= seen
            and not row.hidden
            and (row.ended_at is None or row.ended_at > seen)
        ]

    @hookimpl
    async def skyward_terminate(self, ids: Sequence[str]) -> None:
        for row in self.rows:
            if row.id in ids and row.asked_at is None:
                row.asked_at = asyncio.get_running_loop().time()
        await self._asked("terminate")
        going = [row for row in self.rows if row.id in ids and row.there]
        if going:
            await asyncio.sleep(self.ends)
        for row in going:
            self.take(row)
        self._answered("terminate")

    @hookimpl
    async def skyward_check_end(self) -> None:
        await self._asked("check_end")

    @hookimpl
    async def skyward_release(self, infra: str | None) -> None:
        await self._asked("release")
        self.open.remove(infra)

    @hookimpl
    async def skyward_renew(self, ids: Sequence[str], expires_at: float) -> None:
        await self._asked("renew")
        self.renewals.append((asyncio.get_running_loop().time(), tuple(ids)))
        self.expiries.append(expires_at)

    @hookimpl
    async def skyward_clock(self) -> float | None:
        return self.ahead

    @hookimpl
    async def skyward_owned(self) -> Sequence[Instance]:
        await self._asked("owned")
        return self.owned

    # Behind the counter.

    async def _asked(self, hook: str) -> None:
        self.calls.append((asyncio.get_running_loop().time(), hook))
        self._counts[hook] += 1
        self.when(hook)
        if (slow := self._find(SlowApi)) is not None:
            await asyncio.sleep(slow.seconds)
        for fault in self._happening(hook):
            if isinstance(fault, Hangs):
                await asyncio.Event().wait()
            elif not fault.done:
                raise fault.error()

    def _answered(self, hook: str) -> None:
        self.after(hook)
        for fault in self._happening(hook):
            if isinstance(fault, Fails) and fault.done:
                raise fault.error()

    def _happening(self, hook: str) -> Iterable[Fails | Hangs]:
        number = self._counts[hook]
        return [
            fault
            for fault in self.script
            if isinstance(fault, Fails | Hangs)
            and fault.hook == hook
            and fault.skip < number <= fault.skip + fault.times
        ]

    def _find(self, kind: type[F]) -> F | None:
        return next((fault for fault in self.script if isinstance(fault, kind)), None)

    def _rent(self, request: LaunchRequest) -> list[Row]:
        offer, left = request.cluster.offer, len(request.nodes)
        for fault in self.script:
            if isinstance(fault, Quota) and fault.spot in (None, request.spot):
                has = sum(fault.spot in (None, row.request.spot) for row in self.there)
                if has + left > fault.machines:
                    raise sky.QuotaError(f"The account may have {fault.machines} machines.")
            if isinstance(fault, NoCapacity) and fault.concerns(
                offer.instance_type, offer.region, offer.zone, spot=request.spot
            ):
                left = min(left, max(0, fault.left - len(self.there)))
        if not left:
            raise sky.CapacityError(f"There is no {offer.instance_type} left in {offer.zone}.")
        return [self.add(request, node) for node in request.nodes[:left]]

    def add(self, request: LaunchRequest, node: int) -> Row:
        """Rent one machine by a request."""
        loop, number = asyncio.get_running_loop(), next(self._numbers)
        coming = fate([fault for fault in self.script if not isinstance(fault, Fails | Hangs)], number, seed=0)
        machine = SimulatedMachine(
            f"{self.name}-{number}",
            prepares=self.prepares,
            unreachable=isinstance(coming, Unreachable),
            dies=isinstance(coming, DiesInBootstrap),
        )
        runs_at = None if isinstance(coming, NeverBoots) else loop.time() + self.boots
        row = Row(machine=machine, request=request, node=node, since=loop.time(), runs_at=runs_at)
        if self.ends_itself:
            machine.ends_itself = lambda: self.take(row)
        if isinstance(coming, Preempt):
            loop.call_later(self.boots + (coming.after or 0.0), self.take, row)
        self.rows.append(row)
        self.most = max(self.most, len(self.there))
        return row

    def _instance(self, row: Row, state: InstanceState | None = None) -> Instance:
        now, offer = asyncio.get_running_loop().time(), row.request.cluster.offer
        runs = row.runs_at is not None and row.runs_at <= now
        state = state or row.state or (InstanceState.RUNNING if runs else InstanceState.PENDING)
        return Instance(
            id=row.id,
            node=row.node,
            provider=self.name,
            state=state,
            address=row.machine if state is InstanceState.RUNNING else None,  # type: ignore[arg-type]  # see HostAddress
            instance_type=offer.instance_type,
            region=offer.region,
            spot=row.request.spot,
            hourly_rate=offer.price(spot=row.request.spot),
            on_demand_rate=offer.on_demand_price,
            tags=evolve(row.request.tags_of(row.node), **({"expires_at": 0.0} if self.called_off else {})),
            doing=row.doing,
            reason=row.reason,
        )
