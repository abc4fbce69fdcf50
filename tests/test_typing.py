"""
Type checkers see users' code as its authors mean it.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.skipif(find_spec("mypy") is None, reason="mypy is not installed")
@pytest.mark.timeout(300)
def test_mypy_infers_what_calls_give(tmp_path: Path) -> None:
    """Each `assert_type` holds, and each line that should be refused is: an ignore too many is an error as well."""
    run = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), "--cache-dir"),
            *(str(tmp_path), "--follow-imports", "silent", "tests/typing/calls.py", "tests/typing/refused.py"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=290,
    )
    assert (0, "") == (run.returncode, run.stderr), run.stdout
