"""Another user of this machine, as far as files tell."""

from __future__ import annotations

import os
from pathlib import Path

STRANGER = 54321
"""A user id without an account."""


def give_away(path: Path) -> None:
    """
    Have a file or a directory be another user's, which could then change it.

    Only root can do that; other users make it writable for all, which is refused for the same reason.

    Args:
        path: The file, directory or link.
    """
    if os.geteuid() == 0:
        os.chown(path, STRANGER, STRANGER, follow_symlinks=False)
    else:
        path.chmod(0o777)
