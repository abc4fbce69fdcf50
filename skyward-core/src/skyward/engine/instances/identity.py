"""Identity of the client and its user, as written on the machines that it rents."""

from __future__ import annotations

import getpass
import platform
import secrets

__all__ = ["CLIENT", "owner"]

CLIENT = secrets.token_hex(6)
"""Identity of this process, written on machines."""


def owner() -> str:
    """Return the user and host of this program, as `user@host`."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "unknown"
    return f"{user}@{platform.node()}"
