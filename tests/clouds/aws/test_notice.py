"""A spot machine that EC2 takes back with notice is replaced before it is gone, and no call is lost."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from tests.clouds.aws.cloud import Cloud
from tests.waiting import until

pytestmark = pytest.mark.clouds


@sky.function
def home() -> str:
    """Tell which machine this is."""
    return os.environ["HOME"]


@sky.function
def held(begun: str, gate: str) -> str:
    """Tell on which machine this ran to its end, once that is allowed."""
    with open(begun, "a") as file:
        file.write("x")
    while not os.path.exists(gate):
        time.sleep(0.02)
    return os.environ["HOME"]


def _row(aws: Cloud, name: str) -> dict[str, Any]:
    return next(row for row in aws.instances() if row["id"] == name)


def _pool(aws: Cloud, told: list[Any]) -> Any:
    pool = sky.Compute(provider=aws.provider(), machine="m7i.large", nodes=1, allocation="spot", console=False)
    pool.on(sky.InstancePreempted, told.append)
    return pool


def test_a_call_ends_on_the_machine_that_goes_while_another_takes_new_ones(aws: Cloud, tmp_path: Path) -> None:
    """And the old one is given back as soon as it is idle."""
    told: list[sky.InstancePreempted] = []
    with _pool(aws, told) as pool:
        [old] = aws.alive()
        call = held(str(tmp_path / "begun"), str(tmp_path / "gate")) > pool
        until((tmp_path / "begun").exists)
        aws.interrupt(old["id"], 60.0)
        assert f"{old['base']}/home" != home() >> pool
        assert _row(aws, old["id"])["state"] == "running"
        (tmp_path / "gate").touch()
        assert f"{old['base']}/home" == call.result(timeout=20)
        until(lambda: [row["id"] for row in aws.alive()] not in ([], [old["id"]]) and len(aws.alive()) == 1)
        assert f"{old['base']}/home" != home() >> pool
    [event] = told
    assert event.certain
    assert event.instance_id == old["id"]
    assert event.ends_at is not None
    assert event.ends_at - event.at > 30


def test_a_call_that_is_not_done_in_time_runs_again(aws: Cloud, tmp_path: Path) -> None:
    """On the machine that was rented at the notice."""
    told: list[sky.InstancePreempted] = []
    with _pool(aws, told) as pool:
        [old] = aws.alive()
        call = held(str(tmp_path / "begun"), str(tmp_path / "gate")) > pool
        until((tmp_path / "begun").exists)
        aws.interrupt(old["id"], 8.0)
        # Where the cores are busy, the old machine may be gone before the new one is launched.
        until(lambda: any(row["id"] != old["id"] for row in aws.alive()), 60.0)
        until(lambda: _row(aws, old["id"])["state"] == "terminated")
        until(lambda: (tmp_path / "begun").read_text() == "xx", 40.0)
        (tmp_path / "gate").touch()
        [new] = aws.alive()
        assert f"{new['base']}/home" == call.result(timeout=20)
    assert len(told) == 1
