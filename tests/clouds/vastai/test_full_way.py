"""The full way on Vast.ai: rented, reached, used, destroyed; read from the cloud's own books."""

from __future__ import annotations

import os
from typing import Any

import pytest

import skyward as sky
from skyward_vastai.label import tags_of
from tests.clouds.vastai.cloud import Cloud
from tests.seeds import some

pytestmark = [pytest.mark.clouds, pytest.mark.timeout(120)]


@sky.function
def home() -> str:
    """Tell which machine this is."""
    return os.environ["HOME"]


@pytest.mark.parametrize("allocation", some("markets of Vast.ai", ["on-demand", "spot"]))
def test_a_function_runs_on_rented_machines_which_end_with_the_pool(vastai: Cloud, allocation: Any) -> None:
    """Two listings are rented, each takes calls, and both are destroyed when the pool is left."""
    with sky.Compute(
        provider=vastai.provider(),
        accelerator="RTX 4090",
        nodes=2,
        allocation=allocation,
        console=False,
        bootstrap_timeout=20,
    ) as pool:
        rows = vastai.alive()
        assert {f"{row['base']}/home" for row in rows} == set(home() @ pool)
        tags = [tags_of(row["name"]) for row in rows]
        assert {0, 1} == {each.node for each in tags if each is not None}
        assert 1 == len({each.pool_id for each in tags if each is not None})
        assert {allocation == "spot"} == {row["spot"] for row in rows}
        assert 2 == len({row["ask"] for row in rows})
    assert [] == vastai.alive()
