"""What servers of this user have started that may go on without them, in files of the directory for state."""

from __future__ import annotations

import json
import os
from pathlib import Path

from attrs import asdict, frozen

from skyward import private
from skyward.engine.guardian.journal import STATE_HINT, journal_path

__all__ = ["Leased", "Record"]


@frozen(kw_only=True)
class Leased:
    """
    Say what is known of a pool that may go on without its server.

    Args:
        name: Its name, which no other pool has.
        most: What it may cost at most, in USD.
        keep: Whether it stays when its scripts have ended.
        until: When its lease ends at the latest, in seconds since 1970.
    """

    name: str
    most: float
    keep: bool
    until: float


class Record:
    """
    Keep a file for each pool with a lease; what is in no file was not started by a server.

    Args:
        folder: Where they are; None is `mcp` in the user's directory for state.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = journal_path().with_name("mcp") if folder is None else folder

    def write(self, leased: Leased) -> None:
        """
        Write a pool down, before anything is rented for it.

        Args:
            leased: The pool.

        Raises:
            OSError: If there is no room for it.
            ConfigError: If the directory is not this user's alone.
        """
        private.directory(self._folder, hint=STATE_HINT)
        path = self._folder / f"{leased.name}.json"
        fresh = path.with_suffix(".new")
        with os.fdopen(private.opened(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w", encoding="utf-8") as file:
            json.dump(asdict(leased), file)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)

    def remove(self, name: str) -> None:
        """
        Remove a pool that is over; harmless for one that is not there.

        Args:
            name: Its name.
        """
        (self._folder / f"{name}.json").unlink(missing_ok=True)

    def all(self, now: float) -> list[Leased]:
        """
        List the pools whose lease goes on, by name; files that cannot be read are left out, others removed.

        Args:
            now: Seconds since 1970.
        """
        if not self._folder.is_dir():
            return []
        private.directory(self._folder, hint=STATE_HINT)
        found = []
        for path in sorted(self._folder.glob("*.json")):
            try:
                leased = Leased(**json.loads(path.read_text(encoding="utf-8")))
            except (OSError, ValueError, TypeError):
                continue
            if leased.until < now:
                self.remove(leased.name)
            else:
                found.append(leased)
        return found
