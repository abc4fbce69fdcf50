"""Count what a pool costs while it lives, and stop it when its budget is used up."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

from attrs import evolve

from skyward.engine.calls.busy_time import Work
from skyward.engine.calls.call import Answer
from skyward.engine.pool.event_loop import engine_loop
from skyward.errors import BudgetExceededError
from skyward.link.messages import Status
from skyward.model.events import event as events
from skyward.model.instances.cost_report import Cost, FirstResult, Receipt
from skyward.model.instances.machine import Instance, ProviderFacts
from skyward.plan.instances.billing import (
    BilledLife,
    Tariff,
    check_launch,
    check_running,
    committed,
    cost_at,
    first_result_of,
    highest_rate,
    receipt_of,
)

UPDATE_S = 10.0
"""Seconds between two events about the cost, where nothing changes."""

SPACING_S = 0.2
"""Seconds between two events about the cost, however much changes: each looks at all machines that there were."""

LOOK_S = 1.0
"""Seconds between two looks at a budget."""

Publish: TypeAlias = Callable[[events.SkywardEvent], object]
"""Where events about the cost go."""

Stop: TypeAlias = Callable[[BudgetExceededError, Answer], None]
"""What stops a pool: gets the error, and the answer to every call."""


_Machine: TypeAlias = tuple[str, str]
"""The provider of a machine and its id there: two clouds may have the same id."""


class Meter:
    """
    Follow the machines of one pool, from its opening to its receipt.

    It receives the pool's events in the engine's loop, and may be asked for the cost from any thread.

    Args:
        budget: What the pool may cost, in USD.
        pool: The pool's name, for messages.
        clock: Tells monotonic time; the engine's loop does if left out.
        later: Has something done in so many seconds; the engine's loop does if left out.
    """

    def __init__(
        self,
        *,
        budget: float | None = None,
        pool: str = "",
        clock: Callable[[], float] | None = None,
        later: Callable[[float, Callable[[], None]], object] | None = None,
    ) -> None:
        self._budget = budget
        self._pool = pool
        self._clock = clock or engine_loop().loop.time
        self._later = later
        self._opened = self._clock()
        self._facts: dict[str, ProviderFacts] = {}
        self._planned: float | None = None
        self._lives: list[BilledLife] = []
        self._works: list[Work] = []
        self._at: dict[_Machine, int] = {}
        self._at_work: dict[int, Work] = {}
        self._orphans: set[_Machine] = set()
        self._asked: dict[int, float] = {}
        self._reserved: dict[object, float] = {}
        self._calls: dict[int, Work] = {}
        self._began: dict[int, float] = {}
        self._first: FirstResult | None = None
        self._ticking = self._owing = False
        self._told = self._opened - SPACING_S
        self._publish: Publish = lambda event: None
        self._stop: Stop = lambda error, answer: None
        self._closed_at: float | None = None
        self._delivered = threading.Event()
        self.exceeded: BudgetExceededError | None = None
        self.receipt: Receipt | None = None

    def begin(self, facts: ProviderFacts, planned: float | None, stop: Stop, publish: Publish) -> None:
        """
        Follow the machines of a provider from now on.

        Args:
            facts: How it bills.
            planned: How long each machine is to live, if anything says so, in seconds.
            stop: Stops the pool.
            publish: Where events about the cost go.
        """
        self.follow(facts)
        self._planned = planned
        self._stop = stop
        self._publish = publish

    def follow(self, facts: ProviderFacts) -> None:
        """Follow the machines of one provider more, which bills like this."""
        self._facts[facts.name] = facts

    def cost(self) -> Cost:
        """Return what the pool has cost until now, or in all once it is closed."""
        return cost_at(tuple(self._lives), self._now())

    def left(self) -> float | None:
        """Return what is left of the budget if all machines end now, in USD; None where there is no budget."""
        return None if self._budget is None else self._budget - committed(self._lives, self._now())

    def afford(self, provider: str, count: int, rate: float | None) -> float:
        """
        Return what machines will cost at least; 0 where there is no budget.

        Args:
            provider: The provider's name.
            count: How many machines.
            rate: What one costs, in USD an hour; None or 0 where nothing is billed.

        Raises:
            BudgetExceededError: If the budget does not allow it.
        """
        if self.exceeded is not None:
            raise self.exceeded
        if self._budget is None or not rate:
            return 0.0
        return check_launch(
            self._lives,
            self._tariff(provider, rate, None),
            count,
            budget=self._budget,
            now=self._now(),
            reserved=sum(self._reserved.values()),
            pool=self._pool,
        )

    @contextmanager
    def renting(self, provider: str, count: int, rate: float | None) -> Iterator[None]:
        """
        Keep money back while machines are being rented.

        Args:
            provider: As for `afford`.
            count: As for `afford`.
            rate: As for `afford`.

        Raises:
            BudgetExceededError: If the budget does not allow it.
        """
        ticket = object()
        self._reserved[ticket] = self.afford(provider, count, rate)
        try:
            yield
        finally:
            del self._reserved[ticket]

    # What happens to machines, in the engine's loop.

    def orphaned(self, machine: Instance, rate: float | None) -> None:
        """
        Count an orphan, from its launch on; harmless if it is counted already.

        Args:
            machine: The machine, as it is listed.
            rate: What it was asked for at, in USD an hour, where the list does not say.
        """
        name = machine.provider, machine.id
        if name in self._at or self._closed_at is not None:
            return
        now = self._clock()
        # The provider's clock is not ours: it has been there no longer than the pool, nor since a time to come.
        there = 0.0 if machine.launched_at is None else max(0.0, time.time() - machine.launched_at)
        self._add(
            BilledLife(
                node=machine.node,
                instance_id=machine.id,
                provider=machine.provider,
                instance_type=machine.instance_type,
                spot=machine.spot,
                launched=max(self._opened, now - there),
                tariff=self._tariff(
                    machine.provider, machine.hourly_rate if rate is None else rate, machine.on_demand_rate
                ),
            )
        )
        self._orphans.add(name)

    def orphans_ended(self, provider: str, ids: Iterable[str]) -> None:
        """Count orphans of a provider as terminated; harmless for other machines."""
        for name in self._orphans.intersection((provider, each) for each in ids):
            self._orphans.discard(name)
            self._change(name, ended=self._clock())
            self._changed(name)

    def heard(self, event: events.SkywardEvent) -> None:
        """Update the bill from an event of a machine; ignore other events."""
        note = _NOTES.get(type(event))
        if note is not None and self._closed_at is None:
            note(self, event)

    def task_started(self, call: int, node: int) -> None:
        """Count a call that began on a node."""
        work = self._at_work.get(node)
        if work is None:
            return
        self._calls[call] = work
        if not work.calls:
            work.since = self._clock()
        work.calls += 1
        if self._first is None:
            self._began[call] = self._clock()

    def task_ended(self, call: int, *, good: bool) -> None:
        """Count a call that ended; harmless for one that never began."""
        work = self._calls.pop(call, None)
        if work is None:
            return
        if work.calls:
            work.calls -= 1
            if not work.calls:
                work.seconds += self._clock() - work.since
        if self._first is None:
            began = self._began.pop(call)
            if good:
                life, asked = self._lives[work.place], self._asked.get(self._lives[work.place].node)
                self._first = first_result_of(life, opened=self._opened, asked=asked, began=began, now=self._clock())
                self._began.clear()

    def tick(self) -> None:
        """Check the budget, and publish the cost now and then."""
        self._ticking = False
        if self._closed_at is not None or self.exceeded is not None:
            return
        now = self._clock()
        self._look(now)
        if now - self._told >= UPDATE_S:
            self._tell(now)
        self._wind()

    # The end.

    def close(self, publish: Publish) -> None:
        """
        Draw the line, and tell the final cost if anything was billed; harmless when that is done.

        Args:
            publish: Where the event goes.
        """
        if self._closed_at is not None:
            return
        if self._owing:
            self._tell(self._clock())
        now = self._closed_at = self._clock()
        lives = [evolve(life, computed=work.until(now)) for life, work in zip(self._lives, self._works, strict=True)]
        self.receipt = receipt_of(lives, now, planned_s=self._planned, first_result=self._first)
        if not any(life.billed for life in lives):
            return
        cost = cost_at(lives, now)
        publish(
            events.CostFinal(
                total_cost=cost.accumulated,
                total_seconds=cost.seconds,
                hourly_rate=highest_rate(lives),
                spot_count=sum(life.spot for life in lives if life.billed),
                ondemand_count=sum(not life.spot for life in lives if life.billed),
                savings_vs_ondemand=cost.savings,
                receipt=self.receipt,
            )
        )

    def raise_undelivered(self) -> None:
        """
        Raise the error of a pool that its budget stopped, if no call has raised it.

        Raises:
            BudgetExceededError: If it was.
        """
        if self.exceeded is not None and not self._delivered.is_set():
            raise self.exceeded

    # Inside.

    def _now(self) -> float:
        return self._clock() if self._closed_at is None else self._closed_at

    def _tariff(self, provider: str, rate: float | None, on_demand: float | None) -> Tariff:
        facts = self._facts.get(provider)
        return Tariff(
            hourly_rate=rate or 0.0,
            on_demand_rate=on_demand,
            granularity_s=(facts.billing_granularity_s or 0.0) if facts is not None else 0.0,
            minimum_s=facts.minimum_billed_s if facts is not None else 0.0,
        )

    def _change(self, name: _Machine | None, **changes: Any) -> bool:
        place = None if name is None else self._at.get(name)
        if place is None:
            return False
        self._lives[place] = evolve(self._lives[place], **changes)
        return True

    def _requested(self, event: events.InstanceRequested) -> None:
        self._asked.setdefault(event.node, self._clock())

    def _launched(self, event: events.InstanceLaunched) -> None:
        info = event.instance
        # One that a lost answer had made an orphan may be a node's after all.
        self._orphans.discard((event.provider, event.instance_id))
        place = self._at.get((event.provider, event.instance_id))
        if place is not None and self._lives[place].ended is None:
            return
        rate = info.hourly_rate if info is not None else None
        if rate is None:
            # A provider that says no price of the machine has said one of the offer.
            rate = event.price_spot if event.spot else event.price_on_demand
        self._add(
            BilledLife(
                node=event.node,
                instance_id=event.instance_id,
                provider=event.provider,
                instance_type=event.instance_type,
                accelerator=event.accelerator,
                spot=event.spot,
                launched=self._clock(),
                tariff=self._tariff(event.provider, rate, event.price_on_demand),
            )
        )

    def _add(self, life: BilledLife) -> None:
        name = life.provider, life.instance_id
        self._at[name] = len(self._lives)
        self._works.append(Work(len(self._works)))
        self._lives.append(life)
        self._changed(name)

    def _provisioned(self, event: events.InstanceProvisioned) -> None:
        self._change((event.provider, event.instance_id), reachable=self._clock())

    def _bootstrapped(self, event: events.InstanceBootstrapped) -> None:
        self._change(_machine(event), bootstrapped=self._clock())

    def _is_ready(self, event: events.NodeReady) -> None:
        name = _machine(event)
        if name is not None and self._change(name, ready=self._clock()):
            self._at_work[event.node] = self._works[self._at[name]]

    def _stopping(self, event: events.InstanceStopping) -> None:
        now, name = self._clock(), _machine(event)
        if name is not None and self._change(name, stopping=now, reason=event.reason):
            work = self._works[self._at[name]]
            work.end(now)
            if event.node is not None and self._at_work.get(event.node) is work:
                del self._at_work[event.node]

    def _destroyed(self, event: events.InstanceDestroyed | events.InstanceLingers) -> None:
        # What it costs while it waits for the next pool is said apart.
        name, lingers = _machine(event), getattr(event, "seconds", 0.0)
        if name is not None and self._change(name, ended=self._clock(), lingers=lingers):
            self._changed(name)

    def _changed(self, name: _Machine) -> None:
        """Publish the cost, if this machine is billed: at once, or with what changes soon after."""
        if not self._lives[self._at[name]].billed:
            return
        early = self._told + SPACING_S - self._clock()
        if early <= 0:
            self._tell(self._clock())
        elif not self._owing:
            self._owing = True
            (self._later or engine_loop().loop.call_later)(early, self._owed)
        self._wind()

    def _owed(self) -> None:
        if self._owing and self._closed_at is None:
            self._tell(self._clock())

    def _tell(self, now: float) -> None:
        self._told, self._owing = now, False
        cost = cost_at(self._lives, now)
        self._publish(
            events.CostUpdate(
                elapsed_seconds=cost.seconds,
                accumulated_cost=cost.accumulated,
                hourly_rate=cost.hourly_rate,
                spot_count=cost.spot_count,
                ondemand_count=cost.ondemand_count,
            )
        )

    def _wind(self) -> None:
        """Schedule the next tick, as long as something is billed."""
        if self._ticking or not any(life.billed and life.ended is None for life in self._lives):
            return
        self._ticking = True
        (self._later or engine_loop().loop.call_later)(UPDATE_S if self._budget is None else LOOK_S, self.tick)

    def _look(self, now: float) -> None:
        if self._budget is None:
            return
        try:
            check_running(self._lives, budget=self._budget, now=now, within=LOOK_S, pool=self._pool)
        except BudgetExceededError as error:
            self.exceeded = error
            self._stop(error, self._answer(error))

    def _answer(self, error: BudgetExceededError) -> Answer:
        """Return what every call is answered with."""
        facts = {"error": "BudgetExceededError", "message": str(error), "budget": error.budget, "cost": error.cost}
        return Answer(
            Status.FAILED, None, json.dumps(facts).encode(), pool=self._pool, on_delivered=self._delivered.set
        )


def _machine(event: events.SkywardEvent) -> _Machine | None:
    """Return which machine an event is about; None if it is about none."""
    return None if event.instance is None else (event.instance.provider, event.instance.id)


_NOTES: Mapping[type[events.SkywardEvent], Callable[[Meter, Any], None]] = {
    events.InstanceRequested: Meter._requested,
    events.InstanceLaunched: Meter._launched,
    events.InstanceProvisioned: Meter._provisioned,
    events.InstanceBootstrapped: Meter._bootstrapped,
    events.NodeReady: Meter._is_ready,
    events.InstanceStopping: Meter._stopping,
    events.InstanceDestroyed: Meter._destroyed,
    events.InstanceLingers: Meter._destroyed,
}
