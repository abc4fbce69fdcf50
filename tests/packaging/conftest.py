"""The wheels of this repository."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.packaging.installing import FOLDERS, run


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Build one wheel for each distribution of the repository."""
    folder = tmp_path_factory.mktemp("dist")
    for source in FOLDERS:
        run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, source], folder)
    return sorted(folder.glob("*.whl"))
