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


LONGEST_BACK_OFF = 0.5
"""Seconds between two tries of a call of this process, which grow to twenty outside of tests."""


@pytest.fixture(autouse=True)
def _tried_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have clouds that stay broken be given up within seconds; what `Retry-After` says is waited for all the same."""
    monkeypatch.setattr("skyward.rest.retry_decision._LONGEST_BACK_OFF", LONGEST_BACK_OFF)
    monkeypatch.setattr("skyward_aws.failure._LONGEST_BACK_OFF", LONGEST_BACK_OFF)


@pytest.fixture
def without_hosts() -> None:
    """Have the rows of machines come and go without an SSH server behind them, in milliseconds."""


@pytest.fixture
def with_hosts() -> None:
    """Have real hosts all the same, in a module whose other tests have none."""
