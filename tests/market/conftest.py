"""
What the tests of the market share: a cache of their own.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path: Path) -> Path:
    """Have the cache in a directory of the test's own."""
    os.environ["SKYWARD_CACHE"] = str(tmp_path / "cache")
    return tmp_path / "cache"
