"""The examples in README and docs are true: each page's blocks run, one after the other, in a process of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# docs/plugins.md shows files of distributions; tests/third_party runs them.
PAGES = [page for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if page.name != "plugins.md"]


def _blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", [page for page in PAGES if _blocks(page)], ids=lambda page: page.name)
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
            timeout=50,
            check=False,
        )
    assert done.returncode == 0, done.stderr
