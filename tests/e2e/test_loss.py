"""Nodes that freeze, or whose agents are killed, on this machine: noticed, passed by, used again, replaced."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from skyward.engine.pool.event_loop import engine_loop

pytestmark = pytest.mark.slow

QUICK: dict[str, Any] = {"suspect_timeout": 2.0, "lost_timeout": 8.0, "console": "silent", "logging": False}


@sky.function
def whereabouts() -> tuple[int, int]:
    """Give the agent's process and the worker's."""
    return os.getppid(), os.getpid()


@sky.function
def take(runs: str, seconds: float) -> int:
    """Note that this runs, take so long and tell in which worker."""
    with open(runs, "a") as file:
        file.write(f"{os.getpid()}\n")
    time.sleep(seconds)
    return os.getpid()


@sky.function
def wait_for(runs: str, go: str) -> int:
    """Note that this runs, and wait until a file is there."""
    with open(runs, "a") as file:
        file.write(f"{os.getpid()}\n")
    while not os.path.exists(go):
        time.sleep(0.01)
    return os.getpid()


def until(condition: Callable[[], object], what: str, seconds: float = 30.0) -> float:
    """Wait for a condition, and return how many seconds that took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() < began + seconds, what
        time.sleep(0.01)
    return time.monotonic() - began


def runs_of(path: Path) -> list[int]:
    """List the workers in which a call has begun."""
    return [int(line) for line in path.read_text().split()] if path.exists() else []


@contextlib.contextmanager
def frozen(*pids: int) -> Iterator[None]:
    """Stop processes for as long as the block lasts; those that are gone at its end are none of ours."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def opened(heard: list[Any], **options: Any) -> Any:
    """Open a pool of two nodes, whose events are collected."""
    return sky.Compute(nodes=2, on_event=heard.append, **{**QUICK, **options})


def of(heard: list[Any], kind: type[Any]) -> list[Any]:
    """List the events of a kind."""
    return [event for event in list(heard) if isinstance(event, kind)]


@pytest.mark.parametrize("whole", [False, True], ids=["agent", "tree"])
def test_a_frozen_node_is_noticed_and_its_call_runs_elsewhere(tmp_path: Path, whole: bool) -> None:
    """And its own result counts no more, once another has; it is used again when it is heard."""
    heard: list[Any] = []
    with opened(heard) as pool:
        nodes = {worker: agent for agent, worker in whereabouts() @ pool}
        future = wait_for(str(tmp_path / "runs"), str(tmp_path / "go")) > pool
        until(lambda: runs_of(tmp_path / "runs"), "the call does not begin")
        [worker] = runs_of(tmp_path / "runs")
        with frozen(nodes[worker], *([worker] if whole else [])):
            noticed = until(lambda: of(heard, sky.NodeSuspected), "the node is not suspected")
            elsewhere = until(lambda: len(runs_of(tmp_path / "runs")) == 2, "the call is not begun elsewhere")
            print(f"noticed after {noticed:.2f} s, begun elsewhere {elsewhere:.2f} s later")
            assert noticed < 3.5
            assert elsewhere < 1.0
            (tmp_path / "go").touch()
            assert future.result(10) in set(nodes) - {worker}
        until(lambda: of(heard, sky.NodeRecovered), "the node is not used again")
        assert set(nodes) == {worker for _, worker in whereabouts() @ pool}
    assert [] == of(heard, sky.InstancePreempted)
    assert 1 == len([event for event in of(heard, sky.TaskCompleted) if event.success and event.function == "wait_for"])


def test_a_result_of_a_node_that_comes_back_counts(tmp_path: Path) -> None:
    """The copy that was begun elsewhere is stopped."""
    heard: list[Any] = []
    with opened(heard) as pool:
        nodes = {worker: agent for agent, worker in whereabouts() @ pool}
        future = take(str(tmp_path / "runs"), 4.0) > pool
        until(lambda: runs_of(tmp_path / "runs"), "the call does not begin")
        [worker] = runs_of(tmp_path / "runs")
        with frozen(nodes[worker]):
            until(lambda: len(runs_of(tmp_path / "runs")) == 2, "the call is not begun elsewhere")
        assert worker == future.result(10)
        until(lambda: pool.snapshot()["running"] == 0, "the copy is not stopped", 3.0)


def test_a_frozen_node_is_replaced(tmp_path: Path) -> None:
    """After `lost_timeout`; its call has long been answered, and nothing of the old one is left."""
    heard: list[Any] = []
    with opened(heard) as pool:
        agents = [agent for agent, _ in whereabouts() @ pool]
        with frozen(agents[0]):
            lost = until(lambda: of(heard, sky.InstancePreempted), "the node is not lost")
            print(f"lost after {lost:.2f} s")
            assert 6.5 < lost < 10.0
            until(lambda: not Path(f"/proc/{agents[0]}").exists(), "the old agent is left")
        until(lambda: len(whereabouts() @ pool) == 2, "the node is not replaced")
    assert ["silence"] == [event.cause for event in of(heard, sky.InstancePreempted)]


def test_a_call_that_may_run_once_waits_for_its_node(tmp_path: Path) -> None:
    """With `retry_on_interruption=0` nothing is begun twice."""
    heard: list[Any] = []
    with opened(heard, retry_on_interruption=0) as pool:
        nodes = {worker: agent for agent, worker in whereabouts() @ pool}
        future = take(str(tmp_path / "runs"), 1.0) > pool
        until(lambda: runs_of(tmp_path / "runs"), "the call does not begin")
        [worker] = runs_of(tmp_path / "runs")
        with frozen(nodes[worker]):
            until(lambda: of(heard, sky.NodeSuspected), "the node is not suspected")
            time.sleep(0.5)
        assert worker == future.result(10)
    assert [worker] == runs_of(tmp_path / "runs")


def test_a_timeout_fires_although_the_node_is_frozen(tmp_path: Path) -> None:
    """By the client's clock."""
    heard: list[Any] = []
    with opened(heard, retry_on_interruption=0) as pool:
        nodes = {worker: agent for agent, worker in whereabouts() @ pool}
        began = time.monotonic()
        future = take(str(tmp_path / "runs"), 60.0).with_timeout(3.0) > pool
        until(lambda: runs_of(tmp_path / "runs"), "the call does not begin")
        with frozen(nodes[runs_of(tmp_path / "runs")[0]]):
            with pytest.raises(sky.TaskTimeoutError, match="by the client's clock, as its node is silent"):
                future.result(20)
            assert time.monotonic() - began < 6.0


