"""No call is lost, doubled or overtaken by what came behind a group."""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from skyward.plan.pool.lanes import (
    AHEAD_BYTES,
    AHEAD_CALLS,
    AHEAD_SECONDS,
    CALL_COST,
    LEAST_AWAY,
    MARGIN,
    LaneKey,
    Node,
    Recall,
)
from skyward.plan.pool.scheduling import Scheduler


def _scheduler(nodes: int = 1, *, capacity: int = 1, buffer: int = 0) -> Scheduler:
    scheduler = Scheduler(buffer)
    for node in range(nodes):
        scheduler.add_node(node, [(0, 0, capacity)])
    return scheduler


def _most(away: float, seconds: float) -> int:
    """Count the calls of so many seconds that are sent ahead over such a distance."""
    return math.ceil((MARGIN * away + AHEAD_SECONDS) / seconds)


def _far(away: float, seconds: float, *, size: int = 0) -> Scheduler:
    """Make one slot that was seen to be away for so long, and calls that take so long."""
    scheduler = _scheduler()
    for call in range(400):
        scheduler.submit(call, b"f", size=size)
    scheduler.assign(now=10.0 - away - seconds)
    scheduler.finished(0, seconds, now=10.0)
    return scheduler


def _placed(scheduler: Scheduler) -> list[tuple[int, int, bool]]:
    return [(made.call, made.key.node, made.begins) for made in scheduler.assign(now=10.0)]


def test_calls_take_turns_over_nodes() -> None:
    """Round robin among free slots, node by node."""
    scheduler = _scheduler(3, capacity=2)
    for call in range(6):
        scheduler.submit(call, b"f")
    assert [node for _, node, _ in _placed(scheduler)] == [0, 1, 2, 0, 1, 2]


def test_call_waits_for_a_slot() -> None:
    """And gets the one that becomes free."""
    scheduler = _scheduler()
    scheduler.submit(1, b"f")
    scheduler.submit(2, b"f")
    assert _placed(scheduler) == [(1, 0, True)]
    scheduler.finished(1, 1.0)
    assert _placed(scheduler) == [(2, 0, True)]


def test_short_calls_are_sent_ahead() -> None:
    """As soon as it is known that they are short, and never more than a limit."""
    scheduler = _scheduler()
    for call in range(200):
        scheduler.submit(call, b"f")
    assert len(_placed(scheduler)) == 1
    scheduler.finished(0, 0.00001)
    placed = _placed(scheduler)
    assert [begins for _, _, begins in placed] == [True] + [False] * _most(LEAST_AWAY, CALL_COST)
    assert scheduler.finished(1, 0.00001) == 2


