"""
What providers sold when they were last asked, in a file that all processes of a user share.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

from attrs import frozen

from skyward import private
from skyward.engine.source.environment import CACHE_HINT, locked
from skyward.errors import ConfigError
from skyward.model.instances.offer import Offer
from skyward.plan.offers.offer_sql import INSERT, SCHEMA, VERSION, counting, offer_of, row_of, sql
from skyward.plan.offers.wanted import Wanted

__all__ = ["Source", "OfferStore"]

T = TypeVar("T")

PATIENCE = 30.0
"""Seconds to wait while another process writes."""

KEPT = 7 * 24 * 3600.0
"""Seconds after which what a provider sold is thrown away, if it was not asked again."""

_writing = threading.Lock()
"""Of all threads of this process one writes at a time; SQLite sees to the other processes."""


@frozen
class Source:
    """
    Name a provider with its settings, as far as offers depend on them.

    Args:
        provider: The provider's name.
        digest: Of the settings; two accounts or two regions have two.
    """

    provider: str
    digest: str


class OfferStore:
    """
    Keep offers in a file, and find them.

    Nothing is opened before it is needed, and nothing stays open.
    A file that is damaged or of another version is rebuilt: all in it can be asked for again.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def asked_at(self, source: Source) -> float | None:
        """Return when a provider's offers were written, in seconds since the epoch; None if there are none."""
        return self._do(lambda db: _row(db, source)[1])

    def put(self, source: Source, offers: Iterable[Offer], asked_at: float) -> None:
        """
        Write what a provider sells, in the place of what it sold before.

        Args:
            source: The provider.
            offers: What it sells, in the catalogue's words.
            asked_at: When it was asked, in seconds since the epoch.
        """
        rows = [row_of(offer, 0)[:-1] for offer in offers]

        def put(db: sqlite3.Connection) -> None:
            db.execute("BEGIN IMMEDIATE")
            with db:
                old = db.execute("SELECT id FROM source WHERE asked_at < ?", (asked_at - KEPT,)).fetchall()
                known = _row(db, source)[0]
                for number in {known, *(number for (number,) in old)} - {None}:
                    db.execute("DELETE FROM offer WHERE source = ?", (number,))
                    db.execute("DELETE FROM source WHERE id = ?", (number,))
                entry = db.execute(
                    "INSERT INTO source (provider, digest, asked_at) VALUES (?, ?, ?)",
                    (source.provider, source.digest, asked_at),
                )
                db.executemany(INSERT, ((*row, entry.lastrowid) for row in rows))

        with _writing:
            self._do(put)

    def find(self, wanted: Wanted, sources: Sequence[Source]) -> list[Offer] | None:
        """
        Return the offers that are wanted; None if one of the sources is not there.

        Args:
            wanted: What is asked for.
            sources: Whose offers are looked at.
        """
        rows = self._rows(wanted, sources, sql)
        return None if rows is None else [offer_of(row) for row in rows]

    def count(self, wanted: Wanted, sources: Sequence[Source]) -> int | None:
        """Return how many offers are wanted; arguments and None as for `find`."""
        rows = self._rows(wanted, sources, counting)
        return None if rows is None else int(rows[0][0])

    def _rows(
        self,
        wanted: Wanted,
        sources: Sequence[Source],
        statement: Callable[[Wanted, Sequence[int]], tuple[str, tuple[Any, ...]]],
    ) -> list[Any] | None:
        def rows(db: sqlite3.Connection) -> list[Any] | None:
            # One transaction, so that offers that are written meanwhile are seen whole or not at all.
            db.execute("BEGIN")
            numbers = [number for number in (_row(db, source)[0] for source in sources) if number is not None]
            return None if len(numbers) < len(sources) else db.execute(*statement(wanted, numbers)).fetchall()

        return self._do(rows)

    def _do(self, do: Callable[[sqlite3.Connection], T]) -> T:
        """Use the file, again if it turns out to be damaged."""
        try:
            with closing(self._opened()) as db:
                return do(db)
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise ConfigError(
                    f"The cache of offers, {self.path}, cannot be used: {error}.",
                    hint=CACHE_HINT,
                ) from error
        self._replace()
        with closing(self._opened()) as db:
            return do(db)

    def _opened(self) -> sqlite3.Connection:
        """Open the file, made if it is not there."""
        try:
            private.entry(self.path.parent.parent, self.path.parent.name, hint=CACHE_HINT)
            # SQLite would make it as the umask says, and gives the files beside it the same mode.
            os.close(private.opened(self.path, os.O_RDWR | os.O_CREAT))
        except OSError as error:
            raise sqlite3.OperationalError(str(error)) from error
        db = sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None)
        try:
            if _version(db) != VERSION:
                self._make(db)
            # What a power failure damages is rebuilt.
            db.execute("PRAGMA synchronous = OFF")
        except BaseException:
            db.close()
            raise
        return db

    def _make(self, db: sqlite3.Connection) -> None:
        """Make the tables in a file that is new; refuse one that has others."""
        with locked(self.path.with_suffix(".lock")):
            if _version(db) == VERSION:
                return
            if db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                raise _OtherStoreVersionError
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("BEGIN IMMEDIATE")
            with db:
                for statement in SCHEMA:
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {VERSION}")

    def _replace(self) -> None:
        """Take a damaged file away, unless another process has done so."""
        with locked(self.path.with_suffix(".lock")):
            try:
                with closing(sqlite3.connect(self.path, timeout=PATIENCE)) as db:
                    sound = _is_sound(db)
            except sqlite3.DatabaseError:
                sound = False
            if not sound:
                for suffix in ("", "-wal", "-shm"):
                    self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)


class _OtherStoreVersionError(sqlite3.DatabaseError):
    """Report that the tables are not those of this version."""


def _row(db: sqlite3.Connection, source: Source) -> tuple[int | None, float | None]:
    """Return the number of a source, and when it was asked."""
    found = db.execute(
        "SELECT id, asked_at FROM source WHERE provider = ? AND digest = ?", (source.provider, source.digest)
    ).fetchone()
    return found or (None, None)


def _version(db: sqlite3.Connection) -> int:
    """Return the version of the tables; 0 where there are none."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _is_sound(db: sqlite3.Connection) -> bool:
    """Return whether a file has the tables of this version, and they can be read."""
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    sound: bool = db.execute("PRAGMA quick_check").fetchone()[0] == "ok"
    return _version(db) == VERSION and tables == {"source", "offer"} and sound


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    """Return whether an error says that the file is not what it should be."""
    text = str(error)
    return not isinstance(error, sqlite3.OperationalError) or "no such" in text or "malformed" in text
