"""The full way on EC2: rented, reached, used, terminated; read from the cloud's own books."""

from __future__ import annotations

import os
from typing import Any

import pytest

import skyward as sky
from tests.clouds.aws.cloud import Cloud
from tests.seeds import some

pytestmark = pytest.mark.clouds


@sky.function
def home() -> str:
    """Tell which machine this is."""
    return os.environ["HOME"]


@pytest.mark.parametrize("allocation", some("markets of EC2", ["on-demand", "spot"]))
def test_a_function_runs_on_rented_machines_which_end_with_the_pool(aws: Cloud, allocation: Any) -> None:
    """Two machines are rented, each takes calls, and both are terminated when the pool is left."""
    with sky.Compute(
        provider=aws.provider(), machine="m7i.large", nodes=2, allocation=allocation, console=False
    ) as pool:
        rows = aws.alive()
        assert {f"{row['base']}/home" for row in rows} == set(home() @ pool)
        assert {"0", "1"} == {row["tags"]["skyward:node"] for row in rows}
        assert 1 == len({row["tags"]["skyward:pool"] for row in rows})
        assert {allocation == "spot"} == {row["spot"] for row in rows}
    assert [] == aws.alive()


def test_machines_of_a_fleet_are_reached_and_used(aws: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is rented by one call is known by its host key, takes calls, and is terminated."""
    monkeypatch.setattr("skyward_aws.launching.MANY", 2)
    with sky.Compute(provider=aws.provider(), machine="m7i.large", nodes=2, allocation="spot", console=False) as pool:
        rows = aws.alive()
        assert {f"{row['base']}/home" for row in rows} == set(home() @ pool)
        assert {("0", "yes"), ("1", "yes")} == {
            (row["tags"]["skyward:node"], row["tags"]["skyward:fleet"]) for row in rows
        }
    assert [] == aws.alive()
    assert [] == aws.ask("templates")
