"""
Run an example as a user would.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path


def ends_with(example: Path, line: str, directory: Path) -> None:
    """
    Demand that an example exits with 0, that its last line is the expected one, and that it leaves no files.

    Args:
        example: The file.
        line: Pattern of its last line.
        directory: An empty directory to run it in.
    """
    done = subprocess.run(
        [sys.executable, str(example)], cwd=directory, capture_output=True, text=True, timeout=240, check=False
    )
    assert 0 == done.returncode, done.stderr
    last = done.stdout.strip().splitlines()[-1]
    assert re.fullmatch(line, last), done.stdout
    assert [] == list(directory.iterdir()), "the example left files behind"
