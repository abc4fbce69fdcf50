"""
What frameworks' plugins ask of packages: which ones a list names, and whether a version is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from skyward.errors import ConfigError

__all__ = ["checked_version", "package_names"]

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_VERSION = re.compile(r"\d+(\.\d+)*([._-]?(a|b|rc|dev|post)\d+)*(\+[\w.]+)?")


def package_names(requirements: Iterable[str]) -> frozenset[str]:
    """
    Cut requirements down to the names of packages, in small letters.

    Args:
        requirements: As pip takes them.

    >>> sorted(package_names(["Torch==2.13.0", "tensorflow[and-cuda]>=2", "numpy"]))
    ['numpy', 'tensorflow', 'torch']
    """
    return frozenset(match[0].lower() for package in requirements if (match := _NAME.match(package.strip())))


def checked_version(value: object, parameter: str, *, example: str) -> None:
    """
    Refuse what is no version.

    Args:
        value: What was given.
        parameter: For which parameter.
        example: What would have been one.

    Raises:
        ConfigError: If it is none.

    >>> checked_version("2.13.0+cu128", "version", example="2.13.0")
    """
    if not isinstance(value, str) or not _VERSION.fullmatch(value):
        raise ConfigError(f'{parameter} must be a version such as "{example}", not {value!r}.')
