"""What becomes of calls on nodes that answer, fail and go away as scripted, on virtual time."""

from __future__ import annotations

import math
from typing import Any

import pytest

from skyward.engine.calls.batches import PART
from skyward.engine.calls.call import Call, CapturedFunction
from skyward.engine.calls.recalling import RECALL_AFTER
from skyward.errors import ProtocolError
from skyward.link.envelope import Envelope, Record
from skyward.link.frames import Frame, Kind
from skyward.link.messages import RESULT, TASK, Status
from skyward.link.payload import Payload
from skyward.link.payload_making import dump
from skyward.plan.pool.retry_policy import RENEWALS
from tests.simulated.node import Task
from tests.simulated.plan import HANGS, SPENT, Plan, dies, raises, returns
from tests.simulated.stage import Stage

WRONG = raises(ValueError("wrong"), 1.0)

FAILURES = {
    "raise": (WRONG, 0.0, "ValueError"),
    "die": (dies(1.0), 0.0, "WorkerDiedError"),
    "time out": (HANGS, 1.0, "TaskTimeoutError"),
}
"""The ways in which an attempt fails: its plan, the timeout it needs, and its error."""

FAILING = pytest.mark.parametrize(("plan", "timeout", "error"), FAILURES.values(), ids=FAILURES)


# Attempts.


@FAILING
def test_nothing_is_tried_again_unasked(plan: Plan, timeout: float, error: str) -> None:
    """One attempt, and its error; losses of nodes have a number of their own."""
    with Stage([1]) as stage:
        assert error == stage.outcome(plan, timeout=timeout, interruptions=3)
        assert [(1, 0)] == stage.observer.begun


@FAILING
def test_each_kind_of_failure_is_tried_again(plan: Plan, timeout: float, error: str) -> None:
    """As often as `retries` says and not once more; the last failure is the call's."""
    with Stage([1]) as stage:
        assert "good" == stage.outcome(plan, plan, returns("good"), timeout=timeout, retries=2)
        assert error == stage.outcome(plan, timeout=timeout, retries=2)
        assert 6 == len(stage.nodes[0].begun)


def test_one_budget_for_all_kinds_of_failure() -> None:
    """An exception, a timeout and a death are three attempts."""
    plans = (WRONG, HANGS, dies(), returns("good"))
    with Stage([1]) as stage:
        assert "WorkerDiedError" == stage.outcome(*plans, timeout=2.0, retries=2)
        assert "good" == stage.outcome(*plans, timeout=2.0, retries=3)


@pytest.mark.parametrize("retries", [0, 1, 5])
def test_success_ends_it(retries: int) -> None:
    """What worked is not done again."""
    with Stage([1]) as stage:
        assert "good" == stage.outcome(returns("good"), retries=retries)
        assert [(1, False)] == stage.observer.over


def test_each_attempt_has_a_fresh_clock() -> None:
    """Its timeout begins anew, and so do the seconds that its error tells of."""
    with Stage([1]) as stage:
        call = stage.call(raises(OSError(), 0.9), raises(OSError(), 0.9), HANGS, timeout=1.0, retries=2)
        stage.dispatch.submit([call])
        stage.run()
        assert "TaskTimeoutError" == call.sink.outcome
        assert 1.0 == pytest.approx(call.sink.answers[0].seconds)
        assert 2.8 == pytest.approx(call.sink.ends[0][1], abs=0.1)


def test_time_in_the_queue_is_not_time_of_an_attempt() -> None:
    """Neither in the client's queue nor in that of a busy lane."""
    with Stage([1], buffer=1) as stage:
        holding = stage.send(returns("held", 5.0))
        waiting = [stage.send(returns("quick", 0.1), timeout=0.3) for _ in range(3)]
        stage.run()
        assert "held" == holding.sink.outcome
        assert ["quick"] * 3 == [call.sink.outcome for call in waiting]


def test_a_call_that_failed_goes_before_those_that_wait() -> None:
    """It began before them."""
    with Stage([1]) as stage:
        first = stage.send(WRONG, returns("again", 1.0), retries=1)
        second = stage.send(returns("later", 1.0))
        stage.run()
        assert first.sink.ends[0][1] < second.sink.ends[0][1]


