"""A program's own modules are there on the nodes, without a word in it about them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "project"


def test_program_with_modules_of_its_own_runs_unchanged(tmp_path: Path) -> None:
    """Siblings, packages, data, late and lazy imports; changed files after a refresh."""
    shutil.copytree(PROJECT, tmp_path / "project", ignore=shutil.ignore_patterns("__pycache__"))
    done = subprocess.run(
        [sys.executable, "main.py"], cwd=tmp_path / "project", capture_output=True, text=True, timeout=50, check=False
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
