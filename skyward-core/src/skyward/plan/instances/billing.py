"""
What machines cost: how long each is billed, what that comes to, and whether a budget allows it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

from attrs import frozen

from skyward.errors import BudgetExceededError
from skyward.model.instances.cost_report import Cost, FirstResult, NodeReceipt, Receipt, money
from skyward.plan.instances.lingering import linger_cost

__all__ = [
    "ENDING_S",
    "BilledLife",
    "Tariff",
    "billed_seconds",
    "check_launch",
    "check_running",
    "committed",
    "cost_at",
    "first_result_of",
    "highest_rate",
    "receipt_of",
]

ENDING_S = 30.0
"""Seconds that ending a machine is taken to last: what a budget keeps back for it."""

_HOUR = 3600.0
_PHASES: Sequence[str] = ("offers", "launch", "boot", "bootstrap", "agent", "waiting", "first_call")
# Of a granule: what a float may be off by, so that 60.0000000001 s are one minute.
_SLACK = 1e-9


@frozen(kw_only=True)
class Tariff:
    """
    Say what a machine is billed by.

    Args:
        hourly_rate: In USD; 0 where nothing is billed.
        on_demand_rate: What it would cost on demand, in USD an hour; None where that is not known.
        granularity_s: Seconds that are billed as a whole once they begin; 0 bills to the moment.
        minimum_s: Seconds that are billed at least.
    """

    hourly_rate: float = 0.0
    on_demand_rate: float | None = None
    granularity_s: float = 0.0
    minimum_s: float = 0.0

    def price(self, seconds: float) -> float:
        """
        Return what so many seconds cost.

        >>> Tariff(hourly_rate=3.6, granularity_s=1, minimum_s=60).price(10)
        0.06
        """
        return self.hourly_rate * billed_seconds(seconds, self.granularity_s, self.minimum_s) / _HOUR

    def saving(self, seconds: float) -> float:
        """Return how much less so many seconds cost than on demand."""
        if self.on_demand_rate is None:
            return 0.0
        billed = billed_seconds(seconds, self.granularity_s, self.minimum_s)
        return (self.on_demand_rate - self.hourly_rate) * billed / _HOUR


@frozen(kw_only=True)
class BilledLife:
    """
    Say when a machine came and went; moments are those of one monotonic clock, None until they come.

    Args:
        node: Index of the node it was rented for.
        instance_id: The provider's name for it.
        launched: When the launch was answered; it is billed from then.
        reachable: When it could be dialled.
        bootstrapped: When its environment was made.
        ready: When it took calls.
        stopping: When its termination was asked for.
        ended: When the provider confirmed its end; it is billed until then.
        computed: Seconds in which at least one call ran on it.
        lingers: Seconds for which it waits for the next pool, from its end in this one.
        reason: Why its termination was asked for.
    """

    node: int
    instance_id: str
    launched: float
    tariff: Tariff = Tariff()
    provider: str = ""
    instance_type: str | None = None
    accelerator: str | None = None
    spot: bool = False
    reachable: float | None = None
    bootstrapped: float | None = None
    ready: float | None = None
    stopping: float | None = None
    ended: float | None = None
    computed: float = 0.0
    lingers: float = 0.0
    reason: str = ""

    @property
    def billed(self) -> bool:
        """Return whether it costs anything."""
        return self.tariff.hourly_rate > 0

    def seconds(self, now: float) -> float:
        """Return how long it has been there."""
        return max(0.0, (now if self.ended is None else min(now, self.ended)) - self.launched)

    def cost(self, now: float) -> float:
        """Return what it has cost."""
        return self.tariff.price(self.seconds(now)) if self.billed else 0.0


def billed_seconds(seconds: float, granularity_s: float, minimum_s: float = 0.0) -> float:
    """
    Return how many seconds a cloud bills for.

    Args:
        seconds: How long the machine was there.
        granularity_s: Seconds that are billed as a whole once they begin; 0 bills to the moment.
        minimum_s: Seconds that are billed at least.

    >>> billed_seconds(61.2, 1, 60), billed_seconds(10, 1, 60), billed_seconds(3601, 3600)
    (62, 60, 7200)
    """
    lasted = max(seconds, minimum_s, 0.0)
    if granularity_s <= 0:
        return lasted
    # Each machine that is rented pays for the first granule.
    return max(1, math.ceil(lasted / granularity_s - _SLACK)) * granularity_s


def cost_at(lives: Sequence[BilledLife], now: float) -> Cost:
    """
    Return what machines have cost.

    Args:
        lives: The machines, those that ended too.
        now: The moment.

    >>> life = BilledLife(node=0, instance_id="a", launched=0.0, tariff=Tariff(hourly_rate=3.6, granularity_s=1))
    >>> cost_at([life], 999.5).accumulated
    1.0
    """
    billed = [life for life in lives if life.billed]
    running = [life for life in billed if life.ended is None or life.ended > now]
    began = min((life.launched for life in billed), default=now)
    last = now if running else max((life.ended or now for life in billed), default=now)
    return Cost(
        accumulated=sum(life.cost(now) for life in billed),
        hourly_rate=sum(life.tariff.hourly_rate for life in running),
        savings=sum(life.tariff.saving(life.seconds(now)) for life in billed),
        spot_count=sum(life.spot for life in running),
        ondemand_count=sum(not life.spot for life in running),
        seconds=max(0.0, last - began),
    )


def committed(lives: Iterable[BilledLife], now: float, ending_s: float = ENDING_S) -> float:
    """
    Return what machines will have cost if all of them are terminated now.

    Args:
        lives: The machines, those that ended too.
        now: The moment.
        ending_s: How long ending one takes.
    """
    return sum(life.cost(now + ending_s) for life in lives)


def check_launch(
    lives: Iterable[BilledLife],
    tariff: Tariff,
    count: int,
    *,
    budget: float,
    now: float,
    reserved: float = 0.0,
    pool: str,
) -> float:
    """
    Return what machines will cost at least once they are rented.

    Args:
        lives: The machines there are, those that ended too.
        tariff: What the new ones are billed by.
        count: How many they are.
        budget: What the pool may cost.
        now: The moment.
        reserved: What others that are being rented will cost at least.
        pool: The pool's name.

    Raises:
        BudgetExceededError: If renting them and terminating all at once would use the budget up.
    """
    least = count * tariff.price(ENDING_S)
    owed = committed(lives, now) + reserved
    if owed + least < budget:
        return least
    machines = f"{count} machine{'' if count == 1 else 's'} at {money(tariff.hourly_rate)} an hour"
    before = f", with {money(owed)} owed for others" if owed else ""
    raise BudgetExceededError(
        f"Pool {pool!r} rents no more: {machines} cost at least {money(least)} by the time they are terminated"
        f"{before}, and the budget is {money(budget)}.",
        pool=pool,
        budget=budget,
        cost=owed + least,
        hint="Raise budget=, ask for fewer nodes, or for cheaper ones.",
    )


def check_running(lives: Sequence[BilledLife], *, budget: float, now: float, within: float, pool: str) -> None:
    """
    Refuse to go on when what is owed reaches the budget before it is looked at again.

    Args:
        lives: The machines, those that ended too.
        budget: What the pool may cost.
        now: The moment.
        within: Seconds until this is looked at again.
        pool: The pool's name.

    Raises:
        BudgetExceededError: If it does.
    """
    # Those that are being terminated have been stopped already.
    running = any(life.billed and life.stopping is None and life.ended is None for life in lives)
    owed = committed(lives, now + within)
    if not running or owed < budget:
        return
    so_far = sum(life.cost(now) for life in lives)
    raise BudgetExceededError(
        f"Pool {pool!r} was stopped: it has cost {money(so_far)}, which ending its machines may raise to "
        f"{money(owed)}, and its budget is {money(budget)}.",
        pool=pool,
        budget=budget,
        cost=so_far,
        hint="Raise budget=, or let the pool do less.",
    )


def highest_rate(lives: Iterable[BilledLife]) -> float:
    """
    Return the most that an hour of the pool cost at any moment, in USD.

    >>> tariff = Tariff(hourly_rate=2.0)
    >>> first = BilledLife(node=0, instance_id="a", launched=0.0, ended=5.0, tariff=tariff)
    >>> highest_rate([first, BilledLife(node=0, instance_id="b", launched=5.0, tariff=tariff)])
    2.0
    """
    changes = []
    for life in lives:
        changes.append((life.launched, life.tariff.hourly_rate))
        if life.ended is not None:
            changes.append((life.ended, -life.tariff.hourly_rate))
    # What ends in the same moment as another begins ends first.
    rate = highest = 0.0
    for _, change in sorted(changes):
        rate += change
        highest = max(highest, rate)
    return highest


def receipt_of(
    lives: Sequence[BilledLife], now: float, *, planned_s: float | None = None, first_result: FirstResult | None = None
) -> Receipt:
    """
    Return where time and money went.

    Args:
        lives: The machines, in the order of their launch.
        now: The moment; what has no end yet is counted until then.
        planned_s: How long each was to live, if anything said so.
        first_result: What the time until the first result went into.
    """
    cost = cost_at(lives, now)
    began = min((life.launched for life in lives), default=now)
    ended = max((life.launched + life.seconds(now) for life in lives), default=now)
    places = {life.node: life for life in reversed(lives)}
    foreseen = None if planned_s is None else sum(life.tariff.price(planned_s) for life in places.values())
    return Receipt(
        nodes=tuple(_node_receipt(life, now) for life in lives),
        total_cost=cost.accumulated,
        savings=cost.savings,
        seconds=ended - began,
        foreseen=foreseen,
        first_result=first_result,
        lingering=sum(life.lingers > 0 for life in lives),
        linger_s=max((life.lingers for life in lives), default=0.0),
        linger_cost=sum(linger_cost(life.tariff.hourly_rate, life.lingers) for life in lives),
    )


def first_result_of(life: BilledLife, *, opened: float, asked: float | None, began: float, now: float) -> FirstResult:
    """
    Return what the time until the first result went into.

    Args:
        life: The machine that gave it.
        opened: When the pool was opened.
        asked: When the machine was asked for; None if that was not reported.
        began: When the call began there.
        now: The moment of the result.
    """
    moments = [opened]
    for moment in (asked, life.launched, life.reachable, life.bootstrapped, life.ready, began, now):
        # One that was not reported is that of the one before.
        moments.append(moments[-1] if moment is None else max(moment, moments[-1]))
    return FirstResult(
        **{phase: after - before for phase, (before, after) in zip(_PHASES, pairwise(moments), strict=True)}
    )


def _node_receipt(life: BilledLife, now: float) -> NodeReceipt:
    """Split a machine's time by what it was about; a moment that never came is that of the next phase."""
    end = life.launched + life.seconds(now)
    stop = end if life.stopping is None else min(life.stopping, end)
    ready = stop if life.ready is None else min(life.ready, stop)
    reachable = ready if life.reachable is None else min(life.reachable, ready)
    computing = min(life.computed, stop - ready)
    seconds = end - life.launched
    tariff = life.tariff
    return NodeReceipt(
        node=life.node,
        instance_id=life.instance_id,
        provider=life.provider,
        instance_type=life.instance_type,
        accelerator=life.accelerator,
        spot=life.spot,
        hourly_rate=tariff.hourly_rate,
        seconds=seconds,
        billed_seconds=billed_seconds(seconds, tariff.granularity_s, tariff.minimum_s) if life.billed else 0.0,
        booting=reachable - life.launched,
        preparing=ready - reachable,
        computing=computing,
        idle=stop - ready - computing,
        ending=end - stop,
        cost=life.cost(now),
        ended=life.ended is not None,
        reason=life.reason,
    )
