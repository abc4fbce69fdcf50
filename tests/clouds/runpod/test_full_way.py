"""The full way on RunPod: rented, reached, used, terminated; read from the cloud's own books."""

from __future__ import annotations

import os
from typing import Any

import pytest

import skyward as sky
from tests.clouds.runpod.cloud import GPU, Cloud
from tests.seeds import some

pytestmark = pytest.mark.clouds


@sky.function
def home() -> str:
    """Tell which machine this is."""
    return os.environ["HOME"]


@sky.function
def variables() -> list[str]:
    """Tell which variables there are."""
    return sorted(os.environ)


WISHES = [{"accelerator": "RTX 4090:2"}, {"machine": "cpu5c:4"}]


@pytest.mark.parametrize("wish", some("kinds of pods", WISHES), ids=lambda wish: next(iter(wish.values())))
def test_a_function_runs_on_rented_pods_which_end_with_the_pool(runpod: Cloud, wish: dict[str, Any]) -> None:
    """Two pods are rented, each takes calls, and both are terminated when the pool is left."""
    with sky.Compute(provider=runpod.provider(), nodes=2, console=False, bootstrap_timeout=20, **wish) as pool:
        rows = runpod.alive()
        assert {f"{row['base']}/home" for row in rows} == set(home() @ pool)
        assert 2 == len({row["name"] for row in rows})
        assert {"skyward"} == {row["name"].split("-")[0] for row in rows}
        assert not {
            name for name in variables() >> pool if name == "RUNPOD_API_KEY" or name.startswith("SKYWARD_START")
        }
        owned = {each.id: each for each in sky.instances(runpod.provider())}
        assert {row["id"] for row in rows} == set(owned)
        assert 1 == len({(each.tags.pool_id, each.tags.owner) for each in owned.values() if each.tags})
    assert [] == runpod.alive()
    if "accelerator" in wish:
        assert {GPU} == {row["gpu"]["id"] for row in rows}
        assert {2} == {row["gpu"]["count"] for row in rows}
