"""A call is tried again as often as `retries` says, after whatever failed, and never unasked."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from pathlib import Path

import pytest

import skyward as sky
from skyward.model.worker import Worker
from skyward.pending import PendingFunction

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
def test_nothing_is_tried_again_unasked(pool: sky.Pool, log: str, kind: str) -> None:
    """One attempt, and its error."""
    with pytest.raises(ERRORS[kind]):
        limited(attempt(log, kind), kind) >> pool
    assert attempts(log) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_failure_is_tried_again(pool: sky.Pool, log: str, kind: str) -> None:
    """Once, where one more attempt was asked for and is enough."""
    assert limited(attempt(log, kind).with_retries(1), kind) >> pool == 2
    assert attempts(log) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_exhausted_retries_raise_the_last_failure(pool: sky.Pool, log: str, kind: str) -> None:
    """There are as many attempts more as `retries` says, and not one beyond."""
    with pytest.raises(ERRORS[kind]) as caught:
        limited(attempt(log, *[kind] * 5).with_retries(2), kind) >> pool
    assert attempts(log) == 3
    if kind in {"raise", "sys.exit"}:
        assert "attempt 3" in str(caught.value)
    if isinstance(caught.value, sky.WorkerDiedError):
        how = {"exit": (3, None), "kill": (None, "SIGKILL"), "crash": (None, "SIGSEGV")}
        assert (caught.value.exit_code, caught.value.signal) == how[kind]


@pytest.mark.slow
def test_one_budget_for_all_kinds_of_failure(pool: sky.Pool, log: str) -> None:
    """An exception, two deaths and a timeout are four attempts; the last failure is what is raised."""
    plan = ("raise", "hang", "exit", "kill")
    with pytest.raises(sky.WorkerDiedError, match="SIGKILL"):
        # The workers that stand in for the dead ones import this module within the timeout.
        attempt(log, *plan).with_timeout(2.0).with_retries(3) >> pool
    assert attempts(log) == 4
    other = log + "2"
    assert attempt(other, "raise", "exit", "raise", "kill").with_retries(4) >> pool == 5
    assert attempts(other) == 5


@pytest.mark.parametrize("retries", [0, 1, 5])
def test_success_ends_it(pool: sky.Pool, log: str, retries: int) -> None:
    """What worked is not done again."""
    assert attempt(log).with_retries(retries) >> pool == 1
    assert attempts(log) == 1


def test_number_may_be_given_with_the_function_or_the_call(pool: sky.Pool, log: str) -> None:
    """The call's word counts, up and down."""
    twice = sky.function(retries=2)(attempt.local)
    assert twice(log + "a", "raise", "raise") >> pool == 3
    with pytest.raises(ConnectionError, match="attempt 1"):
        twice(log + "b", "raise", "raise").with_retries(0) >> pool
    assert twice(log + "c", *["raise"] * 4).with_retries(4) >> pool == 5
    assert [attempts(log + name) for name in "abc"] == [3, 1, 5]


@pytest.mark.slow
def test_each_attempt_after_a_timeout_has_a_fresh_clock(pool: sky.Pool, log: str) -> None:
    """What is left of the last one does not count."""

    @sky.function(timeout=1.0, retries=2)
    def slower_each_time(log: str) -> int:
        number = note(log)
        threading.Event().wait((60, 60, 0.1)[number - 1])
        return number

    began = time.monotonic()
    assert slower_each_time(log) >> pool == 3
    assert 2 * 1.0 + 0.1 <= time.monotonic() - began < 30


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


def test_time_in_the_queue_is_not_time_of_an_attempt(pool: sky.Pool, log: str, tmp_path: Path) -> None:
    """Both nodes are busy for longer than the timeout."""
    gate = tmp_path / "gate"
    holding = [pool.run_async(hold(str(gate)), target=node) for node in range(2)]
    until(lambda: pool.snapshot()["running"] == 2)
    waiting = attempt(log, "raise").with_timeout(0.3).with_retries(1) > pool
    with pytest.raises(TimeoutError):
        waiting.result(timeout=0.5)
    assert attempts(log) == 0
    gate.touch()
    assert waiting.result(timeout=20) == 2
    assert [future.result(timeout=20) for future in holding] == [None, None]


def test_futures_groups_and_maps_count_for_each_call(pool: sky.Pool, log: str) -> None:
    """One call's failures cost the others nothing."""
    future = attempt(log + "a", "raise", "exit").with_retries(2) > pool
    pair = (attempt(log + "b", "exit").with_retries(1) & attempt(log + "c")) >> pool
    assert (future.result(timeout=20), pair) == (3, (2, 1))

    @sky.function(retries=1)
    def one(name: str) -> int:
        return attempt.local(log + name, "raise")

    assert pool.map(one, ["d", "e", "f"]) == [2, 2, 2]
    kept = sky.gather(
        attempt(log + "g", "raise", "raise").with_retries(1),
        attempt(log + "h", "raise").with_retries(1),
        return_exceptions=True,
    )
    first, second = kept >> pool
    assert isinstance(first, ConnectionError)
    assert second == 2
    assert [attempts(log + name) for name in "abcdefgh"] == [3, 2, 1, 2, 2, 2, 2, 2]


