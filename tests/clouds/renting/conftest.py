"""Each of the clouds for the tests that they all have to pass: without hosts, calm before each and empty after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.clouds.cloud import Cloud, Start, left_empty
from tests.clouds.renting.dialect import Dialect


@pytest.fixture
def cloud(dialect: Dialect, started: Callable[[Start], Cloud], monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    """Give the cloud that speaks a dialect."""
    given = started(dialect.cloud)
    given.hosts(there=False)
    with left_empty(given, monkeypatch):
        yield given
