"""Calls that are tried again, on whichever node, go on from what they saved."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import skyward as sky
from skyward.errors import CheckpointError, SerializationError, UsageError

MIB = 1 << 20


@sky.function
def train(steps: int, dies: dict[int, str], to: str | None = None, size: int = 10) -> list[tuple[int, int]]:
    """Do steps, each of them once, whatever ends the attempts; give the process that did each."""
    saved = sky.checkpoint(to=to)
    state = saved.load({"done": [], "numbers": np.zeros(size)})
    assert (state["numbers"] == len(state["done"])).all()
    while (step := len(state["done"])) < steps:
        state = {"done": [*state["done"], (step, os.getpid())], "numbers": np.full(size, step + 1.0)}
        saved.save(state)
        match dies.get(step):
            case "raise":
                raise ConnectionError(step)
            case "exit":
                os._exit(1)
            case "node":
                os.kill(os.getppid(), signal.SIGKILL)
                time.sleep(60)
    return state["done"]


def processes(done: list[tuple[int, int]]) -> int:
    """Count the processes that did the steps, each of which was done once."""
    assert [*range(len(done))] == [step for step, _ in done]
    return len({process for _, process in done})


@pytest.mark.parametrize("size", [10, 400_000])
def test_an_attempt_goes_on_where_the_one_before_was(pool: sky.Pool, size: int) -> None:
    """After an exception, and after its worker died: from the client, also in many pieces."""
    assert 2 <= processes(train(6, {1: "raise", 3: "exit"}, size=size).with_retries(3) >> pool)


def test_a_call_goes_on_after_its_node_was_lost() -> None:
    """On the node that takes its place."""
    with sky.Compute(nodes=1, console="silent") as pool:
        assert 2 == processes(train(4, {1: "node"}, size=400_000) >> pool)


def test_a_folder_does_as_well(pool: sky.Pool, tmp_path: Path) -> None:
    """Nothing goes to the client."""
    to = str(tmp_path / "checkpoints")
    assert 2 <= processes(train(6, {1: "raise", 3: "exit"}, to).with_retries(3) >> pool)
    assert 1 == len(os.listdir(to))


def test_calls_have_their_own(pool: sky.Pool) -> None:
    """The same function with the same arguments is another call."""
    assert [3, 3, 3] == [len(done) for done in sky.gather(*[train(3, {}) for _ in range(3)]) >> pool]
    assert [1, 2, 3] == [len(done) for done in pool.map(lambda steps: train.local(steps, {}), [1, 2, 3])]


@sky.function
def ranks(log: str) -> tuple[int, int]:
    """Fail once after all ranks have saved; give what was loaded."""
    rank = sky.instance_info().global_worker_index
    saved = sky.checkpoint()
    number, whose = saved.load((0, rank))
    saved.save((number + 1, rank))
    sky.exchange("saved")
    if not number and rank == 1:
        raise ConnectionError("once")
    return number, whose


def test_a_broadcast_that_is_repeated_finds_that_of_each_rank(pool: sky.Pool, tmp_path: Path) -> None:
    """And the next broadcast has its own."""
    assert [(1, 0), (1, 1)] == ranks(str(tmp_path)).with_retries(1) @ pool
    with pytest.raises(ConnectionError):
        ranks(str(tmp_path)) @ pool


@sky.function
def both() -> tuple[Any, Any]:
    one, other = sky.checkpoint("one"), sky.checkpoint("other")
    one.save(1)
    other.save(2)
    return one.load(), other.load()


def test_a_call_may_have_several(pool: sky.Pool) -> None:
    """By their names."""
    assert (1, 2) == both() >> pool


@sky.function
def count(key: str) -> int:
    saved = sky.checkpoint(key=key)
    number: int = saved.load(0) + 1
    saved.save(number)
    return number


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the client a folder for its state."""
    monkeypatch.setenv("SKYWARD_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


def test_a_key_outlives_its_pool(state: Path) -> None:
    """In calls, in the next pool, and in the program; nothing else is left."""
    for number in (1, 3):
        with sky.Compute(console="silent") as pool:
            assert [number, number + 1] == [count("run-7") >> pool for _ in range(2)]
            train(2, {}) >> pool
    assert 4 == sky.checkpoint(key="run-7").load()
    assert [3, 4] == sky.checkpoint(key="run-7").versions()
    assert [] == [path.name for path in (state / "checkpoints" / "pools").iterdir() if path.is_dir()]


@sky.function
def side_by_side(size: int) -> list[int]:
    """Save at several addresses at once, from threads."""
    saved = [sky.checkpoint(str(number)) for number in range(4)]
    threads = [threading.Thread(target=each.save, args=(np.full(size, at),)) for at, each in enumerate(saved)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [int(each.load().mean()) for each in saved]


def test_threads_of_a_call_save_side_by_side(pool: sky.Pool) -> None:
    """They share the worker's window."""
    assert [0, 1, 2, 3] == side_by_side(MIB // 2) >> pool


@pytest.mark.parametrize("executor", ["thread", "process"])
def test_calls_that_run_side_by_side_have_their_own(executor: Any) -> None:
    """In one process and in several."""
    worker = sky.Worker(concurrency=4, executor=executor)
    with sky.Compute(console="silent", options=sky.Options(worker=worker)) as pool:
        done = sky.gather(*[train(steps, {}, size=50_000) for steps in range(1, 9)]) >> pool
        assert [*range(1, 9)] == list(map(len, done))


@sky.function
def in_a_thread() -> str:
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(sky.checkpoint().address))
    thread.start()
    thread.join()
    assert found == [sky.checkpoint().address]
    return found[0]


def test_a_thread_of_the_only_call_has_its_checkpoint(pool: sky.Pool) -> None:
    """As it has its place."""
    assert (in_a_thread() >> pool).startswith("call-")


@sky.function
def forked() -> str:
    saved = sky.checkpoint()
    process = os.fork()
    if not process:
        try:
            saved.save(1)
        except UsageError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 7
    saved.save(2)
    return str(saved.load())


def test_a_process_that_a_task_forked_cannot_reach_the_client(pool: sky.Pool) -> None:
    """The task itself still can."""
    assert "2" == forked() >> pool


@sky.function
def cannot(what: str) -> list[int]:
    saved = sky.checkpoint()
    saved.save("before")
    saved.save(threading.Lock() if what == "lock" else [sky.put(1)])
    return saved.versions()


@pytest.mark.parametrize(("what", "error"), [("lock", SerializationError), ("ref", sky.RefError)])
def test_what_cannot_be_pickled_is_said(pool: sky.Pool, what: str, error: type[Exception]) -> None:
    """By the errors of arguments."""
    with pytest.raises(error):
        cannot(what) >> pool


@sky.function
def large(size: int) -> int:
    saved = sky.checkpoint()
    saved.save(np.ones(size))
    return int(saved.load().sum())


def test_a_full_disk_of_the_client_is_said(pool: sky.Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its number; the next one that fits is kept."""
    with monkeypatch.context() as patched:
        patched.setattr("skyward.engine.pool.kept_versions.RESERVE", 1 << 60)
        with pytest.raises(
            CheckpointError, match=r"could not be saved in the client: No space left.*stay free"
        ) as caught:
            large(MIB) >> pool
    assert 28 == caught.value.errno
    assert MIB == large(MIB) >> pool
