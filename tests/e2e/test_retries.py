"""
A call is tried again on real nodes after whatever really failed.

How often, and what counts as an attempt, is held by `tests/engine/calls/test_dispatch.py` on virtual time.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import skyward as sky
from skyward.model.spec.worker_layout import Worker
from skyward.pending import PendingFunction
from tests.waiting import until

KINDS = ("raise", "exit", "kill", "crash", "sys.exit", "hang")
"""The ways in which an attempt fails; `hang` needs a timeout."""

ERRORS: dict[str, type[Exception]] = {
    "raise": ConnectionError,
    "exit": sky.WorkerDiedError,
    "kill": sky.WorkerDiedError,
    "crash": sky.WorkerDiedError,
    "sys.exit": sky.RemoteError,
    "hang": sky.TaskTimeoutError,
}


@sky.function
def attempt(log: str, *plan: str) -> int:
    """Fail as the plan says, an attempt after the other, then give the number of the attempt."""
    number = note(log)
    if number > len(plan):
        return number
    match plan[number - 1]:
        case "raise":
            raise ConnectionError(f"attempt {number}")
        case "exit":
            os._exit(number)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "crash":
            ctypes.string_at(0)
        case "sys.exit":
            sys.exit(f"attempt {number}")
    until(lambda: False)
    return -1


@sky.function
def hold(gate: str) -> None:
    """Run until a file is there."""
    until(Path(gate).exists)


@sky.function
def ok() -> str:
    return "ok"


@pytest.fixture
def log(tmp_path: Path) -> str:
    """Give the file in which attempts are counted."""
    return str(tmp_path / "log")


@pytest.fixture(autouse=True)
def _goes_on(pool: sky.Pool) -> Iterator[None]:
    """
    Whatever failed: both slots are free afterwards, and work.

    Before, both workers import this module, so that no timeout is spent on that.
    """
    assert ok() @ pool == ["ok", "ok"]
    yield
    assert ok() @ pool == ["ok", "ok"]
    assert pool.snapshot()["running"] == 0


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_failure_is_tried_again(pool: sky.Pool, log: str, kind: str) -> None:
    """As often as was asked for and not once more; the last failure is raised."""
    with pytest.raises(ERRORS[kind]):
        limited(attempt(log, kind, kind).with_retries(1), kind) >> pool
    assert attempts(log) == 2


def test_number_may_be_given_with_the_function_or_the_call(pool: sky.Pool, log: str) -> None:
    """The call's word counts, up and down."""
    twice = sky.function(retries=2)(attempt.local)
    assert twice(log + "a", "raise", "raise") >> pool == 3
    with pytest.raises(ConnectionError, match="attempt 1"):
        twice(log + "b", "raise", "raise").with_retries(0) >> pool
    assert twice(log + "c", *["raise"] * 4).with_retries(4) >> pool == 5
    assert [attempts(log + name) for name in "abc"] == [3, 1, 5]


def test_each_attempt_after_an_exception_has_a_fresh_clock(pool: sky.Pool, log: str) -> None:
    """All of them together run longer than one may."""

    @sky.function(timeout=0.6, retries=3)
    def steady(log: str) -> int:
        number = note(log)
        threading.Event().wait(0.2)
        if number < 4:
            raise ConnectionError(number)
        return number

    began = time.monotonic()
    assert steady(log) >> pool == 4
    assert time.monotonic() - began > 0.8


def test_delays_and_failures_are_as_was_asked_for(pool: sky.Pool, log: str) -> None:
    """They are reported before they are waited for; another failure ends it."""
    told: list[float | None] = []
    pool.on(sky.TaskCompleted, lambda event: told.append(event.retry_in))
    retry = sky.Retry(9, delay=0.1, backoff=3, jitter=0, on=lambda error: str(error) in ("attempt 1", "attempt 2"))
    began = time.monotonic()
    with pytest.raises(sky.WorkerDiedError):
        attempt(log, "raise", "raise", "exit").with_retries(retry) >> pool
    assert time.monotonic() - began >= 0.4
    assert attempts(log) == 3
    until(lambda: len(told) >= 3)
    assert told[:3] == [pytest.approx(0.1), pytest.approx(0.3), None]


@pytest.mark.slow
def test_cancelled_call_that_waits_for_its_next_attempt_never_has_it(log: str, tmp_path: Path) -> None:
    """Also where it waits in the worker that ran the last one."""
    gates = [tmp_path / "gate0", tmp_path / "gate1"]

    @sky.function(retries=1)
    def twice(log: str, gate: str) -> None:
        note(log)
        hold.local(gate)
        raise ConnectionError

    @sky.function
    def hold_on(gate: str) -> None:
        hold.local(gate)
        # A test cannot see from outside when the other call's cancellation has arrived in this worker.
        threading.Event().wait(0.3)

    ended: list[sky.TaskCompleted] = []
    pool = sky.Compute(console="silent", worker=Worker(buffer=1)).on(sky.TaskCompleted, ended.append)
    with pool:
        assert ok() >> pool == "ok"
        future = twice(log, str(gates[0])) > pool
        other = hold_on(str(gates[1])) > pool
        until(lambda: attempts(log) == 1)
        gates[0].touch()
        # From now on the second attempt stands behind the other call, in the worker.
        until(lambda: any(not event.success for event in ended))
        assert future.cancel()
        gates[1].touch()
        other.result(timeout=20)
        until(lambda: pool.snapshot()["running"] == 0)
    assert attempts(log) == 1


@pytest.mark.slow
def test_each_attempt_is_told_of(log: str) -> None:
    """It begins and ends under one id, and says how."""
    begun: list[sky.TaskStarted] = []
    ended: list[sky.TaskCompleted] = []
    pool = sky.Compute(console="silent").on(sky.TaskStarted, begun.append).on(sky.TaskCompleted, ended.append)
    with pool:
        assert attempt(log, "raise", "exit").with_retries(5) >> pool == 3
    assert [event.task_id for event in begun] == [event.task_id for event in ended] == [begun[0].task_id] * 3
    assert [event.success for event in ended] == [False, False, True]
    assert [event.again for event in ended] == [True, True, False]
    assert [event.retry_in for event in ended] == [0.0, 0.0, None]
    assert [event.error is None for event in ended] == [False, False, True]


def limited(call: PendingFunction[int], kind: str) -> PendingFunction[int]:
    """Give a call that hangs a timeout."""
    return call.with_timeout(0.3) if kind == "hang" else call


def note(log: str) -> int:
    """Count an attempt, and tell which one it is."""
    with open(log, "ab", buffering=0) as file:
        file.write(b"x")
    return attempts(log)


def attempts(log: str) -> int:
    """Tell how many attempts there have been."""
    return os.path.getsize(log) if os.path.exists(log) else 0
