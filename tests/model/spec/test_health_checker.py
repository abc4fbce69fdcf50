"""Which health checks are refused before anything is rented."""

from __future__ import annotations

from typing import Any

import pytest

import skyward as sky


def is_well() -> bool:
    """Say that the node is well."""
    return True


async def waits() -> bool:
    """Await nothing."""
    return True


def counts() -> Any:
    """Yield."""
    yield True


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"predicate": 5}, "predicate must be a function"),
        ({"predicate": waits}, "predicate must be a plain function"),
        ({"predicate": counts}, "predicate must be a plain function"),
        ({"period": 0}, "period must be"),
        ({"timeout": float("nan")}, "timeout must be"),
        ({"failures": 0}, "failures must be"),
        ({"failures": 1.5}, "failures must be"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: dict[str, Any], why: str) -> None:
    """With the name of the argument."""
    with pytest.raises(sky.ConfigError, match=why):
        sky.HealthChecker(**({"predicate": is_well} | arguments))


def test_a_decorated_function_is_called_itself() -> None:
    """It would make a call that nothing sends."""
    assert is_well is sky.HealthChecker(sky.function(is_well)).predicate


@pytest.mark.parametrize("value", [is_well, True, "check"])
def test_an_option_that_is_no_checker_is_refused(value: Any) -> None:
    """What to write is said."""
    with pytest.raises(sky.ConfigError, match=r"health_checker must be a sky\.HealthChecker"):
        sky.Options(health_checker=value)
