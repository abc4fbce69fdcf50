"""What all tests of frameworks share."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="package", autouse=True)
def files_of_killed_ranks() -> Iterator[None]:
    """Take away the code that TensorFlow writes for itself: a rank that is killed leaves it where it was."""
    with (
        tempfile.TemporaryDirectory(prefix="frameworks-", ignore_cleanup_errors=True) as directory,
        pytest.MonkeyPatch.context() as patched,
    ):
        patched.setenv("TMPDIR", directory)
        yield
