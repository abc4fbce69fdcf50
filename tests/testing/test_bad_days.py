"""Pools on a cloud that fails: each ends in work that is done or in one error, and no machine is left."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from skyward.testing import (
    DiesInBootstrap,
    Fault,
    Preempt,
    Rehearsal,
    Unreachable,
)
from skyward.testing.books import Books


def until(holds: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def compute(books: str, *faults: Fault, **options: Any) -> sky.Compute:
    """Make a pool on a cloud on which something goes wrong."""
    given = {"provider": Rehearsal(faults=faults, directory=books), "console": False, "logging": False, **options}
    return sky.Compute(**given)


@sky.function
def double(number: int) -> int:
    """Give twice a number."""
    return 2 * number


@sky.function
def stay(first: str) -> int:
    """Start a process that outlives everything that is not killed; on a second machine, return at once."""
    if not os.path.exists(first):
        child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        with open(f"{first}.part", "w") as file:
            file.write(str(child.pid))
        os.replace(f"{first}.part", first)
        child.wait()
    return 42


def test_a_good_day(books: str) -> None:
    """The rehearsal is like any other pool."""
    with compute(books, nodes=2) as pool:
        assert [2, 2] == double(1) @ pool
        assert 2 == len(Rehearsal(directory=books).machines())


def test_a_machine_that_is_taken_is_killed_and_replaced(books: str, tmp_path: Path) -> None:
    """With all that ran there; the call is tried again on the next machine."""
    seen: list[object] = []
    cloud, first = Rehearsal(directory=books), tmp_path / "pid"
    pool = compute(books)
    pool.on(sky.InstanceReplaced, seen.append)
    with pool:
        waiting = stay(str(first)) > pool
        until(first.exists)
        [machine] = cloud.machines()
        cloud.preempt(machine.id)
        assert 42 == waiting.result(timeout=30)
        until(lambda: not Path(f"/proc/{first.read_text()}").exists())
        assert machine.id not in {other.id for other in cloud.machines()}
    assert 1 == len(seen)


def test_a_machine_is_taken_at_its_moment(books: str) -> None:
    """Whatever it is busy with then; the next one stays."""
    with compute(books, Preempt(after=0.5), provision_retry_delay=0.05) as pool:
        until(lambda: any(row.taken_at and row.taken_at < time.time() for row in Books(books).machines()))
        assert 42 == double(21) >> pool


@pytest.mark.parametrize("fault", [DiesInBootstrap(times=2), Unreachable(times=2)], ids=repr)
def test_machines_that_never_become_nodes_are_replaced(books: str, fault: Fault) -> None:
    """Each in its turn, until one holds."""
    with compute(books, fault, provision_retry_delay=0.05) as pool:
        assert 42 == double(21) >> pool


@pytest.mark.parametrize("fault", [DiesInBootstrap(times=99), Unreachable(times=99)], ids=repr)
def test_machines_that_never_become_nodes_are_given_up(books: str, fault: Fault) -> None:
    """One error, after a few of them."""
    pool = compute(books, fault, provision_retry_delay=0.05)
    with pytest.raises(sky.SkywardError), pool:
        pass
