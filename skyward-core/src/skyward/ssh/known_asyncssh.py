"""Which releases of asyncssh have the private methods that are patched here; another one works in its own way."""

from __future__ import annotations

import logging
from functools import cache

__all__ = ["NEWEST", "OLDEST", "is_known"]

_log = logging.getLogger(__name__)

OLDEST, NEWEST = (2, 18), (2, 24)
"""The releases, both included. `tests/ssh/test_known_asyncssh.py` says what to read before a newer one is added."""


def is_known(version: str | None = None) -> bool:
    """
    Return whether the private methods of a release are those that the patches were written for.

    Args:
        version: The release; None for the one that is installed.

    >>> is_known("2.18.0"), is_known("2.17.0"), is_known("3.0")
    (True, False, False)
    """
    if version is None:
        return _installed_is_known()
    numbers = [int(part) for part in version.split(".")[:2] if part.isdigit()]
    return OLDEST <= tuple(numbers) <= NEWEST


@cache
def _installed_is_known() -> bool:
    from asyncssh import __version__

    known = is_known(__version__)
    if not known:
        _log.info("ssh.not_patched asyncssh=%s: logging in and each packet take longer", __version__)
    return known
