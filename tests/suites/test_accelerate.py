"""
Accelerate's own test scripts on two nodes, beside the same in two ranks that torchrun starts.

Those in its `external_deps` load models and data from a hub, `test_ddp_comm_hook` and `test_merge_weights` need GPUs,
`test_notebook` starts its own ranks, and `test_script` is in tests/frameworks.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import skyward as sky
from tests.suites.accelerate_script import run

pytestmark = [pytest.mark.suites, pytest.mark.timeout(1200)]

SCRIPTS = ("test_ops", "test_sync", "test_distributed_data_loop")
LIMIT = 300.0
ROOT = Path(__file__).parents[2]

runs = sky.function(run)


def launched(name: str) -> list[str]:
    """Run it in two ranks, and give what each says at its end; their lines may run into one."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"),
            *("-m", "tests.suites.accelerate_script", name),
        ],
        cwd=ROOT,
        env={**os.environ, "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    return re.findall(r"\('\w+', \d+\)", done.stdout)


@pytest.fixture(scope="module")
def pool() -> Iterator[sky.Compute]:
    """Two nodes."""
    with sky.Compute(nodes=2, plugins=[sky.plugins.accelerate({"use_cpu": True})], console="silent") as pool:
        yield pool


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_of_accelerates_does_what_it_does_under_torchrun(pool: sky.Compute, name: str) -> None:
    """It ends well in two ranks that see each other."""
    assert [str((name, 2))] * 2 == launched(name)
    assert [(name, 2)] * 2 == runs(name).with_timeout(LIMIT) @ pool
