"""
Where Skyward writes its own log, and how much of it is kept.
"""

from __future__ import annotations

import os
import re
from typing import Any, Literal, cast

from attrs import field, frozen

from skyward.errors import ConfigError
from skyward.model.fields.setting import choice, suggesting, switch, text, whole

__all__ = ["LogConfig", "LogLevel"]

LogLevel = Literal["TRACE", "DEBUG", "INFO", "WARNING", "ERROR"]

_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)")
_SIZES = {"b": 1, "kb": 1_000, "mb": 1_000_000, "gb": 1_000_000_000, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_TIMES = {"second": 1.0, "minute": 60.0, "hour": 3_600.0, "day": 86_400.0, "week": 604_800.0}


def _level(value: str) -> LogLevel:
    """Return the level in capitals, checked."""
    given: Any = value
    spelled = given.upper() if isinstance(given, str) else given
    return cast("LogLevel", choice(spelled, "level", ("TRACE", "DEBUG", "INFO", "WARNING", "ERROR")))


def _file(value: str | os.PathLike[str]) -> str:
    """Return the path of the log file as text, checked."""
    return text(os.fspath(value) if isinstance(value, os.PathLike) else value, "file")


def _rotation(value: str) -> str:
    """Return when a new file is begun, checked."""
    size_bytes, age_s = _limits(value)
    if not (size_bytes or age_s):
        raise ConfigError(
            f"rotation must be a size or a time above zero, not {value!r}.",
            hint='Write it as in "50 MB" or "1 day".',
        )
    return value


def _retention(value: int) -> int:
    """Return the number of old files to keep, checked."""
    return whole(value, "retention")


def _limits(value: object) -> tuple[int | None, float | None]:
    """Return the size in bytes or the age in seconds that an amount stands for."""
    found = _AMOUNT.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        return None, None
    number, unit = float(found[1]), found[2].lower()
    if unit in _SIZES:
        return int(number * _SIZES[unit]), None
    one = unit.removesuffix("s")
    return None, number * _TIMES[one] if one in _TIMES else None


@suggesting
@frozen(kw_only=True)
class LogConfig:
    """
    Say where Skyward's own log goes.

    Args:
        level: Least severity written: `"TRACE"`, `"DEBUG"`, `"INFO"`, `"WARNING"` or `"ERROR"`.
        file: Path of the log file; `~` is the user's home.
        console: Whether its warnings and errors are written to the terminal too.
        rotation: When a new file is begun: a size such as `"50 MB"` or an age such as `"1 day"`.
        retention: How many old files are kept.
        stored: Whether the pool stores its events and the output of its functions, for `sky logs` and `sky cost`.

    Raises:
        ConfigError: If a value is none of what its field takes.

    >>> LogConfig(level="debug", rotation="1 MiB").rotation_bytes
    1048576
    """

    level: LogLevel = field(default="INFO", converter=_level)
    file: str = field(default="~/.skyward/logs/skyward.log", converter=_file)
    console: bool = field(default=True, validator=switch)
    rotation: str = field(default="50 MB", converter=_rotation)
    retention: int = field(default=10, converter=_retention)
    stored: bool = field(default=True, validator=switch)

    @property
    def rotation_bytes(self) -> int | None:
        """
        Return the size at which a new file is begun, in bytes; None where age decides.

        >>> LogConfig().rotation_bytes
        50000000
        """
        return _limits(self.rotation)[0]

    @property
    def rotation_s(self) -> float | None:
        """
        Return the age at which a new file is begun, in seconds; None where size decides.

        >>> LogConfig(rotation="1 day").rotation_s
        86400.0
        """
        return _limits(self.rotation)[1]
