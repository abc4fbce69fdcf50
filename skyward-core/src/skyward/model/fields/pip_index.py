"""
A package index that serves only the packages it is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from attrs import field, frozen

from skyward.errors import ConfigError
from skyward.model.fields.setting import suggesting, text, texts
from skyward.plain import redacted

__all__ = ["PipIndex", "index_url"]

_URL = re.compile(r"(https?://|file:///)\S+")
_PACKAGE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


def index_url(value: object, parameter: str) -> str:
    """
    Return the URL of a package index, checked.

    Args:
        value: What was written.
        parameter: Name of the parameter it was given for.

    Raises:
        ConfigError: If it is no http, https or file URL.

    >>> index_url("https://download.pytorch.org/whl/cu128", "url")
    'https://download.pytorch.org/whl/cu128'
    """
    url = text(value, parameter)
    if not _URL.fullmatch(url):
        raise ConfigError(
            f"{parameter} must be the URL of a package index, not {redacted(url)!r}.",
            hint='It begins with "https://", "http://" or "file:///".',
        )
    return url


def _url(value: str) -> str:
    """Return the index's URL, checked."""
    return index_url(value, "url")


def _packages(value: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the packages, checked."""
    names = texts(value, "packages")
    if not names:
        raise ConfigError(
            "packages must name at least one package.",
            hint="An index for all packages is Image(pip_extra_index_url=...).",
        )
    for name in names:
        if not _PACKAGE.fullmatch(name):
            raise ConfigError(
                f"packages must be names of packages, not {name!r}.", hint="Versions belong in Image(pip=[...])."
            )
    return names


def _shown(url: str) -> str:
    """Return a URL's repr without secrets."""
    return repr(redacted(url))


@suggesting
@frozen
class PipIndex:
    """
    Route some packages to an index of their own.

    Args:
        url: Address of the index.
        packages: Names of the packages that come from it, without versions.

    Raises:
        ConfigError: If the URL is none, or no package is named.

    >>> PipIndex("https://download.pytorch.org/whl/cu128", ["torch", "torchvision"]).packages
    ('torch', 'torchvision')
    """

    url: str = field(converter=_url, repr=_shown)
    packages: tuple[str, ...] = field(converter=_packages)
