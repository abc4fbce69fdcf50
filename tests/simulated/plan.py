"""What a scripted node makes of an attempt of a call, and a function whose real attempts do the same."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from enum import Enum
from typing import Any

from attrs import frozen

import skyward as sky

FOREVER = math.inf
"""Seconds of an attempt that only ends when it is stopped."""


class Ending(Enum):
    """How an attempt ends."""

    RETURNS = "returns"
    RAISES = "raises"
    DIES = "dies"
    """It takes its worker process along, with the other calls that run in it."""
    SPENT = "spent"
    """It has not begun, because its worker process has to be replaced first."""


@frozen(kw_only=True)
class Plan:
    """
    Say what becomes of one attempt.

    Args:
        seconds: How long it runs; `FOREVER` until it is stopped.
        ends: How it ends.
        value: What it returns, or raises.
        items: What it yields first, as fast as its window lets it.
        takes: How many items of its input stream it takes before it ends; None if it has no such stream.
        unwinds: Seconds that it goes on after it was cancelled.
    """

    seconds: float = 0.0
    ends: Ending = Ending.RETURNS
    value: Any = None
    items: tuple[Any, ...] = ()
    takes: float | None = None
    unwinds: float = 0.0


def returns(value: Any, seconds: float = 0.0) -> Plan:
    """Plan an attempt that returns."""
    return Plan(value=value, seconds=seconds)


def raises(error: Exception, seconds: float = 0.0) -> Plan:
    """Plan an attempt that raises."""
    return Plan(ends=Ending.RAISES, value=error, seconds=seconds)


def dies(seconds: float = 0.0) -> Plan:
    """Plan an attempt that takes its worker down."""
    return Plan(ends=Ending.DIES, seconds=seconds)


SPENT = Plan(ends=Ending.SPENT)
"""An attempt that finds its worker spent."""

HANGS = Plan(seconds=FOREVER)
"""An attempt that ends only when it is stopped."""


def plan_of(plans: tuple[Plan, ...], attempt: int) -> Plan:
    """
    Find the plan of an attempt: the last one holds for all that follow.

    >>> plan_of((returns(1), returns(2)), 3).value
    2
    """
    return plans[min(attempt, len(plans)) - 1]


def act(*plans: Plan) -> Any:
    """Carry the first plan out, on a real node."""
    plan = plans[0]
    time.sleep(min(plan.seconds, 3600.0))
    match plan.ends:
        case Ending.RAISES:
            raise plan.value
        case Ending.DIES:
            os._exit(1)
        case Ending.SPENT:
            raise sky.WorkerSpentError("The process is spent.")
    return plan.value


def act_and_yield(*plans: Plan) -> Iterator[Any]:
    """Yield the first plan's items, and carry the rest of it out."""
    yield from plans[0].items
    act(*plans)


def act_on_items(source: Iterator[Any], *plans: Plan) -> list[Any]:
    """Take as many items as the first plan says, and return them."""
    taken: list[Any] = []
    wanted = plans[0].takes or 0
    while len(taken) < wanted:
        try:
            taken.append(next(source))
        except StopIteration:
            break
    return taken
