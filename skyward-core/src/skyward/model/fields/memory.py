"""
Amounts of memory: what a user or a cloud may write for one.
"""

from __future__ import annotations

import math
import re

from skyward.errors import ConfigError

__all__ = ["gigabytes", "written"]

_TEXT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?\s*", re.IGNORECASE)
_UNIT_GB = {"m": 1 / 1024, "g": 1.0, "t": 1024.0}


def gigabytes(value: object, parameter: str) -> float:
    """
    Return an amount of memory in GB.

    Memory is sold in powers of two whatever the unit is called, so `"80GB"` and `"80GiB"` are the same here.

    Args:
        value: A number of GB, or text such as `"40GB"`, `"512MB"` or `"1.5TB"`.
        parameter: Name of the parameter it was given for, for the error.

    Raises:
        ConfigError: If the value is no amount of memory, or not more than zero.

    >>> gigabytes("40GB", "memory")
    40.0
    >>> gigabytes("2TB", "memory")
    2048.0
    """
    accepted = 'Write a number of GB, such as 40, or text such as "40GB".'
    if isinstance(value, str):
        found = _TEXT.fullmatch(value)
        unit = _UNIT_GB.get(found[2].lower() or "g") if found else None
        if found is None or unit is None:
            raise ConfigError(f"{parameter} must be an amount of memory, not {value!r}.", hint=accepted)
        amount = float(found[1]) * unit
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        # A huge int has no float; it is as unusable as infinity.
        amount = float(value) if abs(value) < 1e18 else math.inf
    else:
        raise ConfigError(f"{parameter} must be an amount of memory, not {value!r}.", hint=accepted)
    if not math.isfinite(amount) or amount <= 0:
        raise ConfigError(f"{parameter} must be finite and more than zero, not {value!r}.", hint=accepted)
    return amount


def written(amount_gb: float) -> str:
    """
    Return an amount of memory as text.

    Args:
        amount_gb: The amount, in GB.

    >>> written(40.0), written(1.5)
    ('40GB', '1.5GB')
    """
    return f"{amount_gb:g}GB"
