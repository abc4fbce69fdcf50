"""Whatever is written on a node arrives, and says where it came from."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

import skyward as sky
from skyward.model.events.event import SkywardEvent
from skyward.testing import Rehearsal


@attrs.frozen(kw_only=True)
class EpochDone(SkywardEvent):
    """An event of the user's own."""

    epoch: int


def _logs_of(call: Callable[[], Any], **keywords: Any) -> list[sky.Log]:
    """Run something in a pool, and give all it wrote."""
    logs: list[sky.Log] = []
    pool = sky.Compute(console="silent", **keywords).on(sky.Log, logs.append)
    with pool:
        sky.function(call)() @ pool
    return logs


def test_prints_arrive_with_node_and_task() -> None:
    """From every node, in order, with the stream they were written to."""

    def talk() -> None:
        print("one")
        print("two", file=sys.stderr)
        print("three", end="")

    logs = _logs_of(talk, nodes=2)
    for node in (0, 1):
        lines = [(log.line, log.stream) for log in logs if log.node == node]
        assert sorted(lines) == [("one", "stdout"), ("three", "stdout"), ("two", "stderr")]
    assert len({log.task_id for log in logs} - {None}) == 2


def test_what_a_call_prints_is_shown_before_its_result() -> None:
    """Handlers have it by then, however the call is sent; so has the console."""
    shown: list[str] = []

    def show(log: sky.Log) -> None:
        time.sleep(0.02)
        shown.append(log.line)

    @sky.function
    def talk(name: str) -> str:
        print(name)
        return name

    with sky.Compute(console="silent").on(sky.Log, show) as pool:
        for send in (
            lambda name: talk(name) >> pool,
            lambda name: (talk(name) > pool).result(),
            lambda name: talk(name) @ pool,
            lambda name: sky.gather(talk(name)) >> pool,
            lambda name: pool.map(talk, [name]),
        ):
            name = f"line {len(shown)}"
            send(name)
            assert name == shown[-1]


def test_output_of_c_and_subprocesses_arrives() -> None:
    """They write to the descriptors and know nothing of Python's streams."""

    def talk() -> None:
        libc = ctypes.CDLL(None)
        libc.puts(b"from c")
        libc.fflush(None)
        subprocess.run(["echo", "from a subprocess"], check=True)
        thread = threading.Thread(target=print, args=("from a thread",))
        thread.start()
        thread.join()

    logs = _logs_of(talk)
    assert [log.line for log in logs] == ["from c", "from a subprocess", "from a thread"]
    assert {log.task_id for log in logs if log.line != "from a thread"} != {None}


def test_output_at_exit_arrives() -> None:
    """What is written when the worker ends is not lost."""

    def register() -> None:
        import atexit

        atexit.register(print, "goodbye")

    assert [log.line for log in _logs_of(register)] == ["goodbye"]


@pytest.mark.parametrize("count", [30_000])
@pytest.mark.slow
def test_many_lines_arrive_all_and_in_order(count: int) -> None:
    """However fast they are written."""

    def shout() -> None:
        for number in range(count):
            print(number)

    assert [log.line for log in _logs_of(shout)] == [str(number) for number in range(count)]


def test_output_comes_before_the_end_of_its_task() -> None:
    """A handler sees the lines of a task before its `TaskCompleted`."""
    seen: list[str] = []
    pool = sky.Compute(console="silent")
    pool.on(sky.Log, lambda log: seen.append(log.line))
    pool.on(sky.TaskCompleted, lambda event: seen.append("completed"))
    with pool:
        sky.function(lambda: print("line"))() >> pool
    assert seen == ["line", "completed"]


def test_threads_of_one_worker_keep_their_lines_apart() -> None:
    """Each line carries the call that printed it."""

    def talk(name: int) -> str:
        for _ in range(50):
            print(f"line of {name}")
        return str(name)

    lines: list[sky.Log] = []
    with sky.Compute(console="silent", concurrency=4).on(sky.Log, lines.append) as pool:
        pool.map(talk, range(8))
    assert len(lines) == 400
    by_task: dict[str | None, set[str]] = {}
    for log in lines:
        by_task.setdefault(log.task_id, set()).add(log.line)
    assert sorted(len(said) for said in by_task.values()) == [1] * 8


def test_only_the_head_prints() -> None:
    """`sky.stdout(only="head")` silences the others."""

    @sky.stdout(only="head")
    @sky.function
    def talk() -> None:
        print("from", sky.instance_info().node)

    logs: list[str] = []
    with sky.Compute(nodes=2, console="silent").on(sky.Log, lambda log: logs.append(log.line)) as pool:
        talk() @ pool
    assert logs == ["from 0"]


def test_events_of_tasks_arrive() -> None:
    """`sky.emit` in a task reaches the client's handlers, with the instance it came from."""

    def train() -> None:
        for epoch in range(3):
            sky.emit(EpochDone(epoch=epoch))

    events: list[EpochDone] = []
    with sky.Compute(console="silent").on(EpochDone, events.append) as pool:
        sky.function(train)() >> pool
    assert [event.epoch for event in events] == [0, 1, 2]
    assert all(event.instance is not None and event.instance.node == 0 for event in events)


