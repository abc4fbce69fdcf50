"""Who rents: what machines bear of this program and its user."""

from __future__ import annotations

import getpass
import platform
import secrets

__all__ = ["CLIENT", "owner"]

CLIENT = secrets.token_hex(6)
"""Identity of this process, written on machines."""


def owner() -> str:
    """Return who runs this program, and where, as `user@host`."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "unknown"
    return f"{user}@{platform.node()}"
