"""Nodes that fail a check are drained and replaced, with the reason in events."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

import skyward as sky
from tests.waiting import until


@sky.function
def pid() -> int:
    return os.getppid()


def test_a_node_that_fails_its_check_is_replaced(tmp_path: Path) -> None:
    """What runs there may end, and calls go on."""
    ill = tmp_path / "ill"
    told: list[sky.NodeUnhealthy] = []
    replaced: list[sky.InstanceReplaced] = []

    def is_well() -> bool:
        return not ill.exists()

    check = sky.HealthChecker(is_well, period=0.1, failures=2)
    with sky.Compute(nodes=2, console="silent", health_checker=check) as pool:
        pool.on(sky.NodeUnhealthy, told.append).on(sky.InstanceReplaced, replaced.append)
        before = {pid() >> pool for _ in range(4)}
        ill.touch()
        until(lambda: [event for event in told if event.replaced])
        ill.unlink()
        until(lambda: replaced and pool.current_nodes() == 2)
        assert before != {pid() >> pool for _ in range(4)}
    [reason] = {event.reason for event in told if event.replaced}
    assert "its health check failed 2 times in a row: it returned False" == reason
    assert {"user"} == {event.check for event in told}


def test_a_check_that_nothing_passes_does_not_rent_for_ever() -> None:
    """After some machines the check is suspected, and the pool works on."""
    told: list[sky.NodeUnhealthy] = []
    check = sky.HealthChecker(lambda: False, period=0.05, failures=1)
    with sky.Compute(console="silent", health_checker=check).on(sky.NodeUnhealthy, told.append) as pool:
        last = until(lambda: [event for event in told if "the check is suspected" in event.reason])
        assert not last[0].replaced
        assert isinstance(pid() >> pool, int)
    assert 3 == sum(event.replaced for event in told)


def test_a_mistake_in_a_check_is_told_and_nothing_is_replaced() -> None:
    """A function that returns nothing says nothing of the node."""
    told: list[sky.NodeUnhealthy] = []

    def is_well() -> bool:
        os.getpid()
        return None  # type: ignore[return-value]

    check = sky.HealthChecker(is_well, period=0.05)
    with sky.Compute(console="silent", health_checker=check).on(sky.NodeUnhealthy, told.append) as pool:
        before = pid() >> pool
        until(lambda: told)
        assert before == pid() >> pool
    assert [
        "its health check cannot be used, and is not run any more: it returned None, which is neither True nor False"
    ] == [event.reason for event in told]


@pytest.mark.slow
def test_a_check_that_hangs_holds_up_no_call() -> None:
    """Calls run while it is waited for."""

    def is_well() -> bool:
        time.sleep(60)
        return True

    check = sky.HealthChecker(is_well, period=60.0, timeout=50.0)
    with sky.Compute(console="silent", health_checker=check) as pool:
        began = time.monotonic()
        assert isinstance(pid() >> pool, int)
        assert time.monotonic() - began < 10
