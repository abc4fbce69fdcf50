"""
How often a call that failed is tried again, when, and after which failures.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

from attrs import field, frozen

from skyward.errors import ConfigError
from skyward.model.fields.duration import seconds
from skyward.model.fields.setting import real, suggesting, whole

__all__ = ["LONGEST", "OnFailure", "Retry"]

LONGEST = 3600.0
"""Seconds that no wait before an attempt exceeds, however often a call has failed."""

OnFailure: TypeAlias = "type[BaseException] | tuple[type[BaseException], ...] | Callable[[BaseException], object]"


def _times(value: object) -> int:
    """Return the number of further attempts, checked."""
    return whole(value, "times")


def _delay(value: object) -> float:
    """Return the first delay, checked."""
    delay = seconds(value, "delay")
    if delay > LONGEST:
        raise ConfigError(f"delay must be {LONGEST:g} seconds at most, not {value!r}.")
    return delay


def _backoff(value: object) -> float:
    """Return the factor of delays, checked."""
    return real(value, "backoff", least=1.0)


def _jitter(value: object) -> float:
    """Return the share of a delay that is drawn, checked."""
    return real(value, "jitter", least=0.0, most=1.0)


def _on(value: Any) -> OnFailure | None:
    """Return which failures are meant, checked."""
    if isinstance(value, list):
        value = tuple(value)
    if value is None or _failures(value):
        return cast("OnFailure | None", value)
    if isinstance(value, type) or not callable(value):
        raise ConfigError(
            f"on must be an exception class, a tuple of them, or a function of the exception, not {value!r}."
        )
    import inspect

    plain = inspect.unwrap(getattr(value, "local", value))
    if inspect.iscoroutinefunction(plain) or inspect.isgeneratorfunction(plain):
        raise ConfigError("on must be a plain function: what an async or generator function returns is always true.")
    return cast("OnFailure", value)


def _failures(value: object) -> bool:
    """Return whether it is an exception class, or a tuple of some."""
    kinds = value if isinstance(value, tuple) and value else (value,)
    return all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds)


@suggesting
@frozen
class Retry:
    """
    Say how often a call that failed is tried again, after which delays, and after which failures.

    It stands wherever a number of retries does; the number 3 is `Retry(3, delay=0)`.
    The loss of a node is counted apart, by `retry_on_interruption`, and is tried again at once.

    Args:
        times: How many more attempts there are after one that fails.
        delay: Seconds between the first failure and the next attempt; at most an hour.
        backoff: What each delay is multiplied by for the one after it, from 1; no delay exceeds an hour.
        jitter: The share of each delay that it is longer or shorter by, drawn at random, from 0 to 1.
        on: Which failures are tried again: an exception class, a tuple of them, or a function of the exception, called
            here in a thread of its own; None means all.

    Raises:
        ConfigError: If a value makes no sense.

    >>> import skyward as sky
    >>> @sky.function(retries=sky.Retry(3, delay=2, on=ConnectionError))
    ... def fetch(url: str) -> bytes:
    ...     raise ConnectionError(url)
    >>> fetch("https://example.org").retries.times
    3
    """

    times: int = field(converter=_times)
    delay: float = field(default=1.0, converter=_delay)
    backoff: float = field(default=2.0, converter=_backoff)
    jitter: float = field(default=0.1, converter=_jitter)
    on: OnFailure | None = field(default=None, kw_only=True, converter=_on)

    def applies(self, error: BaseException) -> bool:
        """
        Return whether a failure is one to try again after.

        Args:
            error: What the caller would get.

        Raises:
            Exception: What a function given as `on` raises.

        >>> Retry(1, on=OSError).applies(TimeoutError()), Retry(1, on=OSError).applies(KeyError())
        (True, False)
        """
        if self.on is None:
            return True
        if _failures(self.on):
            return isinstance(error, cast("type[BaseException]", self.on))
        return bool(cast("Callable[[BaseException], object]", self.on)(error))
