"""The test clouds of a process: each is started by the first test that wants it, and is there for all others."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest

from tests.clouds.cloud import Cloud, Start


@pytest.fixture(scope="session")
def started() -> Iterator[Callable[[Start], Cloud]]:
    """Give a cloud that runs; it is started where none does yet."""
    clouds: dict[Start, Cloud] = {}
    with contextlib.ExitStack() as stack:

        def start(cloud: Start) -> Cloud:
            if cloud not in clouds:
                clouds[cloud] = stack.enter_context(cloud())
            return clouds[cloud]

        yield start


@pytest.fixture
def without_hosts() -> None:
    """Have the rows of machines come and go without an SSH server behind them, in milliseconds."""


@pytest.fixture
def with_hosts() -> None:
    """Have real hosts all the same, in a module whose other tests have none."""
