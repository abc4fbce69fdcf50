"""NVIDIA's own MPS daemon, and what its limits do."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import skyward as sky
from tests.gpus import gpu_work
from tests.waiting import until

pytestmark = [pytest.mark.gpus, pytest.mark.timeout(240)]

SECONDS = 4.0
"""How long programs run side by side."""


def daemons() -> list[str]:
    """Return the programs of MPS that run on this machine."""
    names = []
    for status in Path("/proc").glob("[0-9]*/comm"):
        try:
            name = status.read_text().strip()
        except OSError:
            continue
        if name.startswith("nvidia-cuda-mps"):
            names.append(name)
    return names


def together(*plugins: sky.Plugin) -> int:
    """Return how many small steps four processes of one node do side by side."""
    options = {"per_node": 4, "console": "silent", "logging": False}
    with sky.Compute(plugins=plugins, **options) as pool:
        gpu_work.small_steps(0.5) @ pool
        return sum(gpu_work.small_steps(SECONDS) @ pool)


def test_processes_find_the_daemon_and_it_ends_with_the_pool() -> None:
    """The server that it starts for its clients too."""
    with sky.Compute(per_node=2, plugins=[sky.plugins.mps()], console="silent", logging=False) as pool:
        assert [True, True] == [count > 0 for count in gpu_work.small_steps(0.5) @ pool]
        assert {"nvidia-cuda-mps-control"[:15], "nvidia-cuda-mps-server"[:15]} <= {name[:15] for name in daemons()}
    until(lambda: daemons() == [])


def test_four_processes_do_more_side_by_side() -> None:
    """Than when they take turns."""
    turns, shared = together(), together(sky.plugins.mps())
    print(f"four processes, small steps in {SECONDS:g} s: {turns} in turn, {shared} by MPS, {shared / turns:.2f} x")
    assert shared > 1.2 * turns


def test_a_share_of_the_processors_is_what_a_process_sees() -> None:
    """A quarter of the multiprocessors."""
    with sky.Compute(console="silent", logging=False) as pool:
        whole = gpu_work.multiprocessors() >> pool
    quarter = sky.plugins.mps(active_thread_percentage=25)
    with sky.Compute(plugins=[quarter], console="silent", logging=False) as pool:
        part = gpu_work.multiprocessors() >> pool
    print(f"multiprocessors: {whole}, of which a quarter: {part}")
    assert part == pytest.approx(whole / 4, abs=2)


def test_more_memory_than_allowed_is_refused() -> None:
    """By the GPU's driver, in the process that asks for it."""
    with sky.Compute(
        per_node=2, plugins=[sky.plugins.mps(pinned_memory_limit="6GB")], console="silent", logging=False
    ) as pool:
        assert [True, True] == gpu_work.allocated(2) @ pool
        assert [False, False] == gpu_work.allocated(8) @ pool


def test_the_daemon_ends_when_its_client_is_killed(tmp_path: Path) -> None:
    """With the node, as all that it started."""
    script = tmp_path / "left.py"
    script.write_text(
        "import os, signal\n"
        "import skyward as sky\n"
        "from tests.gpus import gpu_work\n"
        "with sky.Compute(plugins=[sky.plugins.mps()], console='silent', logging=False) as pool:\n"
        "    gpu_work.small_steps(0.5) >> pool\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    root = str(Path(__file__).parents[2])
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
    ended = subprocess.run(["python3", str(script)], env=env, check=False, timeout=120)
    assert ended.returncode == -9
    until(lambda: daemons() == [], 30)
