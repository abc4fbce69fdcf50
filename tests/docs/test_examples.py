"""The examples in README and docs are true: each page's blocks run, one after the other, in a process of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
# Those on plugins, which show files of distributions and open a pool in each example, run in tests/third_party.
ELSEWHERE = {"plugins.md", "write-a-plugin.md"}
PAGES = [page for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if page.name not in ELSEWHERE]


def _blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


# What everybody reads first is tried by every run.
FIRST = ("README.md", "index.md", "getting-started.md")


def _page(page: Path) -> Any:
    return pytest.param(page, id=page.name, marks=[] if page.name in FIRST else [pytest.mark.slow])


@pytest.mark.timeout(200)
@pytest.mark.parametrize("page", [_page(page) for page in PAGES if _blocks(page)])
def test_blocks_of_a_page_run(page: Path, tmp_path: Path) -> None:
    """As a program that a reader pastes."""
    program = tmp_path / "page.py"
    program.write_text("\n".join(_blocks(page)))
    # A place of its own for what is shared by a user's programs; a short one, because sockets are in it.
    with tempfile.TemporaryDirectory(prefix="sky-", dir="/tmp") as place:
        done = subprocess.run(
            [sys.executable, str(program)],
            cwd=tmp_path,
            env={**os.environ, "TMPDIR": place},
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )
    assert done.returncode == 0, done.stderr
