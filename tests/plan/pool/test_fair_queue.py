"""Callers take turns, each in its own order, and nothing costs more because more waits."""

from __future__ import annotations

import time
from collections import deque

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from skyward.plan.pool.fair_queue import FairQueue


def test_a_caller_that_comes_late_has_the_next_turn() -> None:
    """The one that was alone until then had the latest."""
    queue = FairQueue[str]()
    for call in range(3):
        queue.push(call, "f", 1)
    queue.pop()
    queue.push(10, "f", 2)
    queue.push(11, "f", 2)
    assert [queue.pop()[0] for _ in range(4)] == [10, 1, 11, 2]


def test_a_call_that_comes_back_is_its_callers_first() -> None:
    """And takes no turn of another one."""
    queue = FairQueue[str]()
    for call, caller in [(1, 1), (2, 1), (3, 2)]:
        queue.push(call, "f", caller)
    queue.push(9, "f", 1, first=True)
    assert [queue.pop()[0] for _ in range(4)] == [9, 3, 1, 2]


def test_nothing_is_at_the_head_of_an_empty_queue() -> None:
    """And nothing is taken out of it."""
    queue = FairQueue[str]()
    assert (queue.head(), queue.remove(1), len(queue), 1 in queue) == (None, None, 0, False)


@pytest.mark.parametrize("callers", [1, 100, 50_000])
def test_every_operation_takes_constant_time(callers: int) -> None:
    """However many calls and callers wait: 50,000 of each operation would take hours otherwise."""
    queue = FairQueue[None]()
    began = time.thread_time()
    for call in range(100_000):
        queue.push(call, None, call % callers)
    for call in range(0, 100_000, 2):
        queue.remove(call)
    while queue.head() is not None:
        queue.pop()
    assert len(queue) == 0
    assert time.thread_time() - began < 3.0


class Model(RuleBasedStateMachine):
    """Compare the queue with one deque for each caller."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = FairQueue[int]()
        self.calls: dict[int, deque[int]] = {}
        self.number = 0
        self.waited: dict[int, int] = {}

    @rule(caller=st.integers(0, 4), first=st.booleans())
    def push(self, caller: int, first: bool) -> None:
        self.number += 1
        self.queue.push(self.number, self.number, caller, first=first)
        calls = self.calls.setdefault(caller, deque())
        (calls.appendleft if first else calls.append)(self.number)
        self.waited.setdefault(caller, 0)

    @rule()
    def pop(self) -> None:
        if not self.calls:
            assert self.queue.head() is None
            return
        head = self.queue.head()
        call, entry = self.queue.pop()
        assert head == (call, entry)
        caller = next(caller for caller, calls in self.calls.items() if calls[0] == call)
        self._took(caller, call)
        for other in self.calls:
            self.waited[other] = 0 if other == caller else self.waited[other] + 1
            # Each of five callers has its turn within so many.
            assert self.waited[other] <= 5

    @rule(which=st.integers(0, 1000))
    def remove(self, which: int) -> None:
        waiting = [call for calls in self.calls.values() for call in calls]
        if not waiting:
            return
        call = waiting[which % len(waiting)]
        assert self.queue.remove(call) == call
        self._took(next(caller for caller, calls in self.calls.items() if call in calls), call)

    def _took(self, caller: int, call: int) -> None:
        self.calls[caller].remove(call)
        if not self.calls[caller]:
            del self.calls[caller]
            self.waited.pop(caller)

    @invariant()
    def the_same_calls_wait(self) -> None:
        """Each caller's in its own order."""
        assert len(self.queue) == sum(map(len, self.calls.values()))
        assert sorted(self.queue.calls()) == sorted(call for calls in self.calls.values() for call in calls)


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
