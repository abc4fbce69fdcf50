"""What is shown and what a callback gets in a program without a pool, as in `f.local()`: by the table of `printing`."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

from tests.printing import WAYS, cells, found, promised

ROOT = Path(__file__).parents[3]


@cache
def tried(*threads: str) -> tuple[str, dict[str, list[str]]]:
    """Run the program beside threads of these names, and return what it showed and what its callbacks got."""
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory, "report")
        done = subprocess.run(
            [sys.executable, "-m", "tests.printing", report, *threads],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout + done.stderr, json.loads(report.read_text())


@pytest.mark.parametrize(("way", "section"), cells(WAYS))
def test_a_program_of_one_thread(way: str, section: str) -> None:
    """Everything follows: streams, descriptors, C code, threads and processes that it starts."""
    shown, heard = tried()
    assert promised(way, section, by_itself=True) == found(way, section, shown, heard[f"{way} {section}"])


@pytest.mark.parametrize(("way", "section"), cells(WAYS))
def test_a_program_with_another_thread(way: str, section: str) -> None:
    """Its descriptors are that thread's too and stay; streams, and processes that are started, follow."""
    shown, heard = tried("other")
    assert promised(way, section, by_itself=False) == found(way, section, shown, heard[f"{way} {section}"])
