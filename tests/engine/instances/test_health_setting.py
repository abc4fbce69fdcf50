"""A health check that cannot travel is refused before anything is rented."""

from __future__ import annotations

import threading

import pytest

import skyward as sky
from skyward.engine.instances.health_setting import LARGEST, health_setting


def test_without_a_check_nothing_travels() -> None:
    """Agents start nothing then."""
    assert {} == health_setting(None)


def test_a_predicate_that_cannot_be_pickled_is_refused() -> None:
    """With its name, and what to do."""
    lock = threading.Lock()

    def is_well() -> bool:
        return lock.locked()

    with pytest.raises(sky.ConfigError, match=r"is_well cannot be sent to nodes: .*lock.*\n?.*open inside itself"):
        health_setting(sky.HealthChecker(is_well))


def test_a_predicate_that_captures_too_much_is_refused() -> None:
    """It travels with what starts a node."""
    data = bytes(2 * LARGEST)
    with pytest.raises(sky.ConfigError, match="are the most"):
        health_setting(sky.HealthChecker(lambda: bool(data)))


def test_a_pool_with_such_a_check_does_not_open() -> None:
    """Nothing is started for it."""
    lock = threading.Lock()
    with (
        pytest.raises(sky.ConfigError, match="cannot be sent"),
        sky.Compute(console="silent", health_checker=sky.HealthChecker(lock.locked)),
    ):
        pass
