"""
Amounts of memory are GB, written as numbers or as text.
"""

from __future__ import annotations

import math

import pytest

from skyward.errors import ConfigError
from skyward.model.fields.memory import gigabytes, written


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (40, 40.0),
        (1.5, 1.5),
        ("40GB", 40.0),
        ("40 gb", 40.0),
        ("40GiB", 40.0),
        ("40G", 40.0),
        ("40", 40.0),
        ("512MB", 0.5),
        ("1.5TB", 1536.0),
    ],
)
def test_an_amount_is_gigabytes(given: str | float, expected: float) -> None:
    """Numbers are GB; units of text are powers of two whatever they are called."""
    assert expected == gigabytes(given, "memory")


@pytest.mark.parametrize("given", ["", "GB", "forty", "4PB", "40KB", "-4GB", None, True, [40]])
def test_what_is_no_amount_is_refused(given: object) -> None:
    """Anything that states no amount is refused by the parameter's name, with what to write."""
    with pytest.raises(ConfigError, match=r'^memory must be an amount of memory, not .*"40GB"'):
        gigabytes(given, "memory")


@pytest.mark.parametrize("given", [0, -1, math.nan, math.inf, 10**400, "0GB"])
def test_an_amount_is_more_than_nothing(given: object) -> None:
    """Nothing, less than nothing and infinity are no amounts."""
    with pytest.raises(ConfigError, match=r"^memory must be finite and more than zero"):
        gigabytes(given, "memory")


@pytest.mark.parametrize("amount", [40, 0.5, 94.0, 1152])
def test_an_amount_is_read_back_as_written(amount: float) -> None:
    """Text that we write for an amount means the same amount."""
    assert amount == gigabytes(written(amount), "memory")
