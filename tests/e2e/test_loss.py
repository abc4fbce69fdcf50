"""Nodes that freeze, or whose agents are killed, on this machine: noticed, passed by, used again, replaced."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from skyward.engine.pool.event_loop import engine_loop
from tests.freezing import frozen, runs_of
from tests.heard import of
from tests.waiting import seconds_until, until

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


def opened(heard: list[Any], **options: Any) -> Any:
    """Open a pool of two nodes, whose events are collected."""
    return sky.Compute(nodes=2, on_event=heard.append, **{**QUICK, **options})


@pytest.mark.parametrize("whole", [False, True], ids=["agent", "tree"])
def test_a_frozen_node_is_noticed_and_its_call_runs_elsewhere(tmp_path: Path, whole: bool) -> None:
    """And its own result counts no more, once another has; it is used again when it is heard."""
    heard: list[Any] = []
    with opened(heard) as pool:
        nodes = {worker: agent for agent, worker in whereabouts() @ pool}
        future = wait_for(str(tmp_path / "runs"), str(tmp_path / "go")) > pool
        until(lambda: runs_of(tmp_path / "runs"), what="the call does not begin")
        [worker] = map(int, runs_of(tmp_path / "runs"))
        with frozen(nodes[worker], *([worker] if whole else [])):
            noticed = seconds_until(lambda: of(heard, sky.NodeSuspected), what="the node is not suspected")
            elsewhere = seconds_until(
                lambda: len(runs_of(tmp_path / "runs")) == 2, what="the call is not begun elsewhere"
            )
            print(f"noticed after {noticed:.2f} s, begun elsewhere {elsewhere:.2f} s later")
            assert noticed < 3.5
            assert elsewhere < 1.0
            (tmp_path / "go").touch()
            assert future.result(10) in set(nodes) - {worker}
        until(lambda: of(heard, sky.NodeRecovered), what="the node is not used again")
        assert set(nodes) == {worker for _, worker in whereabouts() @ pool}
    assert [] == of(heard, sky.InstancePreempted)
    assert 1 == len([event for event in of(heard, sky.TaskCompleted) if event.success and event.function == "wait_for"])


def test_a_result_of_a_node_that_comes_back_counts(tmp_path: Path) -> None:
    """The copy that was begun elsewhere is stopped."""
    heard: list[Any] = []
    with opened(heard) as pool:
        nodes = {worker: agent for agent, worker in whereabouts() @ pool}
        future = take(str(tmp_path / "runs"), 4.0) > pool
        until(lambda: runs_of(tmp_path / "runs"), what="the call does not begin")
        [worker] = map(int, runs_of(tmp_path / "runs"))
        with frozen(nodes[worker]):
            until(lambda: len(runs_of(tmp_path / "runs")) == 2, what="the call is not begun elsewhere")
        assert worker == future.result(10)
        until(lambda: pool.snapshot()["running"] == 0, 3.0, what="the copy is not stopped")


def test_a_frozen_node_is_replaced(tmp_path: Path) -> None:
    """After `lost_timeout`; its call has long been answered, and nothing of the old one is left."""
    heard: list[Any] = []
    with opened(heard) as pool:
        agents = [agent for agent, _ in whereabouts() @ pool]
        with frozen(agents[0]):
            lost = seconds_until(lambda: of(heard, sky.InstancePreempted), what="the node is not lost")
            print(f"lost after {lost:.2f} s")
            assert 6.5 < lost < 10.0
            until(lambda: not Path(f"/proc/{agents[0]}").exists(), what="the old agent is left")
        until(lambda: len(whereabouts() @ pool) == 2, what="the node is not replaced")
    assert ["silence"] == [event.cause for event in of(heard, sky.InstancePreempted)]


def test_a_call_that_may_run_once_waits_for_its_node(tmp_path: Path) -> None:
    """With `retry_on_interruption=0` nothing is begun twice."""
    heard: list[Any] = []
    with opened(heard, retry_on_interruption=0) as pool:
        nodes = {worker: agent for agent, worker in whereabouts() @ pool}
        future = take(str(tmp_path / "runs"), 1.0) > pool
        until(lambda: runs_of(tmp_path / "runs"), what="the call does not begin")
        [worker] = map(int, runs_of(tmp_path / "runs"))
        with frozen(nodes[worker]):
            until(lambda: of(heard, sky.NodeSuspected), what="the node is not suspected")
            time.sleep(0.5)
        assert worker == future.result(10)
    assert [str(worker)] == runs_of(tmp_path / "runs")


def test_a_timeout_fires_although_the_node_is_frozen(tmp_path: Path) -> None:
    """By the client's clock."""
    heard: list[Any] = []
    with opened(heard, retry_on_interruption=0) as pool:
        nodes = {worker: agent for agent, worker in whereabouts() @ pool}
        began = time.monotonic()
        future = take(str(tmp_path / "runs"), 60.0).with_timeout(3.0) > pool
        until(lambda: runs_of(tmp_path / "runs"), what="the call does not begin")
        with frozen(nodes[int(runs_of(tmp_path / "runs")[0])]):
            with pytest.raises(sky.TaskTimeoutError, match="by the client's clock, as its node is silent"):
                future.result(20)
            assert time.monotonic() - began < 6.0


def test_an_agent_that_is_killed_is_noticed_at_once(tmp_path: Path) -> None:
    """In words of its own: an agent that ended is no silence."""
    heard: list[Any] = []
    with opened(heard) as pool:
        nodes = {worker: agent for agent, worker in whereabouts() @ pool}
        future = take(str(tmp_path / "runs"), 2.0) > pool
        until(lambda: runs_of(tmp_path / "runs"), what="the call does not begin")
        os.kill(nodes[int(runs_of(tmp_path / "runs")[0])], signal.SIGKILL)
        noticed = seconds_until(lambda: of(heard, sky.InstancePreempted), what="the loss is not noticed")
        elsewhere = seconds_until(lambda: len(runs_of(tmp_path / "runs")) == 2, what="the call is begun nowhere else")
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