def test_each_attempt_is_told_of() -> None:
    """It begins and ends under the task's one id, and says whether another follows."""
    with Stage([1]) as stage:
        stage.outcome(WRONG, dies(), returns("good"), retries=5)
        assert [1, 2, 3] == [attempt for attempt, _ in stage.observer.begun]
        assert [(1, True), (2, True), (3, False)] == stage.observer.over


def test_spent_workers_cost_no_retry_and_are_bounded() -> None:
    """The call has not begun where its process had to be replaced first, however often that is."""
    with Stage([1]) as stage:
        assert "good" == stage.outcome(*[SPENT] * RENEWALS, returns("good"))
        assert "WorkerSpentError" == stage.outcome(SPENT, retries=0)
        assert 2 * (RENEWALS + 1) == len(stage.nodes[0].begun)


def test_a_call_for_one_node_is_tried_again_there() -> None:
    """Also while another node is free."""
    with Stage([1], [1]) as stage:
        assert "good" == stage.outcome(WRONG, dies(), returns("good"), retries=2, node=1)
        assert {1} == {node for _, node in stage.observer.begun}


def test_a_call_for_one_node_waits_for_it() -> None:
    """It overtakes none that runs there, and takes no other's slot."""
    with Stage([1], [1]) as stage:
        holding = stage.send(returns("held", 5.0), node=1)
        waiting = stage.send(returns("there"), node=1)
        stage.run()
        assert holding.sink.ends[0][1] < waiting.sink.ends[0][1]
        assert [] == stage.nodes[0].begun


# Cancelling.


def test_a_queued_call_is_cancelled_at_once() -> None:
    """No node hears of it."""
    with Stage([1]) as stage:
        holding, waiting = stage.send(returns("held", 1.0)), stage.send(returns("never"))
        stage.dispatch.cancel([waiting])
        assert "CancelledError" == waiting.sink.outcome
        stage.run()
        assert "held" == holding.sink.outcome
        assert 1 == len(stage.nodes[0].begun)


def test_a_running_call_is_asked_to_stop_and_keeps_its_slot_until_it_has() -> None:
    """What comes after it begins when it has left."""
    with Stage([1]) as stage:
        call, after = stage.send(Plan(seconds=1e9, unwinds=3.0)), stage.send(returns("after"))
        stage.run(1.0)
        stage.dispatch.cancel([call])
        assert [] == call.sink.answers
        stage.run()
        assert "CancelledError" == call.sink.outcome
        assert 4.0 <= after.sink.ends[0][1] <= 4.1


def test_cancelling_twice_or_too_late_is_harmless() -> None:
    """A node is asked once, and a call that ended is not asked for."""
    with Stage([1]) as stage:
        ended = stage.send(returns("done", 1.0))
        stage.run()
        running = stage.send(HANGS)
        stage.run(1.0)
        queued = stage.send(returns("never"))
        stage.dispatch.cancel([ended, running, running, queued, queued])
        stage.dispatch.cancel([running, queued])
        stage.run()
        assert [running.id] == stage.nodes[0].cancelled
        assert ["done", "CancelledError", "CancelledError"] == [call.sink.outcome for call in (ended, running, queued)]


@FAILING
def test_a_cancelled_call_is_not_tried_again(plan: Plan, timeout: float, error: str) -> None:
    """Whatever its attempt comes to meanwhile, and however many are left."""
    with Stage([1]) as stage:
        slow = Plan(seconds=plan.seconds, ends=plan.ends, value=plan.value, unwinds=60.0)
        call = stage.send(slow, timeout=timeout, retries=9)
        stage.run(0.5)
        stage.dispatch.cancel([call])
        stage.run()
        assert error == call.sink.outcome
        assert 1 == len(stage.nodes[0].begun)


def test_a_cancelled_call_whose_node_is_lost_is_not_tried_elsewhere() -> None:
    """Its caller has gone."""
    with Stage([1], [1]) as stage:
        call = stage.send(Plan(seconds=1e9, unwinds=60.0), interruptions=9)
        stage.run(0.5)
        stage.dispatch.cancel([call])
        stage.nodes[0].lose()
        stage.run()
        assert "NodeLostError" == call.sink.outcome
        assert [] == stage.nodes[1].begun


