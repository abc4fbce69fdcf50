"""What becomes of calls on nodes that fall silent, and are heard again or lost; on virtual time."""

from __future__ import annotations

import random

import pytest

from skyward.engine.calls.call import Call
from tests.seeds import seeds, share
from tests.simulated.plan import FOREVER, HANGS, Plan, raises, returns
from tests.simulated.stage import Stage

WHY = "it has been silent for 16 s"


def fall_silent(stage: Stage, index: int, *, evacuated: bool = True) -> None:
    """Let nothing through to a node or from it, and take the consequences."""
    stage.nodes[index].cut()
    stage.dispatch.silent.suspect(index)
    if evacuated:
        stage.dispatch.evacuate(index, WHY)


def be_heard(stage: Stage, index: int) -> None:
    """Let through what has waited; the node is used again."""
    stage.nodes[index].mend()
    stage.dispatch.trust(index)


def on(stage: Stage, index: int, *plans: Plan, **options: object) -> Call:
    """Send a call that begins on a node, whichever others there are, but is not bound to it."""
    call = stage.send(*plans, **{"interruptions": 3, **options})
    stage.run(0.01)
    assert index == call.on
    return call


def test_a_silent_node_gets_no_new_calls() -> None:
    """Others do; what is for that node alone waits."""
    with Stage([1], [2]) as stage:
        fall_silent(stage, 0)
        calls = [stage.send(returns(number, 1.0)) for number in range(4)]
        pinned = stage.send(returns("there"), node=0)
        stage.run(10.0)
        assert [0, 1, 2, 3] == [call.sink.outcome for call in calls]
        assert [] == stage.nodes[0].begun
        be_heard(stage, 0)
        stage.run()
        assert "there" == pinned.sink.outcome


def test_its_calls_are_begun_elsewhere_at_once() -> None:
    """And the copy that comes too late is stopped, and answers nothing."""
    with Stage([1], [1]) as stage:
        call = on(stage, 0, returns("old", 50.0), returns("new", 5.0))
        stage.run(1.0)
        fall_silent(stage, 0)
        stage.run(0.1)
        assert [(1, 0), (2, 1)] == stage.observer.begun
        stage.run(10.0)
        assert ["new"] == call.sink.outcomes
        be_heard(stage, 0)
        stage.run()
        assert ["new"] == call.sink.outcomes
        assert 1 == len(stage.nodes[0].cancelled)
        assert stage.dispatch.idle(0)
        assert stage.dispatch.idle(1)
        # Its slot is free again.
        assert "there" == stage.outcome(returns("there"), node=0)


def test_a_result_that_comes_back_counts_once() -> None:
    """The attempt that was begun in its place is stopped."""
    with Stage([1], [1]) as stage:
        call = on(stage, 0, returns("old", 5.0), returns("new", 50.0))
        stage.run(1.0)
        fall_silent(stage, 0)
        stage.run(10.0)
        be_heard(stage, 0)
        stage.run(1.0)
        assert ["old"] == call.sink.outcomes
        stage.run()
        assert ["old"] == call.sink.outcomes
        assert 1 == len(stage.nodes[1].cancelled)
        assert (0, 0) == (stage.dispatch.running, stage.dispatch.queued)
        assert not stage.dispatch.silent.attempts


def test_a_failure_that_comes_back_is_not_the_calls() -> None:
    """Another attempt is on its way."""
    with Stage([1], [1]) as stage:
        call = on(stage, 0, raises(ValueError(), 5.0), returns("new", 20.0))
        stage.run(1.0)
        fall_silent(stage, 0)
        stage.run(10.0)
        be_heard(stage, 0)
        stage.run()
        assert ["new"] == call.sink.outcomes


