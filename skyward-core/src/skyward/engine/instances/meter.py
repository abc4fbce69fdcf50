"""Count what a pool costs while it lives, and stop it when its budget is used up."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from attrs import evolve

from skyward.engine.calls.answer import Answer
from skyward.engine.instances.billed_lives import BilledLives
from skyward.engine.pool.event_loop import engine_loop
from skyward.errors import BudgetExceededError
from skyward.link.messages import Status
from skyward.model.events import event as events
from skyward.model.instances.cost_report import Cost, Receipt
from skyward.model.instances.machine import ProviderFacts
from skyward.plan.instances.billing import (
    check_launch,
    check_running,
    committed,
    cost_at,
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
        self.bill = BilledLives(self._clock, self._changed)
        self._planned: float | None = None
        self._reserved: dict[object, float] = {}
        self._ticking = self._owing = False
        self._told = self.bill.opened - SPACING_S
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
        self.bill.follow(facts)
        self._planned = planned
        self._stop = stop
        self._publish = publish

    def cost(self) -> Cost:
        """Return what the pool has cost until now, or in all once it is closed."""
        return cost_at(tuple(self.bill.lives), self._now())

    def left(self) -> float | None:
        """Return what is left of the budget if all machines end now, in USD; None where there is no budget."""
        return None if self._budget is None else self._budget - committed(self.bill.lives, self._now())

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
            self.bill.lives,
            self.bill.tariff(provider, rate, None),
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
        self.bill.closed = True
        lives = [
            evolve(life, computed=work.until(now)) for life, work in zip(self.bill.lives, self.bill.works, strict=True)
        ]
        self.receipt = receipt_of(lives, now, planned_s=self._planned, first_result=self.bill.first)
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

    def _changed(self) -> None:
        """Publish the cost: at once, or with what changes soon after."""
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
        cost = cost_at(self.bill.lives, now)
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
        if self._ticking or not any(life.billed and life.ended is None for life in self.bill.lives):
            return
        self._ticking = True
        (self._later or engine_loop().loop.call_later)(UPDATE_S if self._budget is None else LOOK_S, self.tick)

    def _look(self, now: float) -> None:
        if self._budget is None:
            return
        try:
            check_running(self.bill.lives, budget=self._budget, now=now, within=LOOK_S, pool=self._pool)
        except BudgetExceededError as error:
            self.exceeded = error
            self._stop(error, self._answer(error))

    def _answer(self, error: BudgetExceededError) -> Answer:
        """Return what every call is answered with."""
        facts = {"error": "BudgetExceededError", "message": str(error), "budget": error.budget, "cost": error.cost}
        return Answer(
            Status.FAILED, None, json.dumps(facts).encode(), pool=self._pool, on_delivered=self._delivered.set
        )
