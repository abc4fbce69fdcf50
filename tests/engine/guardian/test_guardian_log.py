"""The log of guardians is written beside the work, and never in its way."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from skyward.engine.guardian import guardian_log
from skyward.engine.guardian.guardian_log import GuardianLog
from tests.full_disk import full_disk


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory of one's own."""
    monkeypatch.setenv("SKYWARD_STATE", str(tmp_path / "state"))


def test_lines_are_written_in_order(tmp_path: Path) -> None:
    """For the user alone, with the time and the pool."""
    log = GuardianLog("cloud pool a1")
    log.note("one")
    log.note("two \udcff")
    log.close()
    path = tmp_path / "state" / "guardian.log"
    assert ["cloud pool a1: one", "cloud pool a1: two \\udcff"] == [
        line.partition(" ")[2] for line in path.read_text().splitlines()
    ]
    assert 0o600 == path.stat().st_mode & 0o777


def test_what_cannot_be_written_is_lost(tmp_path: Path) -> None:
    """Then it goes on with the next line."""
    log = GuardianLog("cloud pool a1")
    log.note("before")
    log.close()
    log = GuardianLog("cloud pool a1")
    with full_disk():
        log.note("lost")
        log.close()
    log = GuardianLog("cloud pool a1")
    log.note("after")
    log.close()
    lines = (tmp_path / "state" / "guardian.log").read_text().splitlines()
    assert ["before", "after"] == [line.rpartition(" ")[2] for line in lines]


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Have writes block until the event is set, as on a file server that is gone: no real file can be made to."""
    goes_on, opened = threading.Event(), guardian_log.private.opened
    monkeypatch.setattr(guardian_log.private, "opened", lambda path, flags: goes_on.wait(60) and opened(path, flags))
    yield goes_on
    goes_on.set()


def test_a_write_that_never_returns_blocks_nothing(disk: threading.Event) -> None:
    """As on a server of files that is gone."""
    log = GuardianLog("cloud pool a1")
    began = time.monotonic()
    for _ in range(2000):
        log.note("x")
    log.close(0.05)
    assert time.monotonic() - began < 30.0
    # Its thread would be another test's, which counts those of the process.
    disk.set()
    log.close(30.0)


def test_a_full_queue_is_written_before_the_end(disk: threading.Event, tmp_path: Path) -> None:
    """A disk that answers again within the patience of `close` costs none of the lines that had room."""
    log = GuardianLog("cloud pool a1")
    for number in range(2000):
        log.note(str(number))
    closing = threading.Thread(target=log.close, args=(60.0,))
    closing.start()
    disk.set()
    closing.join()
    lines = (tmp_path / "state" / "guardian.log").read_text().splitlines()
    assert [str(number) for number in range(1000)] == [line.rpartition(" ")[2] for line in lines[:1000]]


def test_a_log_of_which_nothing_is_known_is_no_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither where no home is, nor where no thread can be had."""

    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(guardian_log, "journal_path", nowhere)
    log = GuardianLog("cloud pool a1")
    log.note("x")
    log.close()
