"""A place for a rehearsal's books, in which no machine may be left."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from skyward.testing import Rehearsal


@pytest.fixture
def books() -> Iterator[str]:
    """Give a directory, and fail a test that leaves a machine in its books or a directory of one."""
    # A short path, because names of Unix sockets have hardly more than a hundred characters.
    directory = tempfile.mkdtemp(prefix="sky-", dir="/tmp")
    yield directory
    left = Rehearsal(directory=directory).machines()
    # A file stands where a machine was taken back, until its client ends it: one that is gone wants no ending.
    hosts = [path.name for path in Path(directory, "hosts").glob("*") if path.is_dir()]
    Rehearsal(directory=directory).clear()
    shutil.rmtree(directory, ignore_errors=True)
    assert ([], []) == (left, hosts)
