"""A worker that dies, hangs or overruns harms what semantics say, and no more."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import skyward as sky


@sky.function
def pid() -> int:
    return os.getpid()


@sky.function
def crash() -> None:
    print("about to crash")
    ctypes.string_at(0)


@sky.function
def leave(code: int) -> None:
    print("leaving now")
    os._exit(code)


@sky.function
def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@sky.function
def sleep(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def doze() -> None:
    while True:
        try:
            time.sleep(0.01)
        except BaseException:
            continue


@sky.function
def stubborn() -> None:
    while True:
        # What comes while `doze` is about to begin again is caught here.
        try:
            doze()
        except BaseException:
            continue


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "facts", "message"),
    [
        (
            crash(),
            {"signal": "SIGSEGV", "exit_code": None},
            r"(?s)crash\(\) on node \d .* killed by SIGSEGV.*string_at.*in crash",
        ),
        (leave(3), {"signal": None, "exit_code": 3}, r"(?s)exited with code 3.*leaving now"),
        (killed(), {"signal": "SIGKILL", "exit_code": None}, "out-of-memory killer"),
    ],
)
def test_dead_worker_is_one_error_and_is_replaced(
    pool: sky.Pool, call: Any, facts: dict[str, Any], message: str
) -> None:
    """It says how the worker ended, and its last lines; the next calls run."""
    before = pid() @ pool
    with pytest.raises(sky.WorkerDiedError, match=message) as caught:
        call >> pool
    assert {name: getattr(caught.value, name) for name in facts} == facts
    after = pid() @ pool
    assert len(set(before) & set(after)) == 1


def test_queued_calls_survive_the_death_of_their_worker() -> None:
    """What was sent ahead to it and had not begun is not lost."""
    with sky.Compute(console="silent") as pool:
        assert pool.map(lambda x: x, range(200)) == list(range(200))
        futures = [sky.function(lambda x: x)(i) > pool for i in range(50)]
        dead = leave(1) > pool
        futures += [sky.function(lambda x: x)(i) > pool for i in range(50)]
        assert [future.result(timeout=30) for future in futures] == [*range(50)] * 2
        assert isinstance(dead.exception(), sky.WorkerDiedError)


@pytest.mark.slow
def test_call_that_catches_everything_ends_with_its_process(pool: sky.Pool) -> None:
    """After a grace of five seconds."""
    began = time.monotonic()
    with pytest.raises(sky.TaskTimeoutError):
        # Long enough for a slow machine to have begun with it.
        stubborn().with_timeout(2) >> pool
    assert 5 <= time.monotonic() - began < 30
    assert len(pid() @ pool) == 2


@pytest.mark.slow
def test_call_that_holds_the_interpreter_in_c_ends_with_its_process(pool: sky.Pool) -> None:
    """No thread of the worker can run meanwhile, and still the timeout holds."""

    @sky.function
    def hold() -> None:
        ctypes.PyDLL(None).sleep(60)

    began = time.monotonic()
    with pytest.raises(sky.TaskTimeoutError):
        hold().with_timeout(0.2) >> pool
    assert time.monotonic() - began < 30


@pytest.mark.slow
def test_siblings_in_one_process_fail_with_the_culprits_name() -> None:
    """With threads, a crash takes the whole process."""
    with sky.Compute(console="silent", concurrency=3) as pool:
        siblings = [sleep(30) > pool for _ in range(2)]
        _until(lambda: pool.snapshot()["running"] == 2)
        with pytest.raises(sky.WorkerDiedError, match="this call crashed it"):
            crash() >> pool
        for sibling in siblings:
            with pytest.raises(sky.WorkerDiedError, match=r"crash\(\), which ran in the same process, crashed it"):
                sibling.result(timeout=20)


@pytest.mark.slow
def test_threads_are_interrupted_at_their_next_bytecode() -> None:
    """A timeout in one thread leaves the others alone."""

    @sky.function
    def spin() -> None:
        while True:
            pass

    with sky.Compute(console="silent", concurrency=2) as pool:
        other = sleep(0.5) > pool
        before = pid() >> pool
        with pytest.raises(sky.TaskTimeoutError):
            spin().with_timeout(0.1) >> pool
        assert other.result() == 0.5
        assert pid() >> pool == before


class Dropped:
    """Wait in a finalizer, where Python drops what comes up."""

    def __del__(self) -> None:
        time.sleep(2)


@pytest.mark.slow
@pytest.mark.parametrize("slots", [1, 2], ids=["main thread", "threads"])
def test_an_interrupt_that_python_drops_comes_again(slots: int) -> None:
    """The call ends within its grace, so that its process is kept."""

    @sky.function
    def goes_on() -> None:
        Dropped()
        while True:
            time.sleep(0.01)

    with sky.Compute(console="silent", concurrency=slots) as pool:
        before = pid() >> pool
        with pytest.raises(sky.TaskTimeoutError):
            goes_on().with_timeout(0.5) >> pool
        assert before == pid() >> pool


@pytest.mark.slow
@pytest.mark.parametrize("slots", [1, 2], ids=["main thread", "threads"])
def test_what_an_interrupt_leads_to_is_not_interrupted(tmp_path: Path, slots: int) -> None:
    """A `finally` has the whole grace, also in a function that it calls."""

    @sky.function
    def cleans_up() -> None:
        try:
            while True:
                time.sleep(0.01)
        finally:
            time.sleep(2.5)
            (tmp_path / "cleaned").touch()

    with sky.Compute(console="silent", concurrency=slots) as pool, pytest.raises(sky.TaskTimeoutError):
        cleans_up().with_timeout(0.3) >> pool
    assert (tmp_path / "cleaned").exists()


@pytest.mark.slow
def test_processes_are_isolated_from_each_other() -> None:
    """With `executor="process"` each call has a process to itself."""
    with sky.Compute(console="silent", concurrency=2, executor="process") as pool:
        sibling = sleep(0.5) > pool
        with pytest.raises(sky.WorkerDiedError):
            leave(1) >> pool
        assert sibling.result(timeout=20) == 0.5
        assert sky.function(lambda: sky.instance_info().total_workers)() >> pool == 1


@pytest.mark.slow
def test_fresh_process_for_each_call() -> None:
    """`reuse_processes=False` gives no process twice."""
    with sky.Compute(console="silent", executor="process", reuse_processes=False) as pool:
        assert len(set(pool.map(lambda _: os.getpid(), range(3)))) == 3


@pytest.mark.slow
def test_several_ranks_on_a_node() -> None:
    """A broadcast reaches each once, and each knows its place."""

    def whoami() -> tuple[int, int, int, int, bool]:
        info = sky.instance_info()
        return info.node, info.worker, info.global_worker_index, info.total_workers, info.is_head

    with sky.Compute(nodes=2, per_node=2, console="silent") as pool:
        assert sky.function(whoami)() @ pool == [
            (0, 0, 0, 4, True),
            (0, 1, 1, 4, False),
            (1, 0, 2, 4, False),
            (1, 1, 3, 4, False),
        ]
        parts = sky.function(lambda: sky.shard(list(range(10))))() @ pool
        assert [item for part in parts for item in part] == list(range(10))


@pytest.mark.slow
def test_lost_node_is_replaced_and_its_calls_tried_again() -> None:
    """The caller notices nothing but the time."""
    replaced: list[sky.InstanceReplaced] = []
    with sky.Compute(nodes=2, console="silent") as pool:
        pool.on(sky.InstanceReplaced, replaced.append)
        parents = sky.function(os.getppid)() @ pool
        futures = [sleep(0.5) > pool for _ in range(4)]
        _until(lambda: pool.snapshot()["running"] == 2)
        os.kill(parents[0], signal.SIGKILL)
        assert [future.result(timeout=30) for future in futures] == [0.5] * 4
        _until(lambda: pool.current_nodes() == 2)
        assert sky.function(lambda: sky.instance_info().total_nodes)() @ pool == [2, 2]
        _until(lambda: len(replaced) == 1)


def _until(condition: Callable[[], object]) -> None:
    """Wait for a condition, no longer than 20 seconds."""
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@sky.function
def scribble() -> None:
    os.write(3, b"\xff" * 64)
    time.sleep(30)


@pytest.mark.slow
def test_code_that_writes_to_our_socket_costs_its_own_task() -> None:
    """The error says what it did; the next call runs."""
    with sky.Compute(console="silent") as pool:
        with pytest.raises(sky.WorkerDiedError, match="descriptor 3"):
            scribble() >> pool
        assert sleep(0) >> pool == 0


@pytest.mark.slow
def test_call_for_a_node_that_is_given_up_fails() -> None:
    """It would wait for ever."""
    with sky.Compute(nodes=(2, 2), console="silent") as pool:
        running = [pool.run_async(sleep(30), target=node) for node in (0, 1)]
        waiting = [pool.run_async(sleep(0), target=node) for node in (0, 1)]
        pool.resize(1)
        for call in running:
            call.cancel()
        failures = [call.exception(20) for call in waiting]
    assert sorted(type(failure) for failure in failures if failure) == [sky.NodeLostError]


@sky.function
def meet(name: str) -> bool:
    import sys
    import threading

    barriers = sys.__dict__.setdefault("barriers", {})
    barriers.setdefault(name, threading.Barrier(2)).wait(10)
    return True


@pytest.mark.slow
def test_calls_that_need_each_other_meet_after_lone_ones() -> None:
    """However they arrive, a second thread reads while the first runs."""
    with sky.Compute(concurrency=2, console="silent") as pool:
        for turn in range(100):
            assert sleep(0) >> pool == 0
            first = meet(f"{turn}") > pool
            assert meet(f"{turn}") >> pool
            assert first.result(10)
            assert (meet(f"{turn}!") & meet(f"{turn}!")) >> pool == (True, True)


@pytest.mark.slow
def test_signal_without_a_name_is_told_by_its_number() -> None:
    """Programs may use some for themselves; the next call runs."""
    suicide = sky.function(lambda: os.kill(os.getpid(), 44))
    with sky.Compute(console="silent") as pool:
        with pytest.raises(sky.WorkerDiedError, match="signal 44"):
            suicide() >> pool
        assert sleep(0) >> pool == 0
