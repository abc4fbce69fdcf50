"""Where the code of a pool is, asked for while it hangs, and in the error of a call that ran out of time."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from tests.waiting import until

SKY = Path(sys.executable).with_name("sky")


@sky.function
def waits() -> None:
    secret = "p4ssw0rd"
    threading.Event().wait(60)
    print(secret)


@sky.function
def holds() -> None:
    """Hold the interpreter in C: no thread of Python runs meanwhile."""
    ctypes.PyDLL(None).sleep(60)


@sky.function
async def awaits() -> None:
    await asyncio.create_task(deep(), name="deep one")


async def deep() -> None:
    await asyncio.sleep(60)


@sky.function
def turns() -> int:
    """Make and leave frames without end."""
    end, turn = time.monotonic() + 3, 0
    while time.monotonic() < end:
        turn += len(os.path.join("a", str(turn))) > 0
    return turn


@sky.function
def pid() -> int:
    return os.getpid()


@pytest.mark.parametrize(
    ("function", "place"),
    [(waits, " in waits"), (holds, " in holds"), (awaits, " in deep")],
    ids=["a thread", "C code", "a coroutine"],
)
def test_a_timeout_says_where_the_call_was(pool: sky.Pool, function: Any, place: str) -> None:
    """The user's own frames, without what their variables hold."""
    # The module is loaded then, which takes longer than the call has.
    pid() @ pool
    with pytest.raises(sky.TaskTimeoutError, match="It was at:") as caught:
        function().with_timeout(0.3) >> pool
    assert any(line.endswith(place) and "test_stacks.py, line" in line for line in caught.value.stack)
    assert "p4ssw0rd" not in str(caught.value)
    assert len(str(caught.value)) < 10_000


@pytest.mark.parametrize(
    "executor",
    [{"concurrency": 2}, {"worker": sky.Worker(concurrency=2, executor="process")}],
    ids=["thread", "process"],
)
def test_stacks_are_found_by_node_and_by_call(executor: dict[str, Any]) -> None:
    """With threads and with processes; idle workers are there, too."""
    with sky.Compute(nodes=2, console="silent", **executor) as pool:
        future = waits() > pool
        stacks = until(lambda: "in waits" in str(found := pool.stacks()) and found)
        assert {0, 1} == {process.node for process in stacks.processes}
        [call] = stacks.calls.values()
        assert "waits" == call.function
        assert any("waits" == frame.function for frame in call.frames)
        assert "waits() for" in str(stacks)
        assert {1} == {process.node for process in pool.stacks(node=1).processes}
        future.cancel()


def test_a_busy_process_is_not_harmed_by_the_question(pool: sky.Pool) -> None:
    """Its frames come and go while it is asked."""
    future, asked = turns() > pool, 0
    while not future.done():
        asked += "in turns" in str(pool.stacks())
    assert future.result() > 0
    assert asked > 10


def test_a_process_that_is_stopped_says_so(pool: sky.Pool) -> None:
    """It can write nothing, and holds up nothing."""
    stopped = pid() >> pool
    os.kill(stopped, signal.SIGSTOP)
    try:
        began = time.monotonic()
        troubles = {process.pid: process.trouble for process in pool.stacks().processes}
        assert time.monotonic() - began < 5
        assert "it is stopped by a signal" in troubles[stopped]
    finally:
        os.kill(stopped, signal.SIGCONT)
    assert isinstance(pid() >> pool, int)


def test_a_node_that_is_not_there_is_refused(pool: sky.Pool) -> None:
    """As for any other placement."""
    with pytest.raises(sky.ConfigError, match="node must be"):
        pool.stacks(node=7)


def test_another_program_asks_for_stacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`sky stacks` finds the pools that this user's programs have open, by their names."""
    monkeypatch.setenv("SKYWARD_STATE", str(tmp_path / ("deep" * 20)))
    with sky.Compute(console="silent") as pool:
        future = waits() > pool
        until(lambda: "in waits" in str(pool.stacks()))
        asked = subprocess.run([SKY, "stacks"], capture_output=True, text=True, timeout=50, check=False)
        assert 0 == asked.returncode, asked.stderr
        assert "waits() for" in asked.stdout
        other = subprocess.run([SKY, "stacks", "nobodys"], capture_output=True, text=True, timeout=50, check=False)
        assert 1 == other.returncode
        assert "no program of yours on this machine has a pool named 'nobodys' open" in other.stderr
        future.cancel()