def test_more_events_than_a_window_arrive_all_and_in_order() -> None:
    """The task waits while handlers are behind; one event that is far too large is refused where it is emitted."""
    lines: list[str] = []
    begin = threading.Event()

    def slow(event: sky.Log) -> None:
        begin.wait(60)
        lines.append(event.line[:4])

    def train() -> str:
        for number in range(3000):
            sky.emit(sky.Log(line=f"{number:04}" + "x" * 10_000, node=0))
        try:
            sky.emit(sky.Log(line="x" * (17 << 20), node=0))
        except sky.UsageError as error:
            return str(error)
        return ""

    with sky.Compute(nodes=1, console="silent").on(sky.Log, slow) as pool:
        future = sky.function(train)() > pool
        with pytest.raises(TimeoutError):
            future.result(1.0)
        begin.set()
        assert "and an event may have 16777216" in future.result(60)
    assert [f"{number:04}" for number in range(3000)] == lines


def test_task_events_tell_of_each_attempt() -> None:
    """Started and completed, with what went wrong."""
    events: list[Any] = []
    pool = sky.Compute(console="silent")
    pool.on(sky.TaskStarted, events.append).on(sky.TaskCompleted, events.append)
    with pool, pytest.raises(ZeroDivisionError):
        sky.function(lambda: 1 // 0)() >> pool
    started, completed = events
    assert started.task_id == completed.task_id
    assert (completed.success, completed.node) == (False, 0)
    assert "ZeroDivisionError" in completed.error


def test_a_call_that_the_end_of_its_pool_cuts_off_says_how_long_it_ran() -> None:
    """And not that it failed after no time."""
    started, ended = threading.Event(), list[sky.TaskCompleted]()
    pool = sky.Compute(console="silent").on(sky.TaskCompleted, ended.append)
    pool.on(sky.TaskStarted, lambda event: started.set())
    with contextlib.suppress(ZeroDivisionError), pool:
        future = sky.function(time.sleep)(60) > pool
        assert started.wait(20)
        raise ZeroDivisionError
    assert isinstance(future.exception(), sky.PoolClosedError)
    assert [(event.success, 0 < event.duration < 60) for event in ended] == [(False, True)]


@sky.function
def _count_aloud(lines: int) -> None:
    for number in range(lines):
        print(number)


def test_a_slow_handler_gets_every_line_when_nothing_is_rented_any_more(tmp_path: Path) -> None:
    """Leaving the pool waits for it, after the machines have been given back."""
    cloud, lines, rented = Rehearsal(directory=str(tmp_path)), list[str](), list[int]()

    def slow(log: sky.Log) -> None:
        deadline = time.monotonic() + 20
        while not lines and cloud.machines() and time.monotonic() < deadline:
            time.sleep(0.01)
        if not lines:
            rented.append(len(cloud.machines()))
        lines.append(log.line)

    pool = sky.Compute(provider=cloud, machine="small", console="silent", logging=False).on(sky.Log, slow)
    with pool:
        _count_aloud(3000) >> pool
        assert not lines
    assert [str(number) for number in range(3000)] == lines
    assert [0] == rented


def test_an_async_block_that_is_cancelled_keeps_in_the_log_what_a_stuck_handler_has_not_taken(tmp_path: Path) -> None:
    """Its task hears of the interrupt, and the thread that waits for the handler does not."""
    going, log, left = threading.Event(), tmp_path / "sky.log", asyncio.Event()
    pool = sky.Compute(console="silent", logging=sky.LogConfig(file=log)).on(sky.Log, lambda event: going.wait(20))

    async def block() -> None:
        async with pool:
            await asyncio.to_thread(lambda: _count_aloud(100) >> pool)
            left.set()

    async def main() -> None:
        leaving = asyncio.create_task(block())
        await left.wait()
        leaving.cancel()
        await leaving

    try:
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(main())
    finally:
        going.set()
    kept = [line.rpartition(" ")[2] for line in log.read_text().splitlines() if " undelivered node=0 stdout " in line]
    assert [str(number) for number in range(100)] == kept
    assert "because the pool was left by an interrupt" in log.read_text()


def test_an_interrupt_skips_the_handlers_of_pools_that_are_closed_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reaches the thread that waits for theirs, and what their handlers have not taken is in the log."""
    going, log, join = threading.Event(), tmp_path / "sky.log", threading.Thread.join
    pool = sky.Compute(console="silent", logging=sky.LogConfig(file=log)).on(sky.Log, lambda event: going.wait(20))
    interrupts: list[type[BaseException]] = []

    def interrupted(self: threading.Thread, timeout: float | None = None) -> None:
        if self.name == "skyward-multipool" and interrupts:
            deadline = time.monotonic() + 20
            while pool.receipt is None and time.monotonic() < deadline:
                time.sleep(0.01)
            raise interrupts.pop()
        join(self, timeout)

    def print_much() -> None:
        _count_aloud(100) >> pool
        interrupts.append(KeyboardInterrupt)

    monkeypatch.setattr(threading.Thread, "join", interrupted)
    try:
        with pytest.raises(KeyboardInterrupt), sky.MultiPool(pool):
            print_much()
    finally:
        going.set()
    assert 100 == log.read_text().count(" undelivered node=0 stdout ")
    assert "because the pool was left by an interrupt" in log.read_text()
