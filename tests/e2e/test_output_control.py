"""
What is shown of a task, and what its callback gets: by the table of `printing`, on nodes.

A worker is by itself where it runs one task at a time: with `executor="process"`, and without `concurrency`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from tests.printing import (
    OF_NO_CALL,
    SLOW_WAYS,
    WAYS,
    by_c,
    by_descriptor,
    by_print,
    by_subprocess,
    cells,
    found,
    promised,
    try_cell,
)

Cell = tuple[str, str]
PATIENCE = 30.0


@sky.function
def print_in(way: str, section: str) -> list[str]:
    """Try a cell of the table."""
    return try_cell(way, section)


def _stay(started: str, end: str) -> None:
    """Stay in the process until a file says that the others have printed."""
    Path(started).touch()
    deadline = time.monotonic() + PATIENCE
    while not os.path.exists(end) and time.monotonic() < deadline:
        time.sleep(0.01)


class Seen:
    """Hold what was shown, as one text for each stream, and what callbacks got."""

    def __init__(self) -> None:
        self.logs: list[sky.Log] = []
        self.heard: dict[Cell, list[str]] = {}

    def text(self) -> str:
        """Return what was shown."""
        return "\n".join(log.line for log in self.logs)


def _run(ways: Iterable[str], **settings: Any) -> Seen:
    seen, pairs = Seen(), cells(ways)
    with sky.Compute(console="silent", **settings).on(sky.Log, seen.logs.append) as pool:
        for pair, heard in zip(pairs, pool.starmap(print_in, pairs), strict=True):
            seen.heard[pair] = heard
    return seen


@cache
def one_at_a_time() -> Seen:
    """Try all cells in the one worker of a node."""
    return _run(WAYS)


@cache
def in_processes() -> Seen:
    """Try all cells in two workers at once."""
    return _run(WAYS, concurrency=2, executor="process")


@cache
def beside_another_task(decorated: Callable[[Callable[..., None]], Callable[..., None]] = lambda fn: fn) -> Seen:
    """Try all cells in a process that runs another task meanwhile."""
    import tempfile

    seen = Seen()
    with (
        tempfile.TemporaryDirectory() as directory,
        sky.Compute(console="silent", concurrency=2, executor="thread").on(sky.Log, seen.logs.append) as pool,
    ):
        started, end = os.path.join(directory, "started"), os.path.join(directory, "end")
        other = sky.function(decorated(_stay))(started, end) > pool
        deadline = time.monotonic() + PATIENCE
        while not os.path.exists(started) and time.monotonic() < deadline:
            time.sleep(0.01)
        for way, section in cells(WAYS):
            seen.heard[way, section] = print_in(way, section) >> pool
        Path(end).touch()
        other.result(PATIENCE)
    return seen


@pytest.mark.parametrize("place", [one_at_a_time, in_processes], ids=lambda place: place.__name__)
@pytest.mark.parametrize(("way", "section"), cells(WAYS))
def test_where_one_task_runs_everything_follows(place: Callable[[], Seen], way: str, section: str) -> None:
    """Streams, descriptors, C code, threads and processes that the task starts."""
    seen = place()
    assert promised(way, section, by_itself=True) == found(way, section, seen.text(), seen.heard[way, section])


@pytest.mark.parametrize(("way", "section"), cells(WAYS))
def test_where_several_tasks_run_descriptors_are_everyones(way: str, section: str) -> None:
    """Streams, and processes that a task starts, follow; what C code and plain threads print is shown."""
    seen = beside_another_task()
    assert promised(way, section, by_itself=False) == found(way, section, seen.text(), seen.heard[way, section])


@pytest.mark.parametrize("way", sorted(WAYS.keys() - OF_NO_CALL))
def test_what_c_code_prints_is_silent_while_all_tasks_are(way: str) -> None:
    """A process is silent when each of its tasks is."""
    assert set() == found(way, "silent", beside_another_task(sky.silent).text(), [])[0]


def test_what_is_shown_is_on_its_own_stream() -> None:
    """Whichever way it took."""
    for log in one_at_a_time().logs:
        assert log.line.endswith("to out" if log.stream == "stdout" else "to err") or "warn" in log.line


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"concurrency": 2}], ids=["one at a time", "several at once"])
def test_spawned_processes_follow(settings: dict[str, Any]) -> None:
    """Those of a fork server too, which is started in the first section that needs it and outlives it."""
    seen = _run(SLOW_WAYS, **settings)
    assert {pair: promised(*pair, by_itself=True) for pair in cells(SLOW_WAYS)} == {
        pair: found(*pair, seen.text(), seen.heard[pair]) for pair in cells(SLOW_WAYS)
    }


def _everything(name: str) -> None:
    for way in (by_print, by_descriptor, by_c, by_subprocess):
        way(f"{name} to out", f"{name} to err")


@sky.silent
@sky.function
def silent_items() -> Any:
    for number in range(3):
        _everything(f"item {number}")
        yield number


@sky.silent
@sky.function
async def silent_later() -> str:
    import asyncio

    _everything("before")
    await asyncio.sleep(0)
    await asyncio.to_thread(_everything, "in a thread")
    _everything("after")
    return "done"


@sky.silent
@sky.function
async def silent_items_later() -> Any:
    for number in range(3):
        _everything(f"item {number}")
        yield number


@sky.silent
@sky.function
def silent_by_itself() -> int:
    _everything("inner")
    return 1


@sky.function
def loud_with_a_silent_call() -> int:
    _everything("outer before")
    done = silent_by_itself.local()
    _everything("outer after")
    return done


def _logs_of(send: Callable[[sky.Pool], Any], **settings: Any) -> tuple[Any, list[str]]:
    logs: list[str] = []
    with sky.Compute(console="silent", **settings).on(sky.Log, lambda log: logs.append(log.line)) as pool:
        return send(pool), logs


@pytest.mark.parametrize(
    ("send", "result"),
    [
        (lambda pool: list(silent_items() >> pool), [0, 1, 2]),
        (lambda pool: silent_later() >> pool, "done"),
        (lambda pool: list(silent_items_later() >> pool), [0, 1, 2]),
    ],
    ids=["generator", "async", "async generator"],
)
def test_every_kind_of_function_is_silent(send: Callable[[sky.Pool], Any], result: object) -> None:
    """In each of its steps, and in all ways to print."""
    assert (result, []) == _logs_of(send)


def test_a_silent_call_in_a_loud_task() -> None:
    """Only what the inner function prints is silent."""
    result, logs = _logs_of(lambda pool: loud_with_a_silent_call() >> pool)
    assert result == 1
    assert sorted(logs) == sorted(
        f"outer {when} to {stream}" for when in ("before", "after") for stream in ("out", "err") for _ in range(4)
    )


def test_lines_of_python_c_code_and_processes_come_in_order() -> None:
    """As far as nothing holds them back: a print comes after what was written before it."""

    @sky.function
    def talk() -> list[str]:
        heard: list[str] = []
        with sky.redirect_output(heard.append):
            for number in range(20):
                print(number, "python")
                os.write(1, f"{number} descriptor\n".encode())
                subprocess.run(["echo", f"{number} process"], check=True)
        return heard

    heard, logs = _logs_of(lambda pool: talk() >> pool)
    assert [f"{number} {who}" for number in range(20) for who in ("python", "descriptor", "process")] == heard
    assert logs == []


def test_a_process_may_print_more_than_a_pipe_holds() -> None:
    """It is read while it prints."""

    @sky.function
    def talk() -> list[str]:
        heard: list[str] = []
        with sky.redirect_output(heard.append):
            subprocess.run([sys.executable, "-c", "for n in range(100_000): print(n)"], check=True)
        return heard

    assert (list(map(str, range(100_000))), []) == _logs_of(lambda pool: talk() >> pool)


def test_what_a_process_prints_after_its_redirection_is_shown() -> None:
    """It is not ended by a pipe without a reader."""

    @sky.function
    def talk() -> tuple[list[str], int]:
        heard: list[str] = []
        with sky.redirect_output(heard.append):
            process = subprocess.Popen(["sh", "-c", "echo early; read x; echo late"], stdin=subprocess.PIPE)
            while not heard:
                time.sleep(0.01)
        process.communicate(b"\n")
        return heard, process.returncode

    assert ((["early"], 0), ["late"]) == _logs_of(lambda pool: talk() >> pool)


def test_a_crash_is_reported_in_silence() -> None:
    """The stack that Python writes as a worker crashes does not go where its prints go."""

    @sky.silent
    @sky.function
    def crash() -> None:
        os.kill(os.getpid(), signal.SIGSEGV)

    def send(pool: sky.Pool) -> None:
        with pytest.raises(sky.WorkerDiedError):
            crash() >> pool

    assert any("Segmentation fault" in line for line in _logs_of(send)[1])


def test_a_section_that_is_cut_off_is_left() -> None:
    """A task that times out in the middle of it leaves the worker's descriptors as they were."""

    @sky.function(timeout=0.3)
    def stuck() -> None:
        with sky.redirect_output(lambda line: None):
            sky.silent(time.sleep)(60)

    def send(pool: sky.Pool) -> None:
        for _ in range(5):
            with pytest.raises(sky.TaskTimeoutError):
                stuck() >> pool
        print_in("by_c", "nothing") >> pool
        print_in("by_subprocess", "nothing") >> pool

    assert {f"{way} nothing to {stream}" for way in ("by_c", "by_subprocess") for stream in ("out", "err")} <= set(
        _logs_of(send)[1]
    )
