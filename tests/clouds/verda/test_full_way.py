"""The full way on Verda: rented, reached, used, deleted; read from the cloud's own books."""

from __future__ import annotations

import os
from typing import Any

import pytest

import skyward as sky
from tests.clouds.verda.cloud import MACHINE, Cloud
from tests.seeds import some

pytestmark = pytest.mark.clouds


@sky.function
def home() -> str:
    """Tell which machine this is."""
    return os.environ["HOME"]


@pytest.mark.parametrize("allocation", some("markets of Verda", ["on-demand", "spot"]))
def test_a_function_runs_on_rented_machines_which_end_with_the_pool(verda: Cloud, allocation: Any) -> None:
    """Two machines are rented, each takes calls, and both are deleted with their disks when the pool is left."""
    with sky.Compute(
        provider=verda.provider(), machine=MACHINE, nodes=2, allocation=allocation, console=False, bootstrap_timeout=20
    ) as pool:
        rows = verda.alive()
        assert {f"{row['base']}/home" for row in rows} == set(home() @ pool)
        assert {"0", "1"} == {row["tags"]["skyward-node"] for row in rows}
        assert 1 == len({row["tags"]["skyward-pool"] for row in rows})
        assert {allocation == "spot"} == {row["spot"] for row in rows}
    assert [] == verda.alive()
    assert {"keys": [], "scripts": [], "volumes": []} == verda.left()


def test_a_machine_whose_script_comes_late_is_waited_for(verda: Cloud) -> None:
    """Its SSH server is up before it has its key; no client takes it for another machine."""
    verda.ask("script_delay", 2.0)
    with sky.Compute(provider=verda.provider(), machine=MACHINE, console=False, bootstrap_timeout=20) as pool:
        assert f"{verda.alive()[0]['base']}/home" == home() >> pool
        assert 1 == [call["name"] for call in verda.calls("POST")].count("POST /v1/instances")
