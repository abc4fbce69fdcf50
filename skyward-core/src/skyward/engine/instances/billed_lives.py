"""What there is to bill: the life of each machine of a pool, and the time in which it computed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from attrs import evolve

from skyward.engine.calls.busy_time import Work
from skyward.model.events import event as events
from skyward.model.instances.cost_report import FirstResult
from skyward.model.instances.machine import Instance, ProviderFacts
from skyward.plan.instances.billing import BilledLife, Tariff, first_result_of

Machine: TypeAlias = tuple[str, str]
"""The provider of a machine and its id there: two clouds may have the same id."""


class BilledLives:
    """
    Record the lives of one pool's machines from its events; lives in the engine's loop.

    Args:
        clock: Tells monotonic time.
        on_change: Called when a machine that is billed begins or ends.
    """

    def __init__(self, clock: Callable[[], float], on_change: Callable[[], None]) -> None:
        self._clock = clock
        self._on_change = on_change
        self._facts: dict[str, ProviderFacts] = {}
        self._at: dict[Machine, int] = {}
        self._at_work: dict[int, Work] = {}
        self._orphans: set[Machine] = set()
        self._asked: dict[int, float] = {}
        self._calls: dict[int, Work] = {}
        self._began: dict[int, float] = {}
        self.opened = clock()
        self.lives: list[BilledLife] = []
        self.works: list[Work] = []
        self.first: FirstResult | None = None
        self.closed = False

    def follow(self, facts: ProviderFacts) -> None:
        """Follow the machines of one provider more, which bills like this."""
        self._facts[facts.name] = facts

    def tariff(self, provider: str, rate: float | None, on_demand: float | None) -> Tariff:
        """Return how a provider bills a machine of these rates, in USD an hour."""
        facts = self._facts.get(provider)
        return Tariff(
            hourly_rate=rate or 0.0,
            on_demand_rate=on_demand,
            granularity_s=(facts.billing_granularity_s or 0.0) if facts is not None else 0.0,
            minimum_s=facts.minimum_billed_s if facts is not None else 0.0,
        )

    def orphaned(self, machine: Instance, rate: float | None) -> None:
        """
        Count an orphan, from its launch on; harmless if it is counted already.

        Args:
            machine: The machine, as it is listed.
            rate: What it was asked for at, in USD an hour, where the list does not say.
        """
        name = machine.provider, machine.id
        if name in self._at or self.closed:
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
                launched=max(self.opened, now - there),
                tariff=self.tariff(
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
        if note is not None and not self.closed:
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
        if self.first is None:
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
        if self.first is None:
            began = self._began.pop(call)
            if good:
                life, asked = self.lives[work.place], self._asked.get(self.lives[work.place].node)
                self.first = first_result_of(life, opened=self.opened, asked=asked, began=began, now=self._clock())
                self._began.clear()

    def _change(self, name: Machine | None, **changes: Any) -> bool:
        place = None if name is None else self._at.get(name)
        if place is None:
            return False
        self.lives[place] = evolve(self.lives[place], **changes)
        return True

    def _requested(self, event: events.InstanceRequested) -> None:
        self._asked.setdefault(event.node, self._clock())

    def _launched(self, event: events.InstanceLaunched) -> None:
        info = event.instance
        # One that a lost answer had made an orphan may be a node's after all.
        self._orphans.discard((event.provider, event.instance_id))
        place = self._at.get((event.provider, event.instance_id))
        if place is not None and self.lives[place].ended is None:
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
                tariff=self.tariff(event.provider, rate, event.price_on_demand),
            )
        )

    def _add(self, life: BilledLife) -> None:
        name = life.provider, life.instance_id
        self._at[name] = len(self.lives)
        self.works.append(Work(len(self.works)))
        self.lives.append(life)
        self._changed(name)

    def _provisioned(self, event: events.InstanceProvisioned) -> None:
        self._change((event.provider, event.instance_id), reachable=self._clock())

    def _bootstrapped(self, event: events.InstanceBootstrapped) -> None:
        self._change(_machine(event), bootstrapped=self._clock())

    def _is_ready(self, event: events.NodeReady) -> None:
        name = _machine(event)
        if name is not None and self._change(name, ready=self._clock()):
            self._at_work[event.node] = self.works[self._at[name]]

    def _stopping(self, event: events.InstanceStopping) -> None:
        now, name = self._clock(), _machine(event)
        if name is not None and self._change(name, stopping=now, reason=event.reason):
            work = self.works[self._at[name]]
            work.end(now)
            if event.node is not None and self._at_work.get(event.node) is work:
                del self._at_work[event.node]

    def _destroyed(self, event: events.InstanceDestroyed | events.InstanceLingers) -> None:
        # What it costs while it waits for the next pool is said apart.
        name, lingers = _machine(event), getattr(event, "seconds", 0.0)
        if name is not None and self._change(name, ended=self._clock(), lingers=lingers):
            self._changed(name)

    def _changed(self, name: Machine) -> None:
        if self.lives[self._at[name]].billed:
            self._on_change()


def _machine(event: events.SkywardEvent) -> Machine | None:
    """Return which machine an event is about; None if it is about none."""
    return None if event.instance is None else (event.instance.provider, event.instance.id)


_NOTES: Mapping[type[events.SkywardEvent], Callable[[BilledLives, Any], None]] = {
    events.InstanceRequested: BilledLives._requested,
    events.InstanceLaunched: BilledLives._launched,
    events.InstanceProvisioned: BilledLives._provisioned,
    events.InstanceBootstrapped: BilledLives._bootstrapped,
    events.NodeReady: BilledLives._is_ready,
    events.InstanceStopping: BilledLives._stopping,
    events.InstanceDestroyed: BilledLives._destroyed,
    events.InstanceLingers: BilledLives._destroyed,
}