def test_a_call_cancelled_between_two_attempts_has_no_second() -> None:
    """It waits in the queue then, or was sent ahead to a busy lane."""
    with Stage([1], buffer=1) as stage:
        stage.outcome(returns("the lane is known to be roomy"))
        call = stage.send(WRONG, returns("second"), retries=1)
        other = stage.send(returns("other", 5.0))
        stage.run(2.0)
        assert (2, 0) == (call.attempt, call.on)
        stage.dispatch.cancel([call])
        stage.run()
        assert ("CancelledError", "other") == (call.sink.outcome, other.sink.outcome)
        assert 3 == len(stage.nodes[0].begun)


# Sent ahead, and given back.


def test_what_was_sent_ahead_is_recalled_when_a_slot_is_free_elsewhere() -> None:
    """It waits no longer than a look for it takes."""
    with Stage([1], [1], buffer=1) as stage:
        # The others follow when both nodes have answered once and are known to be busy.
        stage.outcome(returns(0), node=0)
        stage.outcome(returns(0), node=1)
        long, short = stage.send(returns("long", 50.0), node=0), stage.send(returns("short", 1.0), node=1)
        ahead = [stage.send(returns(number)) for number in range(2)]
        stage.run(0.5)
        assert 4 == stage.dispatch.running
        stage.run(1.0 + 3 * RECALL_AFTER)
        assert [0, 1] == [call.sink.outcome for call in ahead]
        stage.run()
        assert ("long", "short") == (long.sink.outcome, short.sink.outcome)


def test_what_had_not_begun_survives_the_death_of_its_worker() -> None:
    """It costs neither retries nor interruptions."""
    with Stage([1], buffer=3) as stage:
        stage.outcome(returns(0))
        dead, *others = [stage.send(plan) for plan in (dies(1.0), returns(1), returns(2), returns(3))]
        stage.run()
        assert "WorkerDiedError" == dead.sink.outcome
        assert [1, 2, 3] == [call.sink.outcome for call in others]


def test_siblings_in_one_process_fail_with_the_culprits_name() -> None:
    """Each under its own `retries`."""
    with Stage([3]) as stage:
        modest, insistent = stage.send(HANGS), stage.send(HANGS, returns("again"), retries=1)
        culprit = stage.send(dies(1.0))
        stage.run()
        assert "again" == insistent.sink.outcome
        with pytest.raises(Exception, match="this call crashed it, among 3 that ran in it"):
            culprit.sink.answers[0].value()
        with pytest.raises(Exception, match=r"act\(\), which ran in the same process, crashed it"):
            modest.sink.answers[0].value()


# The end.


def test_closing_answers_all_that_is_open_and_what_comes() -> None:
    """The first reason holds."""
    with Stage([1]) as stage:
        calls = [stage.send(HANGS), stage.send(HANGS), *stage.broadcast(HANGS)]
        stage.run(1.0)
        stage.dispatch.close("The pool 'train' is closed.")
        stage.dispatch.close("It was closed before.")
        calls.append(stage.send(returns("too late")))
        assert ["PoolClosedError"] * 4 == [call.sink.outcomes[0] for call in calls]
        assert {"The pool 'train' is closed."} == {str(call.sink.answers[0].error()) for call in calls}
        assert str(stage.dispatch.refusal) == "The pool 'train' is closed."
        stage.run()
        assert [1] * 4 == [len(call.sink.answers) for call in calls]


