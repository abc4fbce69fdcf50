"""Processes that follow the route of the thread that starts them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from skyward.node.worker.started_processes import StartedProcesses


def _away(fd: int) -> Callable[[int], int | None]:
    """Lead stdout to a descriptor, and stderr nowhere else."""
    return lambda standard: fd if standard == 1 else None


def test_the_standard_library_is_its_own_afterwards() -> None:
    """However often processes are to follow, and cease to."""
    before = subprocess.Popen.__init__
    processes = StartedProcesses(lambda fd: None)
    for _ in range(3):
        processes.follow()
        processes.follow()
        assert before is not subprocess.Popen.__init__
        processes.unfollow()
        processes.unfollow()
        assert before is subprocess.Popen.__init__


def test_a_library_that_wraps_ours_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours is not taken from below it, nor put in a second time; processes follow, and only while they are to."""
    end, fd = os.pipe()
    targets: list[Callable[[int], int | None]] = [_away(fd)]

    def target(standard: int) -> int | None:
        return targets[-1](standard)

    processes = StartedProcesses(target)
    before = subprocess.Popen.__init__
    processes.follow()
    ours, calls = subprocess.Popen.__init__, list[Any]()

    def theirs(self: Any, *args: Any, **keywords: Any) -> None:
        calls.append(args)
        ours(self, *args, **keywords)

    monkeypatch.setattr(subprocess.Popen, "__init__", theirs)
    for _ in range(2):
        processes.unfollow()
        processes.follow()
        subprocess.run(["echo", "away"], check=True)
    targets.append(lambda standard: None)
    processes.unfollow()
    assert "here\n" == subprocess.run(["echo", "here"], check=True, capture_output=True, text=True).stdout
    monkeypatch.undo()
    processes.unfollow()
    assert (before, 3, b"away\naway\n") == (subprocess.Popen.__init__, len(calls), os.read(end, 100))
    os.close(end)
    os.close(fd)


@pytest.mark.parametrize("stream", [None, 1, "file"])
def test_our_own_stdout_is_led_away_however_it_is_passed(stream: Any) -> None:
    """By leaving it out, by its number, or as a file."""
    end, fd = os.pipe()
    processes = StartedProcesses(_away(fd))
    processes.follow()
    try:
        given = os.fdopen(1, "w", closefd=False) if stream == "file" else stream
        subprocess.run(["echo", "away"], stdout=given, check=True)
    finally:
        processes.unfollow()
    assert b"away\n" == os.read(end, 100)
    os.close(end)
    os.close(fd)