def test_calls_that_have_not_begun_elsewhere_are_its_own_again() -> None:
    """They run on, no attempt is begun for them, and none is used up."""
    with Stage([1], [1]) as stage:
        call = on(stage, 0, returns("old", 30.0), returns("new"))
        holding = on(stage, 1, returns("held", 40.0))
        fall_silent(stage, 0)
        stage.run(10.0)
        assert 1 == stage.dispatch.queued
        be_heard(stage, 0)
        stage.run()
        assert (["old"], ["held"]) == (call.sink.outcomes, holding.sink.outcomes)
        assert 3 == call.interruptions
        assert 1 == len(stage.nodes[0].begun)
        assert 30.0 == pytest.approx(call.sink.answers[0].seconds)


def test_a_call_can_move_more_than_once() -> None:
    """Each silence costs an interruption; whichever attempt returns first counts, and no two have one id."""
    with Stage([1], [1], [1]) as stage:
        call = on(stage, 0, returns(0, 100.0), returns(1, 100.0), returns(2, 10.0))
        fall_silent(stage, 0)
        stage.run(1.0)
        assert 1 == call.on
        fall_silent(stage, 1)
        stage.run(1.0)
        assert 2 == call.on
        be_heard(stage, 0)
        stage.run(20.0)
        assert [2] == call.sink.outcomes
        assert 1 == call.interruptions
        be_heard(stage, 1)
        stage.run()
        assert not stage.dispatch.silent.attempts
        assert all(map(stage.dispatch.idle, (0, 1, 2)))


def test_an_attempt_that_was_claimed_again_can_move_again() -> None:
    """The ids of attempts are never used twice."""
    with Stage([1], [1]) as stage:
        call = on(stage, 0, *[returns("good", 60.0)] * 5)
        holding = on(stage, 1, returns("held", 20.0))
        for _ in range(3):
            fall_silent(stage, 0)
            stage.run(1.0)
            be_heard(stage, 0)
            stage.run(1.0)
        assert 0 == call.on
        fall_silent(stage, 0)
        stage.run(30.0)
        assert ["held"] == holding.sink.outcomes
        be_heard(stage, 0)
        stage.run()
        assert ["good"] == call.sink.outcomes


@pytest.mark.parametrize("options", [{"interruptions": 0}, {"node": 0}, {"streams": True}], ids=str)
def test_what_may_not_move_waits(options: dict[str, object]) -> None:
    """Without leave to be tried again after a loss, for one node alone, or a stream."""
    with Stage([1], [1]) as stage:
        call = on(stage, 0, returns("old", 5.0), **options)
        fall_silent(stage, 0)
        stage.run(50.0)
        assert [] == call.sink.outcomes
        assert [] == stage.nodes[1].begun
        be_heard(stage, 0)
        stage.run()
        assert 1 == len(call.sink.outcomes)
        assert [] == stage.nodes[1].begun


def test_what_may_not_move_fails_when_the_node_is_lost() -> None:
    """As on any node that is lost; what has moved goes on."""
    with Stage([2], [1]) as stage:
        stays = on(stage, 0, HANGS, interruptions=0)
        holding = on(stage, 1, returns("held", 1.0))
        moves = on(stage, 0, HANGS, returns("moved", 1.0))
        fall_silent(stage, 0)
        stage.run(10.0)
        assert "moved" == moves.sink.outcome
        stage.nodes[0].lose("nothing has come from it")
        stage.run()
        assert ("NodeLostError", "held") == (stays.sink.outcome, holding.sink.outcome)
        assert not stage.dispatch.silent.attempts


def test_cancelling_stops_every_attempt() -> None:
    """That on the silent node as soon as it is heard."""
    with Stage([1], [1]) as stage:
        call = on(stage, 0, HANGS, HANGS)
        fall_silent(stage, 0)
        stage.run(1.0)
        stage.dispatch.cancel([call])
        stage.run(1.0)
        be_heard(stage, 0)
        stage.run()
        assert ["CancelledError"] == call.sink.outcomes
        assert all(map(stage.dispatch.idle, (0, 1)))


