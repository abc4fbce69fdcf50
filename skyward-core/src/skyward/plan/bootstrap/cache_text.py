"""Skyward's cache on a machine, as shell text: its entries, a check of its permissions, and its removal."""

from __future__ import annotations

from skyward.shell_files import shell_file

__all__ = ["CACHE", "ENTRIES", "clean", "make_entries", "unsafe"]

CACHE = "${SKYWARD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/skyward}"
"""Path of the cache, as the shell expands it."""

ENTRIES = ("environments", "locks", "nodes", "offers", "python", "runtime", "tools")
"""The directories in it; `mig.json` besides, which is a plugin's."""


def make_entries() -> str:
    """Write the function that makes the cache and its directories, and lists in `.skyward` what it made."""
    return shell_file(__package__, "make_entries.sh", ENTRIES=" ".join(ENTRIES))


def unsafe() -> str:
    """Write the function that looks at the owner and the mode of what is entered, imported from or run."""
    return shell_file(__package__, "unsafe.sh", ENTRIES=" ".join(ENTRIES))


def clean() -> str:
    """Write the script that removes what Skyward made, and says what else is there."""
    return f"{unsafe()}\n{shell_file(__package__, 'clean.sh', ENTRIES=' '.join(ENTRIES))}"
