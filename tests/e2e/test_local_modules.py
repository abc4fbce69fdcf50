"""A program's own modules are there on the nodes, without a word in it about them."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.container.base import base_image
from tests.hosts import SSHD, hosts

PROJECT = Path(__file__).parents[1] / "project"


@contextlib.contextmanager
def _local() -> Iterator[list[str]]:
    yield []


@contextlib.contextmanager
def _ssh() -> Iterator[list[str]]:
    with hosts(2) as (made, key):
        names = [f"{host.address}:{host.port}" for host in made]
        options = {"hosts": names, "key": str(key), "known_hosts": str(key.with_name("known_hosts"))}
        yield ["SSH", json.dumps(options)]


@contextlib.contextmanager
def _container() -> Iterator[list[str]]:
    yield ["Container", json.dumps({"image": base_image(), "binary": "podman"})]


@pytest.mark.slow
@pytest.mark.parametrize(
    "provider",
    [
        _local,
        pytest.param(_ssh, marks=pytest.mark.skipif(not Path(SSHD).exists(), reason="needs an OpenSSH server")),
        pytest.param(
            _container,
            marks=[
                pytest.mark.containers,
                pytest.mark.timeout(300),
                pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the image has Debian's Python 3.11"),
            ],
        ),
    ],
    ids=["local", "ssh", "container"],
)
def test_program_with_modules_of_its_own_runs_unchanged(
    provider: Callable[[], contextlib.AbstractContextManager[list[str]]], tmp_path: Path
) -> None:
    """Siblings, packages, data, late and lazy imports; changed files after a refresh."""
    shutil.copytree(PROJECT, tmp_path / "project", ignore=shutil.ignore_patterns("__pycache__"))
    with provider() as words:
        done = subprocess.run(
            [sys.executable, "main.py", *words],
            cwd=tmp_path / "project",
            capture_output=True,
            text=True,
            timeout=250,
            check=False,
        )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "sibling deep lazy 1,2,3",
        "sibling deep lazy 1,2,3",
        "late",
        "first first first",
        "first first",
        "second second",
    ]