def test_a_timeout_fires_by_the_clients_clock_where_the_node_is_silent() -> None:
    """It counts against the call's retries, as any timeout does."""
    with Stage([1], [1]) as stage:
        once = on(stage, 0, returns("late", FOREVER), timeout=5.0, interruptions=0)
        fall_silent(stage, 0)
        # The dispatch goes by the real clock, of which none has passed.
        once.began -= 6.0
        stage.dispatch.silent.overdue()
        with pytest.raises(TimeoutError, match=r"act\(\) on node 0 .*timeout of 5 s .* its node is silent"):
            once.sink.answers[0].value()
        be_heard(stage, 0)
        stage.run()
        assert 1 == len(once.sink.outcomes)
        assert stage.dispatch.idle(0)


def test_a_timeout_on_a_silent_node_is_tried_again_elsewhere() -> None:
    """Where the call has retries."""
    with Stage([1], [1]) as stage:
        call = on(stage, 0, HANGS, returns("good", 1.0), timeout=5.0, interruptions=0, retries=1)
        fall_silent(stage, 0)
        call.began -= 6.0
        stage.dispatch.silent.overdue()
        stage.run(3.0)
        assert ["good"] == call.sink.outcomes
        assert 1 == len(stage.nodes[1].begun)


def test_a_broadcast_is_not_placed_on_a_silent_node() -> None:
    """One that waits for it fails, to be begun again with the members that there are."""
    with Stage([1], [1]) as stage:
        holding = on(stage, 0, returns("held", 5.0), node=0)
        calls = stage.broadcast(returns("all"))
        fall_silent(stage, 0)
        stage.run(1.0)
        assert {"NodeLostError"} == set(calls[0].sink.outcomes)
        be_heard(stage, 0)
        stage.run()
        assert "held" == holding.sink.outcome


def test_a_silent_node_that_is_drained_keeps_its_calls() -> None:
    """Its place is free, and what it answers counts."""
    with Stage([1], [1]) as stage:
        call = on(stage, 0, returns("old", 5.0), returns("new", 50.0))
        fall_silent(stage, 0)
        seat = stage.leave(0)
        stage.run(10.0)
        stage.nodes[0].mend()
        stage.dispatch.trust(seat)
        stage.run()
        assert ["old"] == call.sink.outcomes
        assert stage.dispatch.idle(seat)


@pytest.mark.parametrize("seed", seeds("silence", share(20)))
def test_whatever_falls_silent_each_call_is_answered_once(seed: int) -> None:
    """Nodes fall silent, come back and are lost at random moments; nothing is left at the end."""
    random_ = random.Random(seed)
    with Stage([2], [1], [3], buffer=1) as stage:
        calls = []
        silent: set[int] = set()
        for number in range(60):
            plans = [returns(number, random_.uniform(0.1, 20.0)) for _ in range(40)]
            calls.append(stage.send(*plans, interruptions=30))
            node = random_.randrange(3)
            match random_.randrange(6):
                case 0 if node not in silent and len(silent) < 2:
                    silent.add(node)
                    fall_silent(stage, node, evacuated=random_.random() < 0.8)
                case 1 if node in silent:
                    silent.discard(node)
                    be_heard(stage, node)
                case 2 if node in silent:
                    silent.discard(node)
                    stage.nodes[node].lose()
                    stage.add([2], index=node)
                case 3:
                    stage.dispatch.cancel([random_.choice(calls)])
            stage.run(random_.uniform(0.0, 5.0))
        for node in silent:
            be_heard(stage, node)
        stage.run(2000.0)
        for number, call in enumerate(calls):
            # A call that was cancelled is over with its node.
            expected = ([number], ["CancelledError"], ["NodeLostError"]) if call.cancelled else ([number],)
            assert call.sink.outcomes in expected
        assert (0, 0) == (stage.dispatch.running, stage.dispatch.queued)
        assert not stage.dispatch.silent.attempts
