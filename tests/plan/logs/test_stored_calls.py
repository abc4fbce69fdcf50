"""Calls are stored one by one as far as there is room, and counted beyond; failures have room of their own."""

from __future__ import annotations

from typing import Any

from skyward.plan.logs.log_format import CANCELLED, FAILED, OK
from skyward.plan.logs.stored_calls import BURST, RATE, Ended, StoredCalls

BITS = 48


def ended(number: int, at: float = 2.0, how: int = OK, *, again: bool = False, error: str | None = None) -> Ended:
    return (number, "f", 0, at - 0.5, at - 0.25, at, how, again, error)


def taken(batch: StoredCalls, now: float = 2.0) -> list[tuple[str, dict[str, Any]]]:
    return list(batch.take(now, 1000.0 + now, str.upper))


def test_calls_that_ended_well_share_a_line() -> None:
    """With their times in microseconds, and the names of their functions once."""
    batch = StoredCalls(BITS)
    batch.add([ended(5)], 2.0)
    batch.add([ended(6, how=CANCELLED)], 2.0)
    [(kind, facts)] = taken(batch, now=3.0)
    assert "calls" == kind
    times = (0, 0, 1_500_000, 250_000, 250_000)
    assert {"t": 1003.0, "fn": ["f"], "rows": [(5, 1, *times, OK), (6, 1, *times, CANCELLED)]} == facts
    assert [] == taken(batch)


def test_a_failure_has_a_line_with_its_error() -> None:
    """Cleared of secrets, with the attempt that it was."""
    batch = StoredCalls(BITS)
    batch.add([ended(5 | 2 << BITS, how=FAILED, again=True, error="a secret")], 2.0)
    [(kind, facts)] = taken(batch)
    assert "failed" == kind
    assert (5, 3, True, "A SECRET") == (facts["task"], facts["attempt"], facts["again"], facts["error"])


def test_a_call_that_never_began_only_waited() -> None:
    """It has no node either."""
    batch = StoredCalls(BITS)
    batch.add([(5, "f", -1, 1.0, 0.0, 2.0, CANCELLED, False, None)], 2.0)
    [(_, facts)] = taken(batch)
    assert [(5, 1, 0, -1, 1_000_000, 1_000_000, 0, CANCELLED)] == facts["rows"]


def test_what_is_too_much_is_counted() -> None:
    """By function and node, with the time that they took; no call is left out of both."""
    batch = StoredCalls(BITS)
    many = int(BURST) + 100
    for number in range(many):
        batch.add([ended(number)], 2.0)
    lines = dict(taken(batch))
    assert int(BURST) == len(lines["calls"]["rows"])
    assert (100, 0, 0) == tuple(lines["counted"][how] for how in ("ok", "failed", "cancelled"))
    assert 25.0 == lines["counted"]["seconds"]


def test_failures_have_room_of_their_own() -> None:
    """However many calls end well."""
    batch = StoredCalls(BITS)
    for number in range(int(BURST) + 100):
        batch.add([ended(number)], 2.0)
    batch.add([ended(7, how=FAILED, error="bad")], 2.0)
    assert "failed" in dict(taken(batch))


def test_room_comes_back_with_time() -> None:
    """So many a second."""
    batch = StoredCalls(BITS)
    for number in range(int(BURST)):
        batch.add([ended(number)], 2.0)
    taken(batch, now=2.0)
    for number in range(int(RATE) + 100):
        batch.add([ended(number, at=3.0)], 3.0)
    assert int(RATE) == len(dict(taken(batch, now=3.0))["calls"]["rows"])


def test_a_call_that_runs_for_long_is_told_once() -> None:
    """When it began, and not before it has run for a second."""
    batch = StoredCalls(BITS)
    running = {5: ("f", 1, 10.0)}
    batch.running(running, 10.5)
    assert [] == taken(batch, now=10.5)
    batch.running(running, 12.0)
    batch.running(running, 13.0)
    assert [("running", {"t": 1010.0, "task": 5, "attempt": 1, "fn": "f", "node": 1})] == taken(batch, now=13.0)
