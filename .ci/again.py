#!/usr/bin/env python3
"""
Run the tests that failed in a suite once more, alone: `.ci/again.py LOG`.

Beside others, on few cores, a test may run out of time that has enough of it alone. One that fails alone as well, or
more than three that failed, fail the run. The others are named: each stands in docs/testing.md until it is mended.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

AT_MOST = 3
"""Tests that may fail beside others."""

PAGE = Path(__file__).parents[1] / "docs" / "testing.md"

_COMMAND = re.compile(r"(\S*python\S*) -m pytest")
_FAILURE = re.compile(r"(?:FAILED|ERROR) (\S+::.*?)(?: - .*)?$")


def failures(lines: Iterable[str]) -> dict[str, list[str]]:
    """
    Return the tests that failed, by the interpreter that ran them.

    Args:
        lines: What a suite printed.

    >>> failures([".venv/bin/python -m pytest -m clouds", "FAILED tests/a.py::test_it[x y] - KeyError: 1"])
    {'.venv/bin/python': ['tests/a.py::test_it[x y]']}
    """
    found: dict[str, list[str]] = {}
    python = ""
    for line in lines:
        if command := _COMMAND.search(line):
            python = command[1]
        elif (failure := _FAILURE.match(line)) and python:
            tests = found.setdefault(python, [])
            # One that failed and left something behind is listed twice.
            if failure[1] not in tests:
                tests.append(failure[1])
    return found


def main(log: Path) -> int:
    """Give 0 if all that failed passes alone."""
    found = failures(log.read_text(errors="replace").splitlines())
    if not 0 < sum(map(len, found.values())) <= AT_MOST:
        return 1
    for python, tests in found.items():
        command = [python, "-m", "pytest", "-n", "0", "-m", "", "--timeout", "300", *tests]
        if subprocess.run(command, check=False).returncode:
            return 1
        for test in tests:
            known = "" if test in PAGE.read_text(encoding="utf-8") else "; add it to docs/testing.md"
            print(f"FLAKY: {test} failed beside others, and passed alone, with {python}{known}")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
