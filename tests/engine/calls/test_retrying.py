"""When calls that failed are sent again, on virtual time."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import skyward as sky
from skyward.engine.calls import operations
from skyward.model.spec.retry_setting import LONGEST, Retry
from tests.simulated.node import Task
from tests.simulated.plan import HANGS, SPENT, Plan, act, dies, raises, returns
from tests.simulated.scripted_pool import ScriptedPool, idle
from tests.simulated.stage import Stage
from tests.waiting import until

RESET = raises(ConnectionError("reset"), 1.0)
WRONG = raises(ValueError("wrong"), 1.0)
STEADY = Retry(3, delay=2.0, backoff=3.0, jitter=0.0)

act_with = sky.function(act)


@pytest.mark.parametrize("plan", [WRONG, dies(1.0), HANGS], ids=["raise", "die", "time out"])
def test_attempts_are_as_far_apart_as_was_asked_for(plan: Plan) -> None:
    """Whatever the failure; the last one is the call's."""
    with Stage([1]) as stage:
        call = stage.send(plan, timeout=1.0, retries=STEADY)
        stage.run()
        # Four attempts of one second, and 2, 6 and 18 seconds between them.
        assert 4 + 26 == pytest.approx(call.sink.ends[0][1], abs=0.1)
        assert [2.0, 6.0, 18.0] == stage.observer.delays
        assert [(1, True), (2, True), (3, True), (4, False)] == stage.observer.over


def test_jitter_is_drawn_for_each_delay() -> None:
    """So that many calls that failed at once do not come back at once."""
    with Stage([64]) as stage:
        for _ in range(16):
            stage.send(WRONG, returns("good"), retries=Retry(1, delay=10.0, jitter=0.5))
        stage.run()
        delays = stage.observer.delays
        assert 16 == len(set(delays))
        assert 5.0 <= min(delays) < max(delays) <= 15.0


def test_a_call_that_waits_takes_no_slot() -> None:
    """Others run meanwhile, and it goes before those that wait when its time has come."""
    with Stage([1]) as stage:
        call = stage.send(raises(OSError(), 1.0), returns("good"), retries=Retry(1, delay=2.5, jitter=0))
        others = [stage.send(returns(number, 1.0)) for number in range(5)]
        stage.run(0.5)
        assert 0 == stage.dispatch.waiting
        stage.run(1.0)
        assert (1, 1) == (stage.dispatch.waiting, stage.dispatch.running)
        stage.run()
        assert "good" == call.sink.outcome
        assert others[2].sink.ends[0][1] < call.sink.ends[0][1] < others[3].sink.ends[0][1]


def test_no_delay_is_no_wait() -> None:
    """Then it is the plain number."""
    with Stage([1]) as stage:
        assert "good" == stage.outcome(WRONG, WRONG, returns("good"), retries=Retry(2, delay=0))
        assert [0.0, 0.0] == stage.observer.delays


def test_loss_of_a_node_and_a_spent_worker_wait_for_nothing() -> None:
    """They are no failures of the call, and cost none of its attempts."""
    with Stage([1], [1]) as stage:
        call = stage.send(Plan(seconds=5.0, value="good"), node=None, retries=STEADY, interruptions=1)
        stage.run(1.0)
        stage.nodes[call.on].lose()
        stage.run()
        assert "good" == call.sink.outcome
        assert "good" == stage.outcome(SPENT, returns("good"), retries=STEADY)
        assert {0.0} == set(stage.observer.delays)


# Which failures.


@pytest.mark.parametrize(
    ("on", "outcome"),
    [
        (ConnectionError, "good"),
        ((KeyError, OSError), "good"),
        (lambda error: "reset" in str(error), "good"),
        (KeyError, "ConnectionError"),
        (lambda error: False, "ConnectionError"),
    ],
    ids=["class", "tuple", "function", "other class", "function that refuses"],
)
def test_only_what_was_asked_for_is_tried_again(on: Any, outcome: str) -> None:
    """What the caller would get is what is judged."""
    with Stage([1]) as stage:
        assert outcome == stage.outcome(RESET, returns("good"), retries=Retry(3, delay=1.0, on=on))


def test_our_own_errors_can_be_asked_for() -> None:
    """A timeout is a TimeoutError, a death is ours."""
    with Stage([1]) as stage:
        plans = (HANGS, dies(), WRONG, returns("good"))
        retry = Retry(5, on=(TimeoutError, sky.WorkerDiedError))
        assert "ValueError" == stage.outcome(*plans, timeout=2.0, retries=retry)
        assert [(1, True), (2, True), (3, False)] == stage.observer.over


def test_each_failure_is_judged_by_itself() -> None:
    """And the last one is not, which nothing can come of."""
    asked: list[str] = []
    with Stage([1]) as stage:
        retry = Retry(2, on=lambda error: not asked.append(str(error)))
        plans = tuple(raises(OSError(str(number))) for number in range(4))
        assert "OSError" == stage.outcome(*plans, retries=retry)
        assert ["0", "1"] == asked


def test_a_function_that_fails_at_judging_is_one_clear_error() -> None:
    """It names both, and neither is lost."""

    def judge(error: BaseException) -> bool:
        raise KeyError("code")

    with Stage([1]) as stage:
        call = stage.send(RESET, returns("never"), retries=Retry(3, on=judge))
        stage.run()
        [answer] = call.sink.answers
        error = answer.error()
        assert isinstance(error, sky.UsageError)
        assert "act() failed with ConnectionError" in str(error)
        assert "on= of its sky.Retry raised KeyError: 'code'" in str(error)
        assert isinstance(error.__cause__, KeyError)
        assert isinstance(error.__cause__.__context__, ConnectionError)
        assert str(error) == answer.headline()
        assert [(1, False)] == stage.observer.over


