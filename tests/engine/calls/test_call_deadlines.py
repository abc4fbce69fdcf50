"""Calls that must begin, or be answered, by a time; on virtual time."""

from __future__ import annotations

import pytest

from skyward.errors import CallDeadlineError, QueueTimeoutError
from skyward.model.spec.retry_setting import Retry
from tests.simulated.plan import HANGS, raises, returns
from tests.simulated.stage import Stage

WRONG = raises(ValueError("wrong"), 1.0)


def test_a_call_that_does_not_begin_in_time_fails() -> None:
    """It never begins then; one that has begun may run on."""
    with Stage([1]) as stage:
        runs = stage.send(returns("ran", 50.0), queue_timeout=5.0)
        waits = stage.send(returns("late"), queue_timeout=5.0)
        stage.run()
        assert "ran" == runs.sink.outcome
        with pytest.raises(QueueTimeoutError, match=r"act\(\) did not begin: it waited for 5 s"):
            waits.sink.answers[0].value()
        assert 5.0 == pytest.approx(waits.sink.ends[0][1], abs=0.1)
        assert 1 == len(stage.nodes[0].begun)


def test_a_call_that_was_sent_ahead_has_not_begun() -> None:
    """It waits at the node for its slot."""
    with Stage([1], buffer=1) as stage:
        stage.outcome(returns(0))
        runs = stage.send(returns("ran", 20.0))
        waits = stage.send(returns("late"), queue_timeout=5.0)
        stage.run(1.0)
        assert 0 == waits.on
        stage.run()
        assert ("ran", "QueueTimeoutError") == (runs.sink.outcome, waits.sink.outcome)
        assert stage.dispatch.idle(0)


@pytest.mark.parametrize("nodes", [0, 1])
def test_a_call_is_answered_by_its_deadline(nodes: int) -> None:
    """Whether it runs or waits; where it ran, it is stopped."""
    with Stage(*[[1]] * nodes) as stage:
        call = stage.send(HANGS, deadline=5.0, retries=3)
        stage.run()
        with pytest.raises(CallDeadlineError, match=r"act\(\) was given up: it was not answered within 5 s"):
            call.sink.answers[0].value()
        assert 5.0 == pytest.approx(call.sink.ends[0][1], abs=0.1)
        assert (0, 0) == (stage.dispatch.running, stage.dispatch.queued)
        assert nodes == sum(len(node.cancelled) for node in stage.nodes.values())


def test_a_deadline_is_for_all_attempts() -> None:
    """Their time, and the pauses between them, add up."""
    with Stage([1]) as stage:
        call = stage.send(*[WRONG] * 10, deadline=3.5, retries=9)
        stage.run()
        assert "CallDeadlineError" == call.sink.outcome
        assert 4 == len(stage.nodes[0].begun)


def test_no_attempt_is_begun_that_cannot_end_before() -> None:
    """The failure is raised at once, and not after a pause that leads nowhere."""
    with Stage([1]) as stage:
        call = stage.send(WRONG, returns("late"), deadline=10.0, retries=Retry(3, delay=60, jitter=0))
        stage.run()
        assert "ValueError" == call.sink.outcome
        assert 1.0 == pytest.approx(call.sink.ends[0][1], abs=0.1)


def test_a_pause_that_ends_in_time_is_waited_for() -> None:
    """As without a deadline."""
    with Stage([1]) as stage:
        call = stage.send(WRONG, returns("good", 1.0), deadline=10.0, retries=Retry(3, delay=5, jitter=0))
        stage.run()
        assert "good" == call.sink.outcome


def test_a_call_that_pauses_is_ended_by_its_deadline() -> None:
    """Nothing begins after it."""
    with Stage([1]) as stage:
        call = stage.send(WRONG, HANGS, deadline=20.0, retries=Retry(3, delay=5, jitter=0))
        stage.run()
        assert "CallDeadlineError" == call.sink.outcome
        assert 0 == stage.dispatch.waiting


def test_the_calls_of_a_broadcast_that_waits_end_together() -> None:
    """They are placed together or not at all."""
    with Stage([1], [1]) as stage:
        holding = stage.send(returns("held", 50.0), node=0)
        stage.run(0.1)
        calls = stage.broadcast(returns("all"), queue_timeout=5.0)
        behind = stage.send(returns("behind"))
        stage.run()
        assert ["QueueTimeoutError"] * 2 == calls[0].sink.outcomes
        assert ("held", "behind") == (holding.sink.outcome, behind.sink.outcome)


def test_a_call_that_moved_keeps_its_deadline() -> None:
    """From a node that fell silent."""
    with Stage([1], [1]) as stage:
        call = stage.send(HANGS, HANGS, deadline=20.0, interruptions=3)
        stage.run(1.0)
        stage.nodes[0].cut()
        stage.dispatch.silent.suspect(0)
        stage.dispatch.evacuate(0, "it is silent")
        stage.run(30.0)
        assert "CallDeadlineError" == call.sink.outcome
        stage.nodes[0].mend()
        stage.dispatch.trust(0)
        stage.run()
        assert all(map(stage.dispatch.idle, (0, 1)))
        assert not stage.dispatch.silent.attempts


def test_deadlines_of_calls_that_ended_are_not_kept() -> None:
    """Most calls end long before."""
    with Stage([1]) as stage:
        for _ in range(300):
            for _ in range(10):
                stage.send(returns(1), deadline=3600.0, queue_timeout=3600.0)
            stage.run(1.0)
        assert len(stage.dispatch._deadlines._due) < 2500
