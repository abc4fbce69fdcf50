"""What becomes of calls whose nodes are lost, cut off, or leave; on virtual time."""

from __future__ import annotations

import pytest

from tests.simulated.plan import HANGS, raises, returns
from tests.simulated.stage import Stage

WRONG = raises(ValueError("wrong"), 1.0)


@pytest.mark.parametrize(("interruptions", "expected"), [(0, "NodeLostError"), (1, "NodeLostError"), (2, "good")])
def test_losses_of_nodes_have_a_budget_of_their_own(interruptions: int, expected: str) -> None:
    """Retries are for what the function did, and cost nothing here."""
    with Stage([1], [1], [1]) as stage:
        call = stage.send(HANGS, HANGS, returns("good"), retries=9, interruptions=interruptions)
        for _ in range(2):
            stage.run(1.0)
            [busy] = [node for node in stage.nodes.values() if node.running] or [None]
            if busy is not None:
                busy.lose()
        stage.run()
        assert expected == call.sink.outcome
        assert 9 == call.retries


def test_failures_after_a_loss_still_have_their_retries() -> None:
    """One of each is three attempts."""
    with Stage([1], [1]) as stage:
        call = stage.send(HANGS, WRONG, returns("good"), retries=1, interruptions=1)
        stage.run(1.0)
        stage.nodes[0].lose()
        stage.run()
        assert "good" == call.sink.outcome


def test_a_lost_node_is_named_with_its_reason() -> None:
    """And how it was lost."""
    with Stage([1]) as stage:
        call = stage.send(HANGS)
        stage.run(1.0)
        stage.nodes[0].lose("the cloud took it back")
        with pytest.raises(Exception, match=r"act\(\) on node 0 \(cloud i-0\) was lost: the cloud took it back"):
            call.sink.answers[0].value()


def test_calls_wait_for_the_node_that_takes_a_lost_ones_place() -> None:
    """As many as it had, and those that were sent ahead to it; none is counted as begun twice there."""
    with Stage([2], buffer=1) as stage:
        calls = [stage.send(returns(number, 1.0), interruptions=1) for number in range(6)]
        stage.run(0.5)
        stage.nodes[0].lose()
        stage.run(1.0)
        assert 6 == stage.dispatch.queued
        stage.add([2], index=0)
        stage.run()
        assert list(range(6)) == [call.sink.outcome for call in calls]


def test_the_loss_of_a_node_costs_calls_on_others_nothing() -> None:
    """Nor those that wait."""
    with Stage([1], [1]) as stage:
        calls = [stage.send(returns("good", 2.0), node=node) for node in (0, 1, 1)]
        stage.run(1.0)
        stage.nodes[0].lose()
        stage.run()
        assert ["NodeLostError", "good", "good"] == [call.sink.outcome for call in calls]


def test_results_that_were_rescued_count() -> None:
    """What a node finished before it was lost is not done again."""
    with Stage([2]) as stage:
        done, lost = stage.send(returns("done", 1.0)), stage.send(HANGS)
        stage.run(0.5)
        stage.nodes[0].cut()
        stage.run(1.0)
        assert [] == done.sink.answers
        stage.nodes[0].lose(rescued=True)
        stage.run()
        assert ("done", "NodeLostError") == (done.sink.outcome, lost.sink.outcome)


def test_results_arrive_after_a_cut() -> None:
    """Calls run on meanwhile, and their time is theirs."""
    with Stage([1]) as stage:
        call = stage.send(returns("done", 1.0))
        stage.run(0.5)
        stage.nodes[0].cut()
        stage.run(30.0)
        stage.nodes[0].mend()
        stage.run()
        assert "done" == call.sink.outcome
        assert 1.0 == pytest.approx(call.sink.answers[0].seconds)


def test_results_that_arrive_twice_count_once() -> None:
    """Also those of an attempt after which another was begun."""
    with Stage([1], [1], twice=True) as stage:
        calls = [stage.send(WRONG, returns(number, 1.0), retries=1) for number in range(5)]
        stage.run()
        assert list(range(5)) == [call.sink.outcome for call in calls]
        assert (0, 0) == (stage.dispatch.running, stage.dispatch.queued)


def test_a_call_that_is_known_to_have_failed_is_not_undone_by_a_late_result() -> None:
    """What a lost node says belongs to no call."""
    with Stage([1]) as stage:
        call = stage.send(returns("late", 1.0))
        stage.run(0.5)
        late = stage.nodes[0].on_frame
        stage.dispatch.remove(0, "it was lost")
        stage.nodes[0].on_frame = late
        stage.run()
        assert ["NodeLostError"] == call.sink.outcomes


def test_a_node_that_leaves_ends_what_it_runs_and_begins_nothing() -> None:
    """What was sent ahead to it runs elsewhere; its place is free at once."""
    with Stage([1], [1], buffer=1) as stage:
        stage.outcome(returns(0), node=0)
        running = stage.send(returns("to its end", 5.0), node=0)
        ahead = stage.send(returns("elsewhere", 20.0), node=1), stage.send(returns("ahead"))
        stage.run(0.5)
        seat = stage.leave(0)
        assert not stage.dispatch.idle(seat)
        new = stage.add([1], index=0)
        there = stage.send(returns("in its place"), node=0)
        stage.run()
        assert ("to its end", "in its place") == (running.sink.outcome, there.sink.outcome)
        assert ["elsewhere", "ahead"] == [call.sink.outcome for call in ahead]
        assert stage.dispatch.idle(seat)
        assert new.begun


def test_calls_for_a_node_that_will_not_come_back_fail() -> None:
    """They would wait for ever; the others don't."""
    with Stage([1], [1]) as stage:
        running = [stage.send(HANGS, node=node) for node in (0, 1)]
        waiting = [stage.send(returns("there"), node=node) for node in (0, 1)]
        stage.run(1.0)
        stage.dispatch.cancel(running)
        stage.nodes[1].lose()
        stage.dispatch.forsake(1, "the pool was made smaller")
        stage.run()
        assert ["there", "NodeLostError"] == [call.sink.outcome for call in waiting]
