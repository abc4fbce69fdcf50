"""
Keywords of `sky.Compute`: the fields they stand for, and the check of one by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from skyward.model.fields.memory import gigabytes
from skyward.model.fields.setting import positive
from skyward.model.fields.variables import variables
from skyward.model.spec.options import Options, Worker, console_shown
from skyward.model.spec.spec import Spec
from skyward.model.spec.volumes import volumes

__all__ = ["ALIASES", "OTHER_CHECKS", "check_keyword", "known_keywords"]

# Shorter and older words, and the fields they stand for.
ALIASES: dict[str, str] = {"cpu": "vcpus", "memory": "memory_gb", "display": "console", "volume": "volumes"}
# Their checks once more, so that a refusal names the word that was written.
OTHER_CHECKS: dict[str, Callable[[object, str], object]] = {
    "cpu": positive,
    "memory": gigabytes,
    "display": console_shown,
    "volume": volumes,
}
_OF_A_POOL: tuple[type[Any], ...] = (Spec, Options, Worker)


def known_keywords() -> tuple[str, ...]:
    """
    Return every flat keyword, fields first.

    >>> "concurrency" in known_keywords(), "cpu" in known_keywords()
    (True, True)
    """
    return (*(field.name for kind in _OF_A_POOL for field in attrs.fields(kind)), *ALIASES, "env")


def check_keyword(keyword: str, value: Any) -> None:
    """
    Refuse a value that its keyword does not take, whatever the others are.

    Args:
        keyword: One of `known_keywords`.
        value: What was written for it.

    Raises:
        ConfigError: If it is none of what the keyword takes.

    >>> check_keyword("concurrency", 0)
    Traceback (most recent call last):
    ...
    skyward.errors.ConfigError: concurrency must be a whole number of at least 1, not 0.
    """
    if keyword == "env":
        variables(value, "env")
    elif keyword in OTHER_CHECKS:
        OTHER_CHECKS[keyword](value, keyword)
    elif keyword == "provider" and isinstance(value, list):
        for each in value:
            Spec(provider=each)
    else:
        kind = next(kind for kind in _OF_A_POOL if any(field.name == keyword for field in attrs.fields(kind)))
        kind(**{keyword: value})