def test_an_agent_that_is_killed_is_noticed_at_once(tmp_path: Path) -> None:
    """In words of its own: an agent that ended is no silence."""
    heard: list[Any] = []
    with opened(heard) as pool:
        nodes = {worker: agent for agent, worker in whereabouts() @ pool}
        future = take(str(tmp_path / "runs"), 2.0) > pool
        until(lambda: runs_of(tmp_path / "runs"), "the call does not begin")
        os.kill(nodes[runs_of(tmp_path / "runs")[0]], signal.SIGKILL)
        noticed = until(lambda: of(heard, sky.InstancePreempted), "the loss is not noticed")
        elsewhere = until(lambda: len(runs_of(tmp_path / "runs")) == 2, "the call is not begun elsewhere")
        print(f"noticed after {noticed:.3f} s, begun elsewhere {elsewhere:.3f} s later")
        assert noticed < 1.0
        assert elsewhere < 1.0
        future.result(20)
    assert ["agent"] == [event.cause for event in of(heard, sky.InstancePreempted)]
    assert [] == of(heard, sky.NodeSuspected)


def test_a_client_that_stood_still_suspects_no_node() -> None:
    """What it did not read it cannot have missed."""
    heard: list[Any] = []
    with opened(heard) as pool:
        whereabouts() @ pool
        engine_loop().post(time.sleep, 5.0)
        time.sleep(1.0)
        assert 2 == len(whereabouts() @ pool)
    assert [] == of(heard, sky.NodeSuspected)
