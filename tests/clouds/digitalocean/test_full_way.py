"""The full way on DigitalOcean: rented, reached, used, deleted; read from the cloud's own books."""

from __future__ import annotations

import os
from typing import Any

import pytest

import skyward as sky
from tests.clouds.digitalocean.cloud import CPU, GPU, Cloud
from tests.seeds import some

pytestmark = pytest.mark.clouds


@sky.function
def home() -> str:
    """Tell which machine this is."""
    return os.environ["HOME"]


KINDS = [
    ({"machine": CPU}, CPU, "ubuntu-24-04-x64"),
    ({"accelerator": "H100"}, GPU, "gpu-h100x1-base"),
    ({"accelerator": "MI300X"}, "gpu-mi300x1-192gb", "gpu-amd-base"),
]


@pytest.mark.parametrize(("options", "size", "image"), some("droplets that run a function", KINDS))
def test_a_function_runs_on_rented_droplets_which_end_with_the_pool(
    ocean: Cloud, options: dict[str, Any], size: str, image: str
) -> None:
    """Two droplets are rented in one call, each takes calls; both are deleted in the end, and so are key and tags."""
    with sky.Compute(provider=ocean.provider(), nodes=2, console=False, **options) as pool:
        rows = ocean.alive()
        assert {f"{row['base']}/home" for row in rows} == set(home() @ pool)
        assert {(size, image)} == {(row["size"], row["image"]) for row in rows}
        assert 1 == len(ocean.calls("POST /v2/droplets"))
        assert 1 == len(ocean.ssh_keys())
    assert [] == ocean.alive()
    assert [] == ocean.ssh_keys()
    assert {"skyward"} >= set(ocean.tags())