def test_broadcast_is_tried_again_as_a_whole(pool: sky.Pool, log: str) -> None:
    """The rank that had done its part does it again."""

    @sky.function
    def part(log: str, failures: int) -> int:
        node = sky.instance_info().node
        number = note(f"{log}{node}")
        if node == 1 and number <= failures:
            until(lambda: attempts(f"{log}0") == number)
            raise ConnectionError(f"attempt {number}")
        return number

    assert part(log + "a", 2).with_retries(2) @ pool == [3, 3]
    assert [attempts(f"{log}a{node}") for node in range(2)] == [3, 3]
    with pytest.raises(ConnectionError, match="attempt 2"):
        part(log + "b", 9).with_retries(1) @ pool
    assert [attempts(f"{log}b{node}") for node in range(2)] == [2, 2]
    with pytest.raises(ConnectionError, match="attempt 1"):
        part(log + "c", 9) @ pool
    assert [attempts(f"{log}c{node}") for node in range(2)] == [1, 1]


@pytest.mark.parametrize("target", [0, 1])
def test_call_for_one_node_is_tried_again_there(pool: sky.Pool, log: str, target: int) -> None:
    """Also after the death of its worker."""

    @sky.function(retries=3)
    def where(log: str) -> int:
        with open(log + ".nodes", "a") as file:
            file.write(str(sky.instance_info().node))
        return attempt.local(log, "raise", "exit", "raise")

    assert pool.run(where(log), target=target) == 4
    assert Path(log + ".nodes").read_text() == str(target) * 4


def test_cancelled_call_is_not_tried_again(pool: sky.Pool, log: str) -> None:
    """However many attempts are left."""
    future = attempt(log, *["hang"] * 9).with_retries(9) > pool
    until(lambda: attempts(log) == 1)
    assert future.cancel()
    until(lambda: pool.snapshot()["running"] == 0)
    with pytest.raises(CancelledError):
        future.result(timeout=5)
    assert ok() @ pool == ["ok", "ok"]
    assert attempts(log) == 1


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
        # Nobody can see from outside when the other call's cancellation has arrived in this worker.
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
    assert [event.error is None for event in ended] == [False, False, True]


@pytest.mark.slow
def test_retries_in_threads(log: str) -> None:
    """An attempt that times out in one thread; a crash that takes the siblings, each under its own `retries`."""
    with sky.Compute(console="silent", concurrency=3) as pool:
        assert ok() >> pool == "ok"
        assert attempt(log + "a", "hang", "raise").with_timeout(0.3).with_retries(2) >> pool == 3
        insistent = attempt(log + "b", "hang").with_retries(1) > pool
        modest = attempt(log + "c", "hang") > pool
        until(lambda: attempts(log + "b") == attempts(log + "c") == 1)
        with pytest.raises(sky.WorkerDiedError, match="this call crashed it"):
            attempt(log + "d", "crash") >> pool
        assert insistent.result(timeout=20) == 2
        with pytest.raises(sky.WorkerDiedError, match="which ran in the same process, crashed it"):
            modest.result(timeout=20)
    assert [attempts(log + name) for name in "abcd"] == [3, 2, 1, 1]


@pytest.mark.slow
def test_loss_of_the_node_is_no_attempt(log: str) -> None:
    """`retries` are for what the function did; the loss of the node has a number of its own."""

    @sky.function(retries=1)
    def unlucky(log: str) -> int:
        number = note(log)
        if number == 1:
            os.kill(os.getppid(), signal.SIGKILL)
            threading.Event().wait(60)
        if number == 2:
            raise ConnectionError
        return number

    with sky.Compute(nodes=2, console="silent", retry_on_interruption=1) as pool:
        assert unlucky(log) >> pool == 3
    assert attempts(log) == 3


@pytest.mark.slow
def test_loss_of_a_node_costs_the_calls_of_other_nodes_nothing(tmp_path: Path) -> None:
    """Also on the nodes whose numbers begin with the lost one's."""
    gate = tmp_path / "gate"
    replaced: list[sky.InstanceReplaced] = []
    pool = sky.Compute(nodes=11, console="silent", retry_on_interruption=0).on(sky.InstanceReplaced, replaced.append)
    with pool:
        agents = sky.function(os.getppid)() @ pool
        future = pool.run_async(hold(str(gate)), target=10)
        until(lambda: pool.snapshot()["running"] == 1)
        os.kill(agents[1], signal.SIGKILL)
        until(lambda: replaced)
        until(lambda: pool.current_nodes() == 11)
        gate.touch()
        assert future.exception(timeout=20) is None
    assert [event.node for event in replaced] == [1]


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


def until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)
