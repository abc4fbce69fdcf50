"""Which error stands for how a call ended."""

from __future__ import annotations

import json
from concurrent.futures import CancelledError
from typing import Any

import pytest

import skyward as sky
from skyward.engine.calls.answer import Answer
from skyward.link.failure import dump_failure
from skyward.link.messages import Status
from skyward.link.payload_making import dump


def _answer(error: str, **facts: Any) -> Answer:
    text = json.dumps({"error": error, **facts}).encode()
    return Answer(Status.FAILED, None, text, where="node 3 (aws i-0)", function="train", seconds=2.5, node=3, pool="p")


@pytest.mark.parametrize(
    ("answer", "stopped"),
    [
        (Answer(Status.CANCELLED, None, b""), True),
        (_answer("CancelledError"), True),
        (_answer("PoolClosedError", message="The pool is closed."), True),
        (_answer("TaskTimeoutError", timeout=2.0), False),
        (Answer(Status.RAISED, None, dump_failure(ValueError("no"))), False),
    ],
)
def test_what_was_ended_on_purpose_has_not_failed(answer: Answer, *, stopped: bool) -> None:
    """No result was wanted any more."""
    assert stopped == answer.stopped


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (
            _answer("TaskTimeoutError", timeout=2.0),
            sky.TaskTimeoutError,
            r"train\(\) on node 3 .* timeout of 2 s .* 2\.5",
        ),
        (_answer("NodeLostError", message="gone"), sky.NodeLostError, r"train\(\) on node 3 .* was lost: gone"),
        (_answer("SerializationError", message="no"), sky.SerializationError, "could not start: no"),
        (_answer("PluginError", message="no"), sky.PluginError, "could not start: no"),
        (_answer("ResultError", message="it is a lock"), sky.ResultError, "ended, but it is a lock. Return something"),
        (_answer("WorkerSpentError", message="old"), sky.WorkerSpentError, "could not begin: old"),
        (_answer("PoolClosedError", message="The pool is closed."), sky.PoolClosedError, "The pool is closed"),
        (_answer("BudgetExceededError", message="spent", budget=1, cost=2), sky.BudgetExceededError, "spent"),
        (_answer("CancelledError"), CancelledError, r"train\(\) was cancelled"),
        (_answer("SomethingNew", message="what?"), sky.SkywardError, "failed: what"),
    ],
)
def test_each_reason_has_its_class(answer: Answer, kind: type[Exception], message: str) -> None:
    """The message names function and node, and says what happened."""
    with pytest.raises(kind, match=message) as caught:
        answer.value()
    assert kind is type(caught.value)
    assert answer.failed


def test_facts_are_attributes_too() -> None:
    """Node, pool, function and limits."""
    error = _answer("TaskTimeoutError", timeout=2.0, output=["a", "b"]).error()
    assert isinstance(error, sky.TaskTimeoutError)
    assert ("train", 3, "p", 2.0, ("a", "b")) == (error.function, error.node, error.pool, error.timeout, error.output)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"signal": "SIGSEGV"}, r"train\(\) on node 3 .* was killed by SIGSEGV"),
        ({"exit_code": 3, "output": ["bye"]}, r"exited with code 3\. Its last output:\n  \| bye"),
        ({"exit_code": 1, "blame": "; this call crashed it"}, "exited with code 1; this call crashed it"),
    ],
)
def test_a_dead_worker_is_told_by_how_it_ended(facts: dict[str, Any], message: str) -> None:
    """With its last lines, and who is to blame."""
    error = _answer("WorkerDiedError", **facts).error()
    assert isinstance(error, sky.WorkerDiedError)
    assert (facts.get("exit_code"), facts.get("signal")) == (error.exit_code, error.signal)
    with pytest.raises(sky.WorkerDiedError, match=message):
        raise error


def test_our_own_frames_are_not_its_last_words() -> None:
    """They stay in the error's output, and out of its message."""
    lines = ['File "skyward/node/worker/worker.py", line 1', *[f"line {number}" for number in range(12)]]
    error = _answer("WorkerDiedError", exit_code=1, output=lines).error()
    assert "skyward/node" not in str(error)
    assert ("line 1\n" in str(error), "line 2\n" in str(error)) == (False, True)
    assert tuple(lines) == error.output  # type: ignore[attr-defined]  # a `WorkerDiedError`


def test_what_the_function_raised_is_raised_as_itself() -> None:
    """With a note that says where."""
    failure = Answer(Status.RAISED, None, dump_failure(KeyError("x")), where="node 3", function="train")
    with pytest.raises(KeyError, match="x") as caught:
        failure.value()
    assert any("train() on node 3" in note for note in caught.value.__notes__)


def test_values_are_unpickled_where_they_are_asked_for() -> None:
    """One that can't be is an error of its own, with the cause."""

    class Broken:
        def __reduce__(self) -> Any:
            return (int, ("not a number",))

    assert Answer(Status.OK, dump([1]), b"").value() == [1]
    assert Answer(Status.STREAMED, None, b"").value() is None
    with pytest.raises(sky.ResultError, match=r"train\(\) on node 3 cannot be unpickled here: ValueError") as caught:
        Answer(Status.OK, dump(Broken()), b"", where="node 3", function="train").value()
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_failure_that_is_given_to_somebody_is_heard() -> None:
    """A budget that is exceeded is not told a second time at the end."""
    heard: list[bool] = []
    answer = _answer("BudgetExceededError", message="spent", budget=1, cost=2)
    answer.on_delivered = lambda: heard.append(True)
    assert [] == heard
    answer.error()
    assert [True] == heard
