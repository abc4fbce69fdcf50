"""One AWS test cloud for the tests of a process, calm before each of them and empty after it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clouds.aws.cloud import Cloud, cloud, until
from tests.hosts import SSHD

if not Path(SSHD).exists():
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def _running() -> Iterator[Cloud]:
    with cloud() as running:
        yield running


@pytest.fixture
def aws(_running: Cloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    """Give the cloud, and fail a test that leaves a machine there."""
    _running.calm()
    for name, text in _running.environment().items():
        monkeypatch.setenv(name, text)
    before = {row["id"] for row in _running.instances()}
    yield _running
    _running.calm()
    left = [row["id"] for row in _running.alive()]
    for name in left:
        _running.terminate(name)
    until(lambda: all(row["state"] == "terminated" for row in _running.instances() if row["id"] not in before))
    assert [] == left
