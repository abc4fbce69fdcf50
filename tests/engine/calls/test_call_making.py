"""Calls are made in the user's thread: function and arguments pickled, limits of their own or the pool's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import skyward as sky
from skyward.engine.calls.call_making import CallMaker
from skyward.engine.calls.waiters import Waiter
from skyward.engine.events.trails import Trails
from skyward.link.payload import load


@sky.function
def add(x: int, y: int = 1) -> int:
    """Add."""
    return x + y


@sky.function(timeout=7.0, retries=2)
def limited(x: int) -> int:
    """Have limits."""
    return x


@sky.function
def total(numbers: Iterator[int]) -> int:
    """Take a stream."""
    return sum(numbers)


@sky.function
def count(n: int) -> Iterator[int]:
    """Give a stream."""
    yield from range(n)


class Shipping:
    """Count how often modules are sent."""

    def __init__(self) -> None:
        self.sent = 0

    def send_new(self) -> None:
        """Count."""
        self.sent += 1


def maker(**options: Any) -> tuple[CallMaker, Shipping]:
    """Make calls of a pool with some options."""
    shipping = Shipping()
    return CallMaker(shipping, sky.Options(**options), lambda call, send: None, Trails()), shipping  # type: ignore[arg-type]


def test_arguments_travel_as_they_are() -> None:
    """After the modules that they may need were sent."""
    make, shipping = maker()
    made = make.call(add(1, y=2), Waiter(), node=3, index=4)
    assert ((1,), {"y": 2}) == load(made.payload)
    assert ("add", 3, 4, 1) == (made.function.name, made.node, made.index, shipping.sent)


def test_a_function_is_captured_once() -> None:
    """Whichever thread calls it."""
    make, _ = maker()
    again = make.caller(add, Waiter())((5,), 0)
    assert make.call(add(1), Waiter()).function is make.call(add(2), Waiter()).function is again.function


@pytest.mark.parametrize("through", ["call", "caller"])
def test_limits_of_a_call_are_its_own_or_the_pool_s(through: str) -> None:
    """Timeout, retries, and how often it begins again after its node was lost."""
    make, _ = maker(default_compute_timeout=30.0, retry_on_interruption=5)

    def limits(function: Any) -> tuple[float, int, int]:
        made = make.call(function(1), Waiter()) if through == "call" else make.caller(function, Waiter())((1,), 0)
        return made.timeout, made.retries, made.interruptions

    assert [(30.0, 0, 5), (7.0, 2, 5)] == [limits(add), limits(limited)]


def test_a_call_without_any_limit_has_none() -> None:
    """Which is 0."""
    make, _ = maker()
    assert 0.0 == make.call(add(1), Waiter()).timeout


def test_streams_do_not_begin_again() -> None:
    """Items were given or taken already."""
    make, _ = maker()
    taking, giving = make.call(total([1, 2]), Waiter()), make.call(count(3), Waiter())
    assert (0, True) == (taking.interruptions, taking.feeder is not None)
    assert (0, True) == (giving.interruptions, giving.streams)


def test_what_takes_a_stream_wants_an_iterable() -> None:
    """The error names the parameter."""
    make, _ = maker()
    with pytest.raises(sky.UsageError, match=r"total\(numbers=\.\.\.\) takes an iterator, and got a int"):
        make.call(total(3), Waiter())  # type: ignore[arg-type]


def test_what_takes_a_stream_cannot_be_tried_again() -> None:
    """It can be consumed once."""
    make, _ = maker()
    with pytest.raises(sky.UsageError, match="can be consumed once: retries must be 0, not 1"):
        make.call(total(iter([1])).with_retries(1), Waiter())


def test_what_cannot_be_pickled_is_named() -> None:
    """With the parameter it is in."""
    make, _ = maker()
    with pytest.raises(sky.SerializationError, match="y"):
        make.call(add(1, y=(number for number in ())), Waiter())  # type: ignore[arg-type]
