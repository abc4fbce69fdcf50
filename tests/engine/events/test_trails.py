"""The trail of a call: where it was when, by the client's clock, for whatever follows the pool."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from skyward.engine.calls.answer import Answer
from skyward.engine.calls.call import Call
from skyward.engine.events.trails import Trails
from skyward.link.messages import Status
from skyward.model.events.follower import CallTimes, Follower


class Notes(Follower):
    """A follower that sends a text along and keeps what it is told."""

    def __init__(self, text: str = "") -> None:
        self.text = text
        self.begun: list[tuple[int, int, str]] = []
        self.calls: list[CallTimes] = []

    def submitted(self, function: str) -> str:
        return self.text and f"{self.text} of {function}"

    def started(self, attempt: int, node: int, carried: str) -> None:
        self.begun.append((attempt, node, carried))

    def ended(self, call: CallTimes) -> None:
        self.calls.append(call)


class Broken(Follower):
    """A follower that fails at everything."""

    def submitted(self, function: str) -> str:
        raise RuntimeError("submitted")

    def started(self, attempt: int, node: int, carried: str) -> None:
        raise RuntimeError("started")

    def ended(self, call: CallTimes) -> None:
        raise RuntimeError("ended")


def made(trails: Trails, number: int = 1) -> Call:
    """Return a call that is about to be queued."""
    call = SimpleNamespace(id=number, function=SimpleNamespace(name="train"), broadcast=0, lane=0)
    call.trail = trails.begin("train")
    return cast("Call", call)


def ended(trails: Trails, call: Call, **facts: Any) -> None:
    """End a call on node 0, well if nothing else is said."""
    again, delay = facts.pop("again", False), facts.pop("delay", 0.0)
    given = {"status": Status.OK, "payload": None, "text": b"", "node": 0, **facts}
    trails.ended(call, Answer(**given), again=again, delay=delay)


def ran(trails: Trails, call: Call) -> None:
    """Send a call to node 0, where it is its turn at once."""
    assert call.trail is not None
    call.trail.sent = time.monotonic()
    trails.started(call, 0)


def test_nothing_is_noted_where_nothing_follows() -> None:
    """A call has no trail then."""
    assert Trails().begin("train") is None


def test_a_call_is_told_with_its_times() -> None:
    """They are in order, and by the clock of the day."""
    trails, notes = Trails(), Notes()
    trails.add("notes", notes)
    before = time.time()
    call = made(trails)
    ran(trails, call)
    ended(trails, call, began=time.time(), seconds=0.0)
    (told,) = notes.calls
    times = [told.submitted, told.queued, told.sent, told.placed, told.began, told.ended, told.answered]
    assert sorted(times) == times  # type: ignore[type-var]
    assert before - 0.1 <= told.submitted <= told.answered <= time.time() + 0.1
    assert ("train", 1, 1, 0, None, False) == (
        told.function,
        told.task,
        told.attempt,
        told.node,
        told.failure,
        told.again,
    )


def test_a_nodes_clock_that_is_ahead_is_taken_back() -> None:
    """By what was measured when it was greeted, never beyond what the client saw."""
    trails, notes = Trails(), Notes()
    trails.add("notes", notes)
    trails.ahead[0] = 3600.0
    call = made(trails)
    ran(trails, call)
    ended(trails, call, began=time.time() + 3600.0, seconds=0.0)
    (told,) = notes.calls
    assert told.sent is not None
    assert told.began is not None
    assert told.sent <= told.began <= told.answered


def test_each_follower_sends_a_text_of_its_own() -> None:
    """And is told that one, at the start and at the end."""
    trails, first, second, silent = Trails(), Notes("a"), Notes("b"), Notes()
    for name, follower in (("first", first), ("second", second), ("silent", silent)):
        trails.add(name, follower)
    call = made(trails)
    assert call.trail is not None
    assert {"first": "a of train", "second": "b of train"} == call.trail.carried
    ran(trails, call)
    ended(trails, call)
    assert ["a of train", "b of train", ""] == [each.calls[0].carried for each in (first, second, silent)]
    assert [(1, 0, "b of train")] == second.begun


def test_calls_that_run_side_by_side_have_slots_of_their_own() -> None:
    """A slot that is free again is taken by the next call, the lowest first."""
    trails, notes = Trails(), Notes()
    trails.add("notes", notes)
    first, second, third = (made(trails, number) for number in (1, 2, 3))
    ran(trails, first)
    ran(trails, second)
    ended(trails, first)
    ran(trails, third)
    ended(trails, third)
    ended(trails, second)
    assert {1: 0, 3: 0, 2: 1} == {told.task: told.slot for told in notes.calls}


def test_a_call_that_was_sent_ahead_takes_the_slot_of_the_one_before() -> None:
    """Its turn comes when that one's result is there, and before that one is told to have ended."""
    trails, notes = Trails(), Notes()
    trails.add("notes", notes)
    first, second = made(trails, 1), made(trails, 2)
    ran(trails, first)
    assert first.trail is not None
    first.trail.vacate()
    ran(trails, second)
    ended(trails, first)
    ended(trails, second)
    assert [0, 0] == [told.slot for told in notes.calls]


def test_an_attempt_that_is_repeated_has_a_trail_of_its_own() -> None:
    """It begins when the next one is due, and carries the same."""
    trails, notes = Trails(), Notes("a")
    trails.add("notes", notes)
    call = made(trails)
    ran(trails, call)
    ended(trails, call, status=Status.CANCELLED, again=True, delay=5.0)
    call.id = 1 | 1 << 48
    assert call.trail is not None
    ran(trails, call)
    ended(trails, call)
    first, second = notes.calls
    assert (1, 1, True, "cancelled") == (first.task, first.attempt, first.again, first.failure)
    assert (1, 1 | 1 << 48, False, first.carried) == (second.task, second.attempt, second.again, second.carried)
    assert 4.9 < second.submitted - first.answered < 5.1


def test_a_call_that_never_ran_has_not_begun() -> None:
    """It was cancelled in the queue."""
    trails, notes = Trails(), Notes()
    trails.add("notes", notes)
    ended(trails, made(trails), status=Status.CANCELLED, node=None)
    (told,) = notes.calls
    assert (None, None, None, None, True) == (told.sent, told.began, told.ended, told.node, told.stopped)


def test_a_follower_that_fails_harms_neither_calls_nor_others(caplog: pytest.LogCaptureFixture) -> None:
    """It is said once."""
    trails, notes = Trails(), Notes()
    trails.add("broken", Broken())
    trails.add("notes", notes)
    for number in (1, 2):
        call = made(trails, number)
        ran(trails, call)
        ended(trails, call)
    assert 2 == len(notes.calls)
    assert ["follower.failed plugin=broken method=submitted: said once"] == caplog.messages


def test_what_follows_no_more_is_told_nothing() -> None:
    """Calls under way go on without it."""
    trails, notes = Trails(), Notes()
    trails.add("notes", notes)
    call = made(trails)
    trails.remove(notes)
    ran(trails, call)
    ended(trails, call)
    assert [] == notes.calls
