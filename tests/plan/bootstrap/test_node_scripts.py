"""The script that ends what a node started, run as it is run on machines."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from skyward.plan.bootstrap.node_scripts import leave, stop

BLIND_ONCE = """#!/bin/sh
case "$*" in *-lF*environ*) [ -e "{mark}" ] || {{ : >"{mark}"; exit 1; }} ;; esac
exec {grep} "$@"
"""


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """Run something that a node of the name "pool-1" might have started."""
    process = subprocess.Popen(["sleep", "60"], env={**os.environ, "SKYWARD_NODE": "pool-1"})
    yield process
    process.kill()
    process.wait()


def run(script: str, cache: Path, path: str = "") -> None:
    """Run a script on a machine whose cache is there."""
    env = {**os.environ, "SKYWARD_CACHE": str(cache), "PATH": f"{path}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run(["sh", "-c", script], env=env, check=True, timeout=30)


@pytest.mark.parametrize("render", [stop, leave])
def test_what_carries_the_mark_is_ended(
    render: Callable[[str, float], str], sleeper: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    """Both ways of going end it."""
    run(render("pool-1", 0.0), tmp_path)
    assert sleeper.wait(5) == -9


def test_another_node_goes_on(sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """A name that begins like this one is another's."""
    run(stop("pool-", 0.0), tmp_path)
    run(stop("pool-11", 0.0), tmp_path)
    assert sleeper.poll() is None


def test_one_that_is_not_seen_at_first_is_ended(sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """While a process becomes another program the kernel shows no environment of it."""
    grep = tmp_path / "bin" / "grep"
    grep.parent.mkdir()
    grep.write_text(BLIND_ONCE.format(mark=tmp_path / "looked", grep=shutil.which("grep")))
    grep.chmod(0o755)
    run(stop("pool-1", 0.0), tmp_path, str(grep.parent))
    assert (tmp_path / "looked").exists()
    assert sleeper.wait(5) == -9