def test_a_result_between_two_parts_of_a_close_is_taken() -> None:
    """The call that would follow it on its lane has its answer already."""
    with Stage([1], buffer=1) as stage:
        # So long that only one call is sent ahead.
        stage.outcome(returns(0, 20.0))
        again = stage.send(dies(1.0), HANGS, retries=1)
        others = [stage.send(returns(number, 20.0)) for number in range(2 * PART)]
        # Since its second attempt it is the last of all calls, and one of the others is behind it on its lane.
        stage.run()
        assert 2 == stage.dispatch.running
        stage.dispatch.close("The pool 'train' is closed.")
        assert others[PART // 2].sink.answers
        assert not again.sink.answers
        forged(stage, RESULT.pack(again.id, Status.CANCELLED, 1.0, 0.0))
        assert again.sink.answers


def test_a_node_that_leaves_after_a_close_has_calls_that_are_over() -> None:
    """Its machine may be taken back while the pool ends, before the node has said that its calls have stopped."""
    with Stage([1]) as stage:
        call = stage.send(HANGS)
        stage.run(1.0)
        stage.dispatch.close("The pool 'train' is closed.")
        assert ["PoolClosedError"] == call.sink.outcomes
        stage.leave(0)
        stage.run()


def test_a_call_that_cannot_be_sent_fails_alone() -> None:
    """Its slot is free for the next one."""
    with Stage([1]) as stage:
        huge = stage.call(returns(0))
        huge.payload.inline = bytes(3 << 20)
        stage.dispatch.submit([huge, after := stage.call(returns("after"))])
        stage.run()
        assert ("SerializationError", "after") == (huge.sink.outcome, after.sink.outcome)


# What nodes hear.


def test_members_are_told_once_a_change_and_before_the_task() -> None:
    """Each task names the version that it knows."""
    with Stage([1]) as stage:
        stage.outcome(returns(1))
        stage.outcome(returns(2))
        stage.add([1])
        stage.outcome(returns(3), node=0)
        wanted = (Kind.MEMBERS, Kind.TASK)
        frames = [frame for frame in stage.nodes[0].received if frame.kind in wanted]
        assert [Kind.MEMBERS, Kind.TASK, Kind.TASK, Kind.MEMBERS, Kind.TASK] == [frame.kind for frame in frames]
        versions = [TASK.unpack_from(frame.body)[2] for frame in frames if frame.kind == Kind.TASK]
        assert [versions[0], versions[0], versions[0] + 1] == versions


def test_an_attempt_knows_the_members_of_its_own_time() -> None:
    """One that is made after a loss does not see the lost node."""

    def script(task: Task) -> Plan:
        return HANGS if task.attempt == 1 else returns(task.members)

    with Stage([1], [1], script=script) as stage:
        call = stage.send(interruptions=1)
        stage.run(1.0)
        before = stage.nodes[0].begun[0].members
        stage.nodes[0].lose()
        stage.run()
        assert before + 1 == call.sink.outcome


# What no honest node says.


def forged(stage: Stage, body: bytes) -> None:
    """Have the only node answer the only call with these bytes."""
    frame = Frame(Kind.RESULT, 0, 0, body)
    stage.dispatch.on_frame(0, frame, ())


@pytest.mark.parametrize(
    ("status", "seconds", "text", "why"),
    [
        (Status.FAILED, 1.0, b'{"error": "BudgetExceededError"}', "which no node reports"),
        (Status.FAILED, 1.0, b'{"error": "WorkerDiedError", "memory": 5}', "reports memory="),
        (Status.FAILED, 1.0, b"[" * 100_000, "no JSON"),
        (Status.RAISED, math.nan, b"", "ran for nan s"),
        (Status.RAISED, -1.0, b"", "ran for -1.0 s"),
        (9, 1.0, b"", "status 9"),
    ],
)
def test_an_answer_that_makes_no_sense_is_refused_whole(status: int, seconds: float, text: bytes, why: str) -> None:
    """Its link is closed for it, and the call is still to be answered, by this node or another."""
    with Stage([1]) as stage:
        call = stage.send(returns("good", 10.0))
        stage.run(1.0)
        with pytest.raises(ProtocolError, match=why):
            forged(stage, RESULT.pack(call.id, status, seconds, 0.0) + text)
        stage.run()
        assert "good" == call.sink.outcome


def test_a_failure_has_a_headline_without_being_opened() -> None:
    """The waiting thread opens it; the loop reads the line that is plain text, and no other bytes."""
    ends = b"cos\n_exit\n(K\x03tR."
    record = Record("KeyError", "'gone'", "", (), None, None, False, ends, "")
    with Stage([1]) as stage:
        call = stage.send(returns("good", 10.0))
        stage.run(1.0)
        forged(stage, RESULT.pack(call.id, Status.RAISED, 1.0, 0.0) + Envelope("", (record,)).encode())
        [answer] = call.sink.answers
        assert "KeyError: 'gone'" == answer.headline()
        other = stage.send(returns("good", 10.0))
        stage.run(1.0)
        forged(stage, RESULT.pack(other.id, Status.RAISED, 1.0, 0.0) + ends)
        [answer] = other.sink.answers
        assert "a failure that cannot be read" == answer.headline()


def test_a_node_may_report_only_the_calls_that_run_on_it() -> None:
    """Not one that was never made, nor one that is elsewhere, waits or is over."""
    with Stage([1], [1]) as stage:
        calls = [stage.send(returns(number, 5.0)) for number in range(3)]
        stage.run(1.0)
        on = {call.id: call.on for call in calls}
        runs = {(node, call.id) for node in (0, 1) for call in calls if stage.dispatch.on_node(node, call.id)}
        assert {(node, number) for number, node in on.items() if node is not None} == runs
        assert 2 == len(runs)
        assert not stage.dispatch.on_node(0, 10**15)
        stage.run()
        assert not any(stage.dispatch.on_node(node, call.id) for node in (0, 1) for call in calls)


# What is kept from call to call.


KEEPING = CapturedFunction("Model.predict", b"keep".ljust(16, b"."), b"keep", Payload((), b""), needs="a")
"""A function that keeps something in its worker for those that follow."""


def _held(stage: Stage, *plans: Plan, **options: Any) -> list[bool]:
    """Send a call that keeps something, and tell for each attempt whether its lane had kept that before."""
    call = Call(KEEPING, dump((plans, {})), stage.heard(), **options)
    told = [len(node.begun) for node in stage.nodes.values()]
    stage.dispatch.submit([call])
    stage.run()
    return [task.held for node, before in zip(stage.nodes.values(), told, strict=True) for task in node.begun[before:]]


def test_a_lane_is_told_that_it_has_kept_something() -> None:
    """From the first call on that ended there by itself, in each lane for itself."""
    with Stage([1], [1]) as stage:
        assert [False] == _held(stage, returns(1), node=0)
        assert [True] == _held(stage, returns(1), node=0)
        assert [False] == _held(stage, WRONG, node=1)
        assert [True] == _held(stage, WRONG, node=1)
        assert [False] == [task.held for task in _begun_by(stage, returns(1))]


def test_a_call_that_took_its_worker_down_kept_nothing() -> None:
    """Its own error says what was lost; where something was kept before, the next attempt hears of it."""
    with Stage([1]) as stage:
        assert [False, False] == _held(stage, dies(), returns(1), retries=1)
        assert [True, True] == _held(stage, dies(), returns(1), retries=1)


def test_a_call_that_needs_what_was_kept_is_never_sent_ahead() -> None:
    """What it hears of its lane is as it is when it begins."""
    with Stage([1], buffer=4) as stage:
        for _ in range(3):
            stage.dispatch.submit([Call(KEEPING, dump(((returns(1, 1.0),), {})), stage.heard())])
        stage.run(0.5)
        assert (1, 2) == (stage.dispatch.running, stage.dispatch.queued)
        stage.run()
        assert [False, True, True] == [task.held for task in stage.nodes[0].begun]


def test_what_a_lost_node_kept_is_missed_in_its_place() -> None:
    """The machine that replaces it has kept nothing, and hears that something was."""
    with Stage([1], [1]) as stage:
        assert [False] == _held(stage, returns(1), node=0)
        stage.nodes[0].lose()
        stage.add([1], 0)
        assert [True] == _held(stage, returns(1), node=0)


def _begun_by(stage: Stage, *plans: Plan) -> list[Task]:
    """Send a call that keeps nothing, and give its attempts."""
    before = {id(task) for node in stage.nodes.values() for task in node.begun}
    stage.send(*plans)
    stage.run()
    return [task for node in stage.nodes.values() for task in node.begun if id(task) not in before]