def test_a_function_that_would_end_the_program_does_not() -> None:
    """It runs in the engine's thread's stead, and not in the caller's."""

    def judge(error: BaseException) -> bool:
        raise SystemExit(3)

    with Stage([1]) as stage:
        assert "UsageError" == stage.outcome(RESET, retries=Retry(3, on=judge))


def test_judging_does_not_keep_others_waiting() -> None:
    """The engine goes on, and the slot is free."""
    asked, go_on = threading.Event(), threading.Event()

    def judge(error: BaseException) -> bool:
        asked.set()
        return go_on.wait(10)

    with ScriptedPool([1]) as pool:
        call = act_with(RESET, returns("good")).with_retries(Retry(1, on=judge))
        future = operations.run_async(pool, call)
        assert asked.wait(10)
        assert (1, 0) == pool.do(lambda: (pool.dispatch.waiting, pool.dispatch.running))
        go_on.set()
        assert "good" == future.result(10)


# What ends a wait.


def _waiting(stage: Stage, **options: Any) -> Any:
    call = stage.send(WRONG, returns("never"), retries=Retry(1, delay=LONGEST, jitter=0), **options)
    stage.run(2.0)
    assert 1 == stage.dispatch.waiting
    return call


def test_cancelling_ends_it_at_once() -> None:
    """And nothing is left of it."""
    with Stage([1]) as stage:
        call = _waiting(stage)
        stage.dispatch.cancel([call])
        assert "CancelledError" == call.sink.outcome
        assert 0 == stage.dispatch.waiting
        stage.run(2 * LONGEST)
        assert 1 == len(stage.nodes[0].begun)


def test_closing_ends_it_at_once() -> None:
    """As it ends whatever is open."""
    with Stage([1]) as stage:
        call = _waiting(stage)
        stage.dispatch.close("The pool 'train' is closed.")
        stage.run(0.001)
        assert "PoolClosedError" == call.sink.outcome
        assert 0 == stage.dispatch.waiting
        stage.run(2 * LONGEST)
        assert 1 == len(stage.nodes[0].begun)


def test_what_ends_the_call_while_it_is_judged_ends_it_at_once() -> None:
    """The judgement comes to nothing."""
    asked, go_on = threading.Event(), threading.Event()

    def judge(error: BaseException) -> bool:
        asked.set()
        return go_on.wait(10)

    with ScriptedPool([1]) as pool:
        future = operations.run_async(pool, act_with(RESET, returns("never")).with_retries(Retry(1, on=judge)))
        assert asked.wait(10)
        assert future.cancel()
        until(lambda: pool.do(lambda: pool.dispatch.waiting) == 0)
        go_on.set()
        until(lambda: idle(pool))
        assert 1 == len(pool.scripted[0].begun)


def test_a_node_that_does_not_come_back_ends_it_at_once() -> None:
    """It would wait for it again."""
    with Stage([1], [1]) as stage:
        call = _waiting(stage, node=1)
        stage.nodes[1].lose()
        stage.run(0.1)
        stage.dispatch.forsake(1, "it is not replaced")
        assert "NodeLostError" == call.sink.outcome


def test_leaving_waits_for_it() -> None:
    """A call that is to be tried again is under way."""
    from skyward.engine.calls.settling import settled

    with Stage([1]) as stage:
        call = stage.send(WRONG, returns("good"), retries=Retry(1, delay=30.0, jitter=0))
        stage.run(2.0)
        stage.loop.run_until_complete(settled(stage.dispatch))
        assert "good" == call.sink.outcome


# Broadcasts, which are tried again as a whole.


def test_a_broadcast_waits_by_the_same_clock() -> None:
    """All its ranks begin again together, after the delay."""
    begun: list[int] = []

    def script(task: Task) -> Plan:
        begun.append(task.node)
        return WRONG if len(begun) <= 2 else returns("good")

    with ScriptedPool([1], [1], script=script) as pool:
        began = pool.engine.loop.time()
        call = act_with().with_retries(Retry(1, delay=60.0, jitter=0))
        assert ["good", "good"] == operations.broadcast(pool, call, keep_errors=False)
        assert 61.0 <= pool.engine.loop.time() - began


def test_a_broadcast_asks_which_failures_are_meant() -> None:
    """In the thread that waits for it."""
    with ScriptedPool([1], [1]) as pool:
        with pytest.raises(ValueError, match="wrong"):
            operations.broadcast(pool, act_with(WRONG).with_retries(Retry(9, on=OSError)), keep_errors=False)
        with pytest.raises(sky.UsageError, match=r"on= of its sky\.Retry raised ZeroDivisionError"):
            operations.broadcast(
                pool, act_with(WRONG).with_retries(Retry(9, on=lambda error: 1 / 0 > 0)), keep_errors=False
            )


def test_closing_ends_the_wait_of_a_broadcast() -> None:
    """Also one that has not begun to wait."""
    with Stage([1]) as stage:
        before, after = threading.Event(), threading.Event()
        stage.dispatch.pause(LONGEST, before)
        stage.dispatch.close("The pool 'train' is closed.")
        stage.dispatch.pause(LONGEST, after)
        assert before.is_set()
        assert after.is_set()
