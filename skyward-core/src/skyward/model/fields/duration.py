"""
Lengths of time: what a user may write for one, and `sky.time`.
"""

from __future__ import annotations

import math
from typing import SupportsFloat

from skyward.errors import ConfigError

__all__ = ["days", "hours", "minutes", "seconds"]


def seconds(value: object, parameter: str) -> float:
    """
    Return a length of time as a float, refusing what is none.

    Args:
        value: A number of seconds, finite and not negative.
        parameter: Name of the parameter it was given for, for the error.

    Raises:
        ConfigError: If the value is negative, NaN or infinite, or no number at all.

    >>> seconds(90, "timeout")
    90.0
    >>> seconds("90", "timeout")
    Traceback (most recent call last):
    ...
    skyward.errors.ConfigError: timeout must be a number of seconds, not '90'. Write timeout=90, without the quotes.
    """
    # NumPy's numbers are neither int nor float, and are meant all the same.
    if isinstance(value, (bool, str)) or not isinstance(value, SupportsFloat):
        raise ConfigError(f"{parameter} must be a number of seconds, not {value!r}.", hint=_unquoted(value, parameter))
    try:
        number = float(value)
    except (OverflowError, TypeError, ValueError) as error:
        raise ConfigError(f"{parameter} must be a number of seconds, not {_short(value)}.") from error
    if not math.isfinite(number) or number < 0:
        raise ConfigError(f"{parameter} must be a finite number of seconds that is not negative, not {_short(value)}.")
    return number


def checked_limit(value: object, parameter: str) -> float:
    """
    Return a limit in seconds as a float.

    Args:
        value: A number of seconds, finite and above 0.
        parameter: Name of the parameter it was given for, for the error.

    Raises:
        ConfigError: If it is no such number.

    >>> checked_limit(90, "timeout")
    90.0
    """
    checked = seconds(value, parameter)
    if not checked:
        raise ConfigError(f"{parameter} must be more than 0 seconds; leave it out for no limit.")
    return checked


def minutes(amount: float) -> float:
    """
    Return that many minutes in seconds.

    Args:
        amount: Minutes, finite and not negative.

    Raises:
        ConfigError: If the amount is no such number.

    >>> minutes(10)
    600.0
    """
    return _scaled(amount, 60.0, "minutes")


def hours(amount: float) -> float:
    """
    Return that many hours in seconds.

    Args:
        amount: Hours, finite and not negative.

    Raises:
        ConfigError: If the amount is no such number.

    >>> hours(2)
    7200.0
    """
    return _scaled(amount, 3_600.0, "hours")


def days(amount: float) -> float:
    """
    Return that many days in seconds.

    Args:
        amount: Days, finite and not negative.

    Raises:
        ConfigError: If the amount is no such number.

    >>> days(1)
    86400.0
    """
    return _scaled(amount, 86_400.0, "days")


def _scaled(amount: object, unit: float, name: str) -> float:
    """Return an amount of some unit in seconds."""
    if isinstance(amount, bool) or not isinstance(amount, (int, float)):
        raise ConfigError(f"{name}() takes a number of {name}, not {amount!r}.")
    try:
        total = amount * unit
    except OverflowError:
        total = math.inf
    if not math.isfinite(total) or total < 0:
        raise ConfigError(f"{name}() takes a finite number of {name} that is not negative, not {_short(amount)}.")
    return total


def _short(value: object) -> str:
    """Return a number's repr, cut where an int has more digits than can be read."""
    if isinstance(value, int) and abs(value) >= 10**30:
        return "an int of more than 30 digits"
    return repr(value)


def _unquoted(value: object, parameter: str) -> str | None:
    """Return what to write instead, where a number was given as text."""
    if not isinstance(value, str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return f"Write {parameter}={value.strip()}, without the quotes." if math.isfinite(number) else None
