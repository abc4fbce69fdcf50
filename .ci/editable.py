#!/usr/bin/env python3
"""
Build every distribution of the checkout as an editable wheel: `.ci/editable.py FOLDER`. It needs hatchling.

Such a wheel leads to the sources and serves every interpreter, so one build is enough for all environments; an
installer that is given the folders builds each of them for each environment, in an environment of its own.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from hatchling.build import build_editable

ROOT = Path(__file__).resolve().parents[1]


def main(folder: Path) -> None:
    """Write the wheels into a folder that holds nothing else, and is there only when it has all of them."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as making:
        made = Path(making, "made")
        made.mkdir()
        for project in sorted(ROOT.glob("skyward-*/pyproject.toml")):
            os.chdir(project.parent)
            build_editable(str(made))
        made.rename(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
