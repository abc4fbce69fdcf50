"""
Accelerate's own test scripts on two ranks, beside `accelerate launch` here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

import skyward as sky

pytestmark = [pytest.mark.suites, pytest.mark.timeout(1200)]

SCRIPTS = ("test_ddp_comm_hook",)
LIMIT = 500.0


@sky.function
def runs(name: str) -> str:
    """Run a script as its process would."""
    import importlib
    import warnings

    sys.argv = [name]
    module = importlib.import_module(f"accelerate.test_utils.scripts.{name}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module.main()
    return "done"


def launched(name: str) -> int:
    """Run it by Accelerate's launcher, and give the exit status."""
    words = ("-m", "accelerate.commands.launch", "--cpu", "--num_processes", "2", "--num_cpu_threads_per_process", "1")
    done = subprocess.run(
        [sys.executable, *words, "-m", f"accelerate.test_utils.scripts.{name}"],
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        timeout=LIMIT,
        check=False,
    )
    return done.returncode


@pytest.fixture(scope="module")
def pool() -> Iterator[sky.Compute]:
    """Two nodes."""
    with sky.Compute(nodes=2, plugins=[sky.plugins.accelerate({"use_cpu": True})], console="silent") as pool:
        yield pool


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_of_accelerates_does_what_it_does_when_it_is_launched(pool: sky.Compute, name: str) -> None:
    """It ends well on both ranks if it does with the launcher."""
    if launched(name) == 0:
        assert ["done", "done"] == runs(name).with_timeout(LIMIT) @ pool
    else:
        with pytest.raises(Exception, match=r"\S"):
            runs(name).with_timeout(LIMIT) @ pool