@pytest.mark.parametrize("away", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("seconds", [0.002, 0.01, 0.1])
def test_as_many_are_sent_ahead_as_the_slot_runs_in_the_time_that_it_is_away(away: float, seconds: float) -> None:
    """Twice that, as calls differ; nothing has to be set."""
    scheduler = _far(away, seconds)
    placed = _placed(scheduler)
    assert [begins for _, _, begins in placed] == [True] + [False] * _most(away, seconds)


def test_nothing_is_sent_ahead_to_a_slot_that_would_hardly_be_idle_without() -> None:
    """A call of ten seconds that is 50 ms away: it would rather begin where a slot is free first."""
    assert [begins for _, _, begins in _placed(_far(0.05, 10.0))] == [True]


def test_what_is_sent_ahead_is_bounded_in_bytes() -> None:
    """But for one call of any size."""
    scheduler = _far(0.5, 0.01, size=AHEAD_BYTES // 4)
    assert [begins for _, _, begins in _placed(scheduler)] == [True] + [False] * 4
    scheduler = _far(0.5, 0.01, size=AHEAD_BYTES * 4)
    assert [begins for _, _, begins in _placed(scheduler)] == [True, False]


def test_what_is_sent_ahead_is_bounded_in_calls() -> None:
    """A node that says that its calls take no time, and answers after ten seconds, gets no more than any may."""
    scheduler = _scheduler()
    for call in range(3 * AHEAD_CALLS):
        scheduler.submit(call, b"f")
    scheduler.assign(now=1.0)
    scheduler.finished(0, 0.0, now=11.0)
    assert len(_placed(scheduler)) == 1 + AHEAD_CALLS
    scheduler.finished(1, 0.0, now=21.0)
    _placed(scheduler)
    assert scheduler.running <= 1 + AHEAD_CALLS


def test_a_call_that_had_to_wait_says_nothing_of_the_distance() -> None:
    """And of those that had not, the least of the latest counts."""
    scheduler = _far(0.05, 0.01)
    _placed(scheduler)
    scheduler.finished(1, 0.01, now=100.0)
    scheduler.finished(2, 0.01, now=200.0)
    assert scheduler.away(0) == pytest.approx(0.05)


def test_the_least_distance_of_ten_seconds_counts_and_that_of_the_latest_eight_measurements() -> None:
    """Many calls in turn may have waited for a processor; a line that has become longer is noticed after a while."""
    node = Node(0, [(0, 0, 1)])
    node.measured(0.001, 0.0)
    for number in range(100):
        node.measured(0.004, number * 0.1)
    assert node.away == 0.001
    node.measured(0.004, 10.1)
    assert node.away == 0.004
    node.measured(0.002, 100.0)
    for number in range(7):
        node.measured(0.005, 200.0 + 100 * number)
    assert node.away == 0.002
    node.measured(0.005, 1000.0)
    assert node.away == 0.005


@pytest.mark.parametrize("single", ["another caller's", "one for a node"])
def test_a_call_beside_a_long_map_takes_its_turn(single: str) -> None:
    """It is the next that is placed, and does not wait for what its neighbour queued before."""
    scheduler = _scheduler(2)
    for call in range(8000):
        scheduler.submit(call, b"f", caller=1)
    _placed(scheduler)
    scheduler.submit(9000, b"g", caller=2, node=None if single == "another caller's" else 0)
    scheduler.finished(0, 1.0)
    assert _placed(scheduler) == [(9000, 0, True)]
    scheduler.submit(9001, b"g", caller=2, node=None if single == "another caller's" else 0)
    scheduler.finished(9000, 1.0)
    [(first, _, _)] = _placed(scheduler)
    scheduler.finished(first, 1.0)
    [(second, _, _)] = _placed(scheduler)
    assert {first, second} == {2, 9001}


def test_a_lane_gives_back_what_would_begin_later_there_than_elsewhere() -> None:
    """Only then, and it keeps what begins before it could be back."""
    scheduler = _far(0.05, 0.01)
    _placed(scheduler)
    assert scheduler.recalls(10.06) == []
    scheduler.withdraw(*range(2, 400))
    scheduler.add_node(1, [(0, 0, 1)])
    [recall] = scheduler.recalls(10.06)
    assert (recall.key, 0 < recall.keep <= 10) == (LaneKey(0, 0), True)
    # It was asked, and is not asked again until it has answered.
    assert scheduler.recalls(10.07) == []
    scheduler.recalled(recall.key)
    assert [key for key, _ in scheduler.recalls(10.08)] == [LaneKey(0, 0)]


def test_a_lane_that_takes_much_longer_than_expected_gives_back_what_waits_there() -> None:
    """Although no slot is free: its neighbours get on. It gets nothing until it answers."""
    scheduler = _far(0.05, 0.01)
    _placed(scheduler)
    assert scheduler.recalls(10.2) == []
    assert scheduler.recalls(15.0) == [Recall(LaneKey(0, 0), 0)]
    for call in range(2, 13):
        scheduler.finished(call, now=15.1)
        scheduler.submit(call, b"f", first=True)
    scheduler.recalled(LaneKey(0, 0))
    assert _placed(scheduler) == []
    scheduler.finished(1, 5.0, now=15.2)
    assert [begins for _, _, begins in _placed(scheduler)][:1] == [True]


def test_a_node_that_is_set_aside_keeps_its_calls_and_gets_no_others() -> None:
    """Its number goes to another; what was sent ahead may still begin, or come back."""
    scheduler = _scheduler(buffer=2)
    for call in (1, 2, 3):
        scheduler.submit(call, b"f")
    assert _placed(scheduler) == [(1, 0, True), (2, 0, False), (3, 0, False)]
    assert scheduler.set_aside(0, -1) == [1, 2, 3]
    scheduler.submit(4, b"f", node=0)
    assert _placed(scheduler) == []
    scheduler.add_node(0, [(0, 0, 1)])
    assert _placed(scheduler) == [(4, 0, True)]
    assert scheduler.finished(3) is None
    assert scheduler.finished(1, 1.0) == 2
    assert scheduler.finished(2, 1.0) is None
    assert (scheduler.busy(-1), scheduler.busy(0)) == (0, 1)
    assert scheduler.remove_node(-1) == []
    scheduler.finished(4, 1.0)
    scheduler.submit(5, b"f")
    assert _placed(scheduler) == [(5, 0, True)]


def test_a_node_that_was_set_aside_and_is_gone_takes_nothing_of_its_successor_along() -> None:
    """The slots of the node in its place still count, and what waits in its lanes is given back."""
    scheduler = _scheduler(2, buffer=1)
    scheduler.set_aside(0, -1)
    scheduler.add_node(0, [(0, 0, 1)])
    scheduler.remove_node(-1)
    assert scheduler.slots == 2
    for call in range(2):
        scheduler.submit(call, b"f")
    _placed(scheduler)
    for call in range(2):
        scheduler.finished(call, 1.0)
    for call in range(10, 14):
        scheduler.submit(call, b"f")
    at_zero = {call for call, node, _ in _placed(scheduler) if node == 0}
    for call in {10, 11, 12, 13} - at_zero:
        scheduler.finished(call, 1.0)
    assert scheduler.ahead == 1
    assert [key for key, _ in scheduler.recalls(10.0)] == [(0, 0)]


def test_calls_that_wait_for_a_node_can_be_found() -> None:
    """Those of a group apart from those that were sent to it by name."""
    scheduler = _scheduler(2)
    for call in (1, 2):
        scheduler.submit(call, b"f")
    _placed(scheduler)
    scheduler.submit(3, b"f", node=1)
    scheduler.submit_group([(4, 0, 0), (5, 1, 0)])
    assert (scheduler.groups_for(1), scheduler.pinned_to(1)) == ({5}, [3])
    assert (scheduler.groups_for(0), scheduler.pinned_to(0)) == ({4}, [])


def test_long_calls_are_not_sent_ahead() -> None:
    """They would wait behind each other while another slot is free."""
    scheduler = _scheduler()
    for call in range(3):
        scheduler.submit(call, b"f")
    _placed(scheduler)
    scheduler.finished(0, 0.5)
    assert _placed(scheduler) == [(1, 0, True)]


def test_buffer_is_always_sent_ahead() -> None:
    """The user asked for it."""
    scheduler = _scheduler(buffer=2)
    for call in range(5):
        scheduler.submit(call, b"f")
    assert [begins for _, _, begins in _placed(scheduler)] == [True, False, False]
    assert scheduler.finished(0, 0.5) == 1
    assert _placed(scheduler) == [(3, 0, False)]


@pytest.mark.parametrize("node", [None, 0])
def test_nothing_is_sent_ahead_to_a_process_that_runs_one_call(node: int | None) -> None:
    """However far away it is: the next call is for the process in its place."""
    scheduler = Scheduler(None)
    scheduler.add_node(0, [(0, 0, 1)])
    for call in range(5):
        scheduler.submit(call, b"f", node=node)
    assert [1, 1, 1] == [_run_one(scheduler, call) for call in range(3)]


def _run_one(scheduler: Scheduler, call: int) -> int:
    """Count the calls that are placed, and end one that is a second away."""
    placed = len(scheduler.assign(now=10.0 + 2 * call))
    scheduler.finished(call, 0.01, now=11.0 + 2 * call)
    return placed


def test_what_was_sent_ahead_is_stuck_when_another_slot_is_free() -> None:
    """It can be asked back, and goes where it can begin."""
    scheduler = _scheduler()
    for call in range(3):
        scheduler.submit(call, b"f")
    _placed(scheduler)
    scheduler.finished(0, 0.00001)
    _placed(scheduler)
    scheduler.add_node(1, [(0, 0, 1)])
    assert scheduler.recalls(10.5) == [Recall(LaneKey(0, 0), 0)]
    assert scheduler.finished(2) is None
    scheduler.submit(2, b"f", first=True)
    assert _placed(scheduler) == [(2, 1, True)]


def test_group_is_placed_as_a_whole_and_nothing_overtakes_it() -> None:
    """Two broadcasts, or one and queued calls, cannot wait for each other."""
    scheduler = _scheduler(2)
    scheduler.submit(1, b"f")
    scheduler.submit_group([(10, 0, 0), (11, 1, 0)])
    scheduler.submit(2, b"f")
    assert _placed(scheduler) == [(1, 0, True)]
    scheduler.finished(1, 1.0)
    assert _placed(scheduler) == [(10, 0, True), (11, 1, True)]
    scheduler.finished(11, 1.0)
    assert _placed(scheduler) == [(2, 1, True)]


def test_pinned_call_waits_for_its_node() -> None:
    """While others pass it."""
    scheduler = _scheduler(2)
    scheduler.submit(1, b"f", node=1)
    scheduler.submit(2, b"f", node=1)
    scheduler.submit(3, b"f")
    assert sorted(_placed(scheduler)) == [(1, 1, True), (3, 0, True)]
    scheduler.finished(1, 1.0)
    assert _placed(scheduler) == [(2, 1, True)]


def test_calls_of_a_lost_node_are_told() -> None:
    """Oldest first; the node's slots are gone."""
    scheduler = _scheduler(2)
    for call in range(4):
        scheduler.submit(call, b"f")
    _placed(scheduler)
    assert scheduler.remove_node(0) == [0]
    assert scheduler.slots == 1
    assert scheduler.finished(0, 1.0) is None


def test_withdrawn_calls_are_not_placed() -> None:
    """A group goes as a whole."""
    scheduler = _scheduler(2)
    scheduler.submit_group([(10, 0, 0), (11, 1, 0)])
    scheduler.submit(1, b"f")
    scheduler.submit(2, b"f", node=0)
    assert scheduler.withdraw(10, 2, 99) == {10, 11, 2}
    assert _placed(scheduler) == [(1, 0, True)]


def test_calls_of_a_group_are_given_up_together() -> None:
    """One of them is still wanted: all of them keep their place."""
    scheduler = _scheduler(2)
    for call in (1, 2):
        scheduler.submit(call, b"f")
    _placed(scheduler)
    scheduler.submit_group([(3, 0, 0), (4, 1, 0)])
    scheduler.submit(5, b"f")
    assert scheduler.give_up([3, 5], {3, 5}.__contains__) == [5]
    assert scheduler.give_up([4], {3, 4, 5}.__contains__) == [3, 4]
    assert scheduler.queued == 0


@pytest.mark.parametrize("where", ["behind all", "for one node", "in a group"])
def test_a_call_is_taken_out_of_a_long_queue_at_once(where: str) -> None:
    """However many wait: looking through all of them for each would take these 20,000 a quarter of a minute."""
    scheduler = _scheduler(2)
    calls = range(20_000)
    for call in calls:
        match where:
            case "behind all":
                scheduler.submit(call, b"f")
            case "for one node":
                scheduler.submit(call, b"f", node=1)
            case "in a group":
                scheduler.submit_group([(call, 0, 0), (call + len(calls), 1, 0)])
    began = time.thread_time()
    for call in reversed(calls):
        scheduler.give_up([call], lambda _: True)
    assert scheduler.queued == 0
    assert time.thread_time() - began < 2.0


def test_an_empty_queue_keeps_what_runs() -> None:
    """And takes new calls."""
    scheduler = _scheduler(2)
    scheduler.submit(1, b"f")
    _placed(scheduler)
    scheduler.submit(2, b"f", node=1)
    scheduler.submit(3, b"f")
    scheduler.submit_group([(4, 0, 0), (5, 1, 0)])
    scheduler.clear()
    assert (scheduler.queued, scheduler.running, scheduler.withdraw(2, 3, 4, 5)) == (0, 1, set())
    scheduler.submit(6, b"f", node=1)
    assert _placed(scheduler) == [(6, 1, True)]


class Model(RuleBasedStateMachine):
    """Compare the scheduler with sets of what is queued and what runs."""

    calls = Bundle("calls")

    def __init__(self) -> None:
        super().__init__()
        self.scheduler = Scheduler(1)
        self.number = 0
        self.nodes: set[int] = set()
        self.queued: set[int] = set()
        self.running: dict[int, LaneKey] = {}

    @rule(lanes=st.integers(1, 2), capacity=st.integers(1, 3))
    def add_node(self, lanes: int, capacity: int) -> None:
        node = next(index for index in range(100) if index not in self.nodes)
        self.nodes.add(node)
        self.scheduler.add_node(node, [(lane, lane, capacity) for lane in range(lanes)])
        self.assign()

    @rule(which=st.integers(0, 10))
    def remove_node(self, which: int) -> None:
        if not self.nodes:
            return
        node = sorted(self.nodes)[which % len(self.nodes)]
        self.nodes.remove(node)
        lost = self.scheduler.remove_node(node)
        assert set(lost) == {call for call, key in self.running.items() if key.node == node}
        for call in lost:
            del self.running[call]
            self.scheduler.submit(call, b"f", first=True)
            self.queued.add(call)
        self.assign()

    @rule(target=calls, function=st.sampled_from([b"f", b"g"]))
    def submit(self, function: bytes) -> int:
        self.number += 1
        self.queued.add(self.number)
        self.scheduler.submit(self.number, function)
        self.assign()
        return self.number

    @rule(call=consumes(calls), seconds=st.sampled_from([0.00001, 0.0005, 1.0]))
    def finish(self, call: int, seconds: float) -> None:
        if call in self.running:
            del self.running[call]
            follower = self.scheduler.finished(call, seconds)
            assert follower is None or follower in self.running
        elif call in self.queued:
            assert self.scheduler.withdraw(call) == {call}
            self.queued.remove(call)
        self.assign()

    def assign(self) -> None:
        for made in self.scheduler.assign():
            assert made.call in self.queued
            self.queued.remove(made.call)
            self.running[made.call] = made.key

    @invariant()
    def counts_agree(self) -> None:
        """Nothing is lost, and nothing is there twice."""
        assert self.scheduler.running == len(self.running)
        assert self.scheduler.queued == len(self.queued)
        assert all(key.node in self.nodes for key in self.running.values())

    @invariant()
    def no_slot_is_free_while_a_call_waits(self) -> None:
        """What waits could not have been placed."""
        assert not (self.queued and self.scheduler.slots > len(self.running))


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_all_calls_are_sent_ahead_of_a_client_that_leaves() -> None:
    """Also long ones, spread over the slots, and none is recalled; afterwards, as few as before."""
    scheduler = _scheduler(2)
    scheduler.durations.learn(b"f", 100.0)
    for call in range(40):
        scheduler.submit(call, b"f")
    assert len(_placed(scheduler)) == 2
    scheduler.send_ahead(AHEAD_CALLS, recall=False)
    sent = _placed(scheduler)
    assert scheduler.queued == 0
    assert {node: sum(at == node for _, at, _ in sent) for node in (0, 1)} == {0: 19, 1: 19}
    assert scheduler.recalls(now=1e6) == []
    scheduler.send_ahead(0, recall=True)
    scheduler.submit(99, b"f")
    assert _placed(scheduler) == []
    assert scheduler.recalls(now=1e6) != []
