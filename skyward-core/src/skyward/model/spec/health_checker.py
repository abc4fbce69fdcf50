"""
How a pool finds out that a node is of no more use: by a function of the user's.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from typing import Any

from attrs import field, frozen

from skyward.errors import ConfigError
from skyward.model.fields.setting import lasting, whole

__all__ = ["HealthChecker"]


def _predicate(value: Any) -> Callable[[], bool]:
    """Return the function that is called on nodes, checked."""
    # A decorated one is called there itself, and not sent again.
    plain: Any = getattr(value, "local", value)
    if not callable(plain):
        raise ConfigError(f"predicate must be a function without arguments that returns True or False, not {value!r}.")
    if iscoroutinefunction(plain) or isgeneratorfunction(plain) or isasyncgenfunction(plain):
        raise ConfigError(
            f"predicate must be a plain function, and {getattr(plain, '__name__', plain)} is a coroutine or generator.",
            hint="Write `def` without async and yield; asyncio.run() inside it awaits what has to be.",
        )
    checked: Callable[[], bool] = plain
    return checked


def _failures(value: int) -> int:
    """Return how many failures in a row are too many, checked."""
    return whole(value, "failures", least=1)


def _lasting(instance: object, attribute: Any, value: object) -> None:
    """Refuse what is no time above zero."""
    lasting(value, attribute.name)


@frozen
class HealthChecker:
    """
    Check each node again and again, and replace those that fail.

    The predicate runs on the node, beside its tasks, in a process of its own: one that hangs, raises or crashes is a
    failed check and holds up nothing.
    After so many failures in a row the node begins no calls any more, and another takes its place.

    Args:
        predicate: A function without arguments: True says that the node is well, False that it is not. Anything else
            is a mistake of the function, which is reported and ends the checks of that node.
        period: Seconds from the beginning of one check to that of the next.
        failures: How many checks have to fail in a row.
        timeout: Seconds that a check may take; one that takes longer has failed, and its process is ended.

    Raises:
        ConfigError: If the predicate cannot be called, or a number makes no sense.

    >>> from shutil import disk_usage
    >>> def has_room() -> bool:
    ...     return disk_usage("/").free > 5e9
    >>> HealthChecker(has_room, period=60).failures
    3
    """

    predicate: Callable[[], bool] = field(converter=_predicate)
    period: float = field(default=30.0, kw_only=True, validator=_lasting)
    failures: int = field(default=3, kw_only=True, converter=_failures)
    timeout: float = field(default=10.0, kw_only=True, validator=_lasting)
