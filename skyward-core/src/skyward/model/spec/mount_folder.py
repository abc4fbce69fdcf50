"""
Folders at which nodes find volumes: which a user may write, and which lie in each other's way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from skyward.errors import ConfigError
from skyward.model.fields.setting import text

__all__ = ["KEPT_FOLDERS", "SYSTEM_FOLDERS", "in_the_way", "mount_folder"]

KEPT_FOLDERS: Final = frozenset(f"/{name}" for name in ("", "home", "opt", "root", "tmp"))
"""Folders that are no mount points themselves; those below them may be."""

SYSTEM_FOLDERS: Final = frozenset(
    f"/{name}" for name in "bin boot dev etc lib lib32 lib64 libx32 opt/skyward proc run sbin sys usr var".split()
)
"""Folders that are no mount points, nor is any below them."""

_STEP = re.compile(r"[\w.+-]+", re.ASCII)
_USUAL = 'Write mount="/data", say.'


def mount_folder(value: object, parameter: str = "mount") -> str:
    """
    Return the folder at which nodes find a volume, checked.

    Args:
        value: An absolute, normalised path of letters, digits and `_.+-`.
        parameter: Name of the parameter that it was written for.

    Raises:
        ConfigError: If it is anything else, one of `KEPT_FOLDERS`, or one of `SYSTEM_FOLDERS` or below it.

    >>> mount_folder("/mnt/data/")
    '/mnt/data'
    >>> mount_folder("/etc/data")
    Traceback (most recent call last):
    ...
    skyward.errors.ConfigError: mount must not be '/etc/data': /etc is the system's. Write mount="/data", say.
    """
    path = text(value, parameter)
    hint = _USUAL.replace("mount=", f"{parameter}=")
    if not path.startswith("/"):
        raise ConfigError(f"{parameter} must be an absolute path, not {path!r}.", hint=hint)
    folder = path.rstrip("/") or "/"
    if folder in KEPT_FOLDERS:
        raise ConfigError(f"{parameter} must not be {folder!r}, whose files would be hidden.", hint=hint)
    steps = folder[1:].split("/")
    if not all(_STEP.fullmatch(step) and step not in (".", "..") for step in steps):
        raise ConfigError(
            f"{parameter} must be a normalised path of letters, digits and _.+-, not {path!r}.", hint=hint
        )
    for system in SYSTEM_FOLDERS:
        if _within(folder, system):
            raise ConfigError(f"{parameter} must not be {folder!r}: {system} is the system's.", hint=hint)
    return folder


def in_the_way(folders: Iterable[str]) -> tuple[str, str] | None:
    """
    Return two mount points that are the same or lie in each other, the outer one first; None if there are none.

    >>> in_the_way(["/data/a", "/data"])
    ('/data', '/data/a')
    >>> in_the_way(["/data", "/database"]) is None
    True
    """
    known = sorted(folders)
    for index, outer in enumerate(known):
        for inner in known[index + 1 :]:
            if _within(inner, outer):
                return outer, inner
    return None


def _within(folder: str, outer: str) -> bool:
    """Return whether a folder is another one or below it."""
    return folder == outer or folder.startswith(f"{outer}/")
