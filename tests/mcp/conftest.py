"""A desk with books of its own, in which no machine may be left."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mcp.desk import Desk
from tests.testing import conftest

books = conftest.books


@pytest.fixture
def desk(tmp_path: Path, books: str) -> Desk:
    """Give a folder to start servers in."""
    return Desk(tmp_path, books)
