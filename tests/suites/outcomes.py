"""
Runs a suite that others wrote in a process of its own, and tells what became of each test.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).parents[2]
LIMIT = 1200.0
"""Seconds that a suite has."""


def outcomes(modules: Sequence[str], directory: Path, *plugins: str, only: str = "") -> dict[str, str]:
    """
    Run modules of tests, and give `passed`, `failed` or `skipped` by each test's name.

    Args:
        modules: Names of modules that are installed.
        directory: Where to run them; nothing of this repository's settings holds there.
        plugins: Modules that pytest loads besides.
        only: What the names of the tests have to match, as pytest's `-k`.
    """
    report = directory / "report.xml"
    extra = [word for plugin in plugins for word in ("-p", plugin)]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", str(directory), "-p", "no:cacheprovider"),
            *("-q", "--junitxml", str(report), "-k", only, *extra, "--pyargs", *modules),
        ],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert report.exists(), done.stdout[-2000:] + done.stderr[-2000:]
    found = {}
    for case in ET.parse(report).iter("testcase"):
        kinds = {child.tag for child in case}
        failed = kinds & {"failure", "error"}
        name = f"{(case.get('classname') or '').rpartition('.')[2]}::{case.get('name')}"
        found[name] = "failed" if failed else "skipped" if "skipped" in kinds else "passed"
    return found


def worse(reference: dict[str, str], ours: dict[str, str]) -> set[str]:
    """Give the tests that pass in the reference and not with us."""
    return {name for name, outcome in reference.items() if outcome == "passed" and ours.get(name) != "passed"}
