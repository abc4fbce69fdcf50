"""Locks of a process: seen by itself and by others, and gone when it dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from skyward.engine.instances.process_locks import ProcessLocks

HOLDER = """
import sys, time
from pathlib import Path
from skyward.engine.instances.process_locks import ProcessLocks
locks = ProcessLocks(lambda name: Path(sys.argv[1]) / name, "")
print(locks.acquire("a"), flush=True)
time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process, which has the lock `a`."""
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "locks")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "True\n" == process.stdout.readline()
        yield process
        process.kill()


def test_a_lock_is_taken_once(tmp_path: Path) -> None:
    """Until it is released."""
    locks = ProcessLocks(lambda name: tmp_path / "locks" / name, "")
    assert not locks.held("a")
    assert locks.acquire("a")
    assert locks.held("a")
    assert not locks.acquire("a")
    assert not locks.held("b")
    locks.release("a", over=True)
    assert not locks.held("a")
    assert [] == os.listdir(tmp_path / "locks")
    locks.release("a", over=True)


def test_a_lock_of_another_process_ends_with_it(holder: subprocess.Popen[str], tmp_path: Path) -> None:
    """Whatever it dies of."""
    locks = ProcessLocks(lambda name: tmp_path / "locks" / name, "")
    assert locks.held("a")
    assert not locks.acquire("a")
    holder.send_signal(signal.SIGKILL)
    holder.wait(30)
    assert not locks.held("a")
    assert locks.acquire("a")
    locks.release("a", over=True)
