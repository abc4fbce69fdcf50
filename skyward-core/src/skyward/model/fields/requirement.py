"""
What frameworks' plugins ask of packages: which ones a list names, which version is meant, and built for which CUDA.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from attrs import frozen

from skyward.errors import ConfigError

__all__ = ["LATEST", "Cuda", "check_named_once", "companion", "cuda_of", "package_names", "version_of"]

LATEST = "latest"
"""Spellings of the newest version, beside None."""

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_SEPARATORS = re.compile(r"[-_.]+")
_VERSION = re.compile(r"\d+(\.\d+)*([._-]?(a|b|rc|dev|post)\d+)*(\+[\w.]+)?")
_CUDA = re.compile(r"(?:cuda|cu)?-?(\d{2})(?:\.?(\d))?(?:\.\d+)?")


def package_names(requirements: Iterable[str]) -> frozenset[str]:
    """
    Cut requirements down to the names of packages, as an index spells them.

    Args:
        requirements: As pip takes them.

    >>> sorted(package_names(["Torch==2.13.0", "tensorflow[and-cuda]>=2", "Scikit_Learn ; python_version > '3'"]))
    ['scikit-learn', 'tensorflow', 'torch']
    """
    found = (_NAME.match(package.strip()) for package in requirements)
    return frozenset(_SEPARATORS.sub("-", match[0]).lower() for match in found if match)


def version_of(value: Any, parameter: str = "version", *, example: str) -> str | None:
    """
    Return the version to install; None for the newest.

    Args:
        value: A version, `"latest"` or None.
        parameter: For which parameter.
        example: What would be a version.

    Raises:
        ConfigError: If it is none.

    >>> version_of("2.13.0+cu128", example="2.13.0"), version_of("latest", example="2.13.0")
    ('2.13.0+cu128', None)
    """
    if value is None or value == LATEST:
        return None
    if not isinstance(value, str) or not _VERSION.fullmatch(value):
        raise ConfigError(f'{parameter} must be a version such as "{example}", or "{LATEST}", not {value!r}.')
    return value


def companion(value: Any, parameter: str, *, example: str) -> bool | str:
    """
    Return whether a package that accompanies another is wanted, or in which version.

    Args:
        value: True or `"latest"`, a version, or False or None for none.
        parameter: For which parameter.
        example: What would be a version.

    Raises:
        ConfigError: If it is none of these.

    >>> companion(None, "vision", example="0.28.0"), companion("latest", "vision", example="0.28.0")
    (False, True)
    """
    if value is None or isinstance(value, bool):
        return bool(value)
    return version_of(value, parameter, example=example) or True


@frozen
class Cuda:
    """
    Name a release of CUDA.

    Args:
        major: Such as 12.
        minor: Such as 8; None where only the first number is known.

    >>> str(Cuda(12, 8)), str(Cuda(12))
    ('12.8', '12')
    """

    major: int
    minor: int | None = None

    def __str__(self) -> str:
        return str(self.major) if self.minor is None else f"{self.major}.{self.minor}"


def cuda_of(value: object) -> Cuda | None:
    """
    Read a release of CUDA, however it is spelled; None if it is none.

    Args:
        value: Such as `"12.8"`, `"cu128"`, `"cuda12"` or 12.

    >>> cuda_of("cu128") == cuda_of("12.8") == cuda_of(12.8) == Cuda(12, 8), cuda_of("cu12"), cuda_of("new")
    (True, Cuda(major=12, minor=None), None)
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    found = _CUDA.fullmatch(str(value).strip().lower())
    return found and Cuda(int(found[1]), int(found[2]) if found[2] else None)


def check_named_once(packages: Iterable[str], version: str | None, image: Iterable[str]) -> None:
    """
    Refuse two wishes for one package.

    Args:
        packages: Its names.
        version: The version that a plugin was given; None for none.
        image: What `Image(pip=[...])` asks for.

    Raises:
        ConfigError: If both name it.

    >>> check_named_once(["keras"], "3.15.1", ["keras>=3"])
    Traceback (most recent call last):
        ...
    skyward.errors.ConfigError: Image(pip=[...]) says which keras there is to be, and so does version=. Leave one out.
    """
    named = package_names(image) & frozenset(packages)
    if version is not None and named:
        raise ConfigError(
            f"Image(pip=[...]) says which {min(named)} there is to be, and so does version=. Leave one out."
        )
