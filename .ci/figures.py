#!/usr/bin/env python3
"""
Tell where a run of the suites spent its time: `.ci/figures.py FOLDER`; with `--page`, write it into docs/testing.md.

The folder holds `steps`, a line a step, and what pytest wrote with `--junitxml`, a file a suite.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

SLOWEST = 50
"""Tests of a suite that are named."""

PAGE = Path(__file__).parents[1] / "docs" / "testing.md"
MARK = "<!-- What follows is written by .ci/figures.py; do not edit. -->\n"


def times(report: Path) -> list[tuple[float, str]]:
    """Return the seconds of each test of a report with its set-up and end, the slowest first."""
    # We wrote the file ourselves.
    cases = ET.parse(report).iter("testcase")  # noqa: S314
    return sorted(((float(case.get("time", 0)), _name(case)) for case in cases), reverse=True)


def slowest(folder: Path) -> Iterator[tuple[str, list[tuple[float, str]], float]]:
    """Yield each suite that ran with its slowest tests and the seconds of all."""
    for report in sorted(folder.glob("*.xml")):
        if found := times(report):
            yield report.stem, found[:SLOWEST], sum(seconds for seconds, _ in found)


def as_text(folder: Path) -> str:
    """Write the figures for a terminal."""
    parts = []
    for suite, tests, total in slowest(folder):
        lines = [f"{seconds:8.2f} s  {name}" for seconds, name in tests]
        parts.append("\n".join([f"── {suite}: the slowest of {total:.0f} s in tests", *lines]))
    return "\n\n".join(parts)


def as_page(folder: Path) -> str:
    """Write the figures for the page."""
    steps = "".join(f"{line}\n" for line in (folder / "steps").read_text(encoding="utf-8").splitlines())
    parts = [f"\n## The last measured run\n\n```text\n{steps}```\n"]
    for suite, tests, total in slowest(folder):
        rows = "".join(f"| {seconds:.2f} | `{name.replace('|', '/')}` |\n" for seconds, name in tests)
        head = f"\n## Slowest tests of {suite}\n\n{total:.0f} s in tests, of all workers.\n\n| s | test |\n|---|---|\n"
        parts.append(head + rows)
    return "".join(parts)


def _name(case: ET.Element) -> str:
    words = (case.get("classname") or "").replace(".", "/")
    return re.sub(r"^tests/", "", f"{words}::{case.get('name')}")


def main() -> None:
    """Print the figures, or write them into the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--page", action="store_true", help="write docs/testing.md")
    given = parser.parse_args()
    if given.page:
        before = PAGE.read_text(encoding="utf-8").partition(MARK)[0]
        PAGE.write_text(before + MARK + as_page(given.folder), encoding="utf-8")
    else:
        print(as_text(given.folder))


if __name__ == "__main__":
    main()
