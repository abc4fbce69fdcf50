"""Hosts that fail their checks: left, taken once more, and then passed over; and stacks over SSH."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path

import pytest

import skyward as sky
from tests.ssh.conftest import Site
from tests.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


@sky.function
def waits() -> None:
    threading.Event().wait(60)


def _failed(told: list[sky.NodeUnhealthy], turn: int) -> bool:
    return sum(event.replaced for event in told) >= turn


def _replaced(pool: sky.Pool, replaced: list[sky.InstanceReplaced], turn: int) -> bool:
    return len(replaced) >= turn and pool.current_nodes() == 1


def test_a_host_that_fails_twice_is_passed_over(two: Site, tmp_path: Path) -> None:
    """After the first time it is taken once more, as its node's own; then the spare one takes its place."""
    ill = tmp_path / "ill"
    told: list[sky.NodeUnhealthy] = []
    replaced: list[sky.InstanceReplaced] = []

    def is_well() -> bool:
        # The machine under all of these hosts is one; its first host is ill.
        return not ill.exists()

    check = sky.HealthChecker(is_well, period=0.2, failures=1)
    pool = sky.Compute(provider=two.provider(), nodes=1, console="silent", health_checker=check)
    pool.on(sky.NodeUnhealthy, told.append).on(sky.InstanceReplaced, replaced.append)
    with pool:
        for turn in (1, 2):
            ill.touch()
            until(partial(_failed, told, turn))
            ill.unlink()
            until(partial(_replaced, pool, replaced, turn))
        assert 10 == sky.function(lambda: 10)() >> pool
    own, spare = (f"{host.address}:{host.port}" for host in two.hosts)
    assert [(own, own), (own, spare)] == [(event.old, event.new) for event in replaced]
    assert "does not take it again" in told[-1].reason


def test_stacks_come_from_another_machine(site: Site) -> None:
    """As from this one."""
    with sky.Compute(provider=site.provider(), console="silent") as pool:
        future = waits() > pool
        until(lambda: "in waits" in str(pool.stacks()))
        future.cancel()
        with pytest.raises(sky.TaskTimeoutError, match="in waits"):
            waits().with_timeout(1.0) >> pool
