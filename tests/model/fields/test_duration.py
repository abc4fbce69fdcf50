"""
Lengths of time are seconds, finite and not negative.
"""

from __future__ import annotations

import math
from types import FunctionType

import numpy as np
import pytest

from skyward.errors import ConfigError
from skyward.model.fields.duration import days, hours, minutes, seconds


@pytest.mark.parametrize(("given", "expected"), [(0, 0.0), (1.5, 1.5), (600, 600.0), (np.float32(2), 2.0)])
def test_a_number_of_seconds_is_a_float(given: float, expected: float) -> None:
    """Every finite number from zero up is taken, and comes back as a float."""
    assert expected == seconds(given, "timeout")
    assert float is type(seconds(given, "timeout"))


@pytest.mark.parametrize("given", [-1, -0.1, math.nan, math.inf, -math.inf, 10**400, np.float64("nan")])
def test_a_number_that_is_no_length_is_refused(given: float) -> None:
    """Negative, infinite and undefined lengths are refused by the parameter's name."""
    with pytest.raises(ConfigError, match=r"^ttl must be a finite number of seconds|^ttl must be a number of seconds"):
        seconds(given, "ttl")


@pytest.mark.parametrize("given", [True, False, None, "", "ten", [1], 1j])
def test_what_is_no_number_is_refused(given: object) -> None:
    """Truth values, text and other objects are refused by the parameter's name."""
    with pytest.raises(ConfigError, match=r"^timeout must be a number of seconds, not "):
        seconds(given, "timeout")


def test_a_number_in_quotes_is_answered_with_the_number() -> None:
    """Text that holds a number is refused with what to write instead."""
    with pytest.raises(ConfigError, match=r"Write ttl=90, without the quotes"):
        seconds(" 90 ", "ttl")


def test_longer_units_are_seconds() -> None:
    """Minutes, hours and days give seconds as floats."""
    assert (600.0, 7200.0, 129600.0) == (minutes(10), hours(2), days(1.5))


@pytest.mark.parametrize("unit", [minutes, hours, days])
@pytest.mark.parametrize("given", [-1, math.nan, math.inf, 1e308, 10**400])
def test_a_unit_refuses_what_is_no_length(unit: FunctionType, given: float) -> None:
    """An amount that gives no finite length is refused by the unit's name."""
    with pytest.raises(ConfigError, match=rf"^{unit.__name__}\(\) takes a finite number"):
        unit(given)


@pytest.mark.parametrize("given", [True, "10", None])
def test_a_unit_refuses_what_is_no_number(given: object) -> None:
    """An amount that is no number is refused."""
    with pytest.raises(ConfigError, match=r"^minutes\(\) takes a number of minutes, not "):
        minutes(given)  # type: ignore[arg-type]
