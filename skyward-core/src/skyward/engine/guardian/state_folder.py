"""Where what this user's programs know is kept; apart from what writes it, as a shell that completes words waits."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["STATE_HINT", "journal_path"]

STATE_HINT = "SKYWARD_STATE may name another directory."


def journal_path() -> Path:
    """
    Name the file of the journal.

    It is in `SKYWARD_STATE`, else in `skyward` in `XDG_STATE_HOME`, else in `~/.local/state/skyward`.
    """
    if state := os.environ.get("SKYWARD_STATE"):
        return Path(state).expanduser() / "journal.sqlite"
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "skyward" / "journal.sqlite"
