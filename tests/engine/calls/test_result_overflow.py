"""Results beyond what may be held in memory wait on the disk."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skyward.engine.calls import result_overflow as room
from skyward.engine.calls.answer import Answer
from skyward.engine.calls.result_overflow import LEFT_FREE, WORTH_IT, Overflow
from skyward.link.messages import Status
from skyward.link.payload_making import dump
from skyward.link.recycling import WORTH_IT as RECYCLED, recycling


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory in which files are made."""
    monkeypatch.setenv("SKYWARD_CACHE", str(tmp_path))
    return tmp_path / "results"


class Later:
    """Run what is to run in another thread when that is asked for."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def __call__(self, do: Callable[[], None]) -> None:
        """Keep it."""
        self.waiting.append(do)

    def run(self) -> None:
        """Run all of it."""
        while self.waiting:
            self.waiting.pop(0)()


def answer(value: Any) -> Answer:
    """Make an answer whose result this is."""
    return Answer(Status.OK, dump(value), b"", function="f")


def in_memory(one: Answer) -> bool:
    """Tell whether a result is in shared memory."""
    assert one.payload is not None
    assert one.payload.segment is not None
    return "memfd" in os.readlink(f"/proc/self/fd/{one.payload.segment.fd}")


def array(number: int = 1) -> np.ndarray:
    """Make a result that is worth it."""
    return np.full(WORTH_IT, number, np.uint8)


linux = pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="asks Linux where a descriptor leads")


@linux
def test_a_result_is_read_from_the_disk(cache: Path) -> None:
    """Its file has no name, and its memory is free."""
    later = Later()
    overflow, one = Overflow(later), answer(array(7))
    assert in_memory(one)
    overflow.move(0, one)
    assert overflow.bytes == WORTH_IT
    later.run()
    assert not in_memory(one)
    assert not list(cache.iterdir())
    assert np.array_equal(one.value(), array(7))
    overflow.taken(0)
    assert overflow.bytes == 0


@linux
def test_memory_that_a_result_leaves_is_not_kept_to_be_written_again(cache: Path) -> None:
    """It would be held as before."""
    later = Later()
    overflow, one = Overflow(later), answer(np.ones(RECYCLED, np.uint8))
    assert one.payload is not None
    assert one.payload.segment is not None
    lent = recycling.lent(one.payload.segment.fd)
    assert lent is not None
    overflow.move(0, one)
    later.run()
    assert recycling.lend_again(lent) is None


@linux
def test_what_is_taken_before_is_not_written(cache: Path) -> None:
    """It is in other hands."""
    later = Later()
    overflow, one = Overflow(later), answer(array())
    overflow.move(0, one)
    overflow.taken(0)
    later.run()
    assert in_memory(one)
    assert not cache.exists()
    assert overflow.bytes == 0


def test_what_is_small_stays(cache: Path) -> None:
    """So does what is no result."""
    later = Later()
    overflow = Overflow(later)
    overflow.move(0, answer(bytes(WORTH_IT // 2)))
    overflow.move(1, Answer(Status.RAISED, None, b"failure"))
    assert not later.waiting
    assert overflow.bytes == 0


@linux
@pytest.mark.parametrize("cause", ["full", "reserved", "closed"])
def test_where_the_disk_has_no_room_results_stay_in_memory(
    cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, cause: str
) -> None:
    """That is said once, and nothing is lost."""
    if cause == "full":

        def full(**options: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(room.tempfile, "TemporaryFile", full)
    elif cause == "reserved":
        usage = shutil.disk_usage(cache.parent)
        monkeypatch.setattr(room.shutil, "disk_usage", lambda path: usage._replace(free=LEFT_FREE + WORTH_IT - 1))
    else:
        cache.write_text("a file where the directory is to be")
    later = Later()
    overflow, answers = Overflow(later), [answer(array(number)) for number in range(3)]
    for number, one in enumerate(answers):
        overflow.move(number, one)
    later.run()
    overflow.move(3, answer(array()))
    assert not later.waiting
    assert overflow.bytes == 0
    assert all(np.array_equal(one.value(), array(number)) for number, one in enumerate(answers))
    assert [record.message.split()[0] for record in caplog.records] == ["results.in_memory"]
