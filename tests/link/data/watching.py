"""Side effects while a pickle is opened as data, recorded by an audit hook."""

from __future__ import annotations

import sys
from typing import Any

from skyward.link.data.allowed_names import DataNames
from skyward.link.data.maker import Refused
from skyward.link.data.opener import open_data
from skyward.link.data.standard import known_zones

DOES = (
    "builtins.breakpoint",
    "builtins.input",
    "code.",
    "compile",
    "ctypes.",
    "exec",
    "function.",
    "import",
    "marshal.",
    "open",
    "os.",
    "pickle.",
    "pty.",
    "shutil.",
    "socket.",
    "subprocess.",
    "sys.",
    "tempfile.",
    "urllib.",
    "webbrowser.",
)
"""Audit events that opening a value does not need."""

_watched: list[str] | None = None


def _watch(event: str, args: tuple[Any, ...]) -> None:
    # Which time zones there are is in files of Python's own.
    if _watched is not None and event.startswith(DOES) and "zoneinfo" not in repr(args) and "tzdata" not in repr(args):
        _watched.append(f"{event} {args!r:.100}")


sys.addaudithook(_watch)


def opened(data: bytes, names: DataNames) -> tuple[Any, list[str]]:
    """Open a pickle, and return its value and the side effects meanwhile."""
    global _watched
    _watched = []
    try:
        try:
            value: Any = open_data(data, names)
        except (Refused, ValueError, MemoryError) as error:
            value = error
        return value, _watched
    finally:
        _watched = None


def known_names() -> DataNames:
    """Make names of libraries that are loaded, so that none is imported while audit events are recorded."""
    made = DataNames()
    known_zones()
    ours = (f"skyward.link.data.{name}" for name in ("arrow", "tables", "tensors"))
    for module in ("numpy", "pandas", "pyarrow", "torch", "pytz", *ours):
        try:
            made.find(module, "nothing")
        except Refused:
            continue
    return made
