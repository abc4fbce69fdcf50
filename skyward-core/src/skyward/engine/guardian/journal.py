"""What this machine's clients asked clouds for, written down before they ask, to find what is recorded nowhere else."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import queue
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
from attrs import frozen

from skyward import private
from skyward.engine.guardian.state_folder import STATE_HINT, journal_path
from skyward.errors import ConfigError, PluginError
from skyward.model.instances.machine import LaunchRequest

__all__ = ["STATE_HINT", "Journal", "LaunchRecord", "journal_path", "launches"]

_log = logging.getLogger(__name__)

_VERSION = 1
_KEPT = 30 * 24 * 3600.0
_WRITING = 10.0
# How much waits while the file cannot be written, and for how long it is left alone after it could not be opened.
_WAITING = 1000
# How much of what is written is written in one transaction, at most.
_TOGETHER = 256
_AGAIN = 30.0
# SQLite's codes for a file that is no journal, and for passing failures: a lock, a full disk, a read-only disk.
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_PASSING = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
}
_TABLE = """
CREATE TABLE IF NOT EXISTS launches (
    token TEXT PRIMARY KEY, pool_id TEXT NOT NULL, pool_name TEXT NOT NULL, provider TEXT NOT NULL, region TEXT,
    instance_type TEXT NOT NULL, spot INTEGER NOT NULL, nodes TEXT NOT NULL, infra TEXT NOT NULL,
    client INTEGER NOT NULL, asked_at REAL NOT NULL, ids TEXT, ended TEXT NOT NULL DEFAULT '[]'
)
"""


@frozen(kw_only=True)
class LaunchRecord:
    """
    Say what a client asked a cloud for.

    Args:
        token: Names the request.
        pool_id: The use of the pool it was for.
        pool_name: What the user calls the pool.
        provider: The provider's name.
        region: Where, as the provider calls it.
        instance_type: The provider's name for the kind of machine.
        spot: Whether on the spot market.
        nodes: For which nodes.
        infra: What the pool's machines share, as JSON.
        client: Process id of the client.
        asked_at: When, in seconds since 1970.
        ids: The machines that came of it; None where no answer came.
        ended: Those of them that were terminated.
    """

    token: str
    pool_id: str
    pool_name: str
    provider: str
    region: str | None
    instance_type: str
    spot: bool
    nodes: tuple[int, ...]
    infra: Any
    client: int
    asked_at: float
    ids: tuple[str, ...] | None
    ended: tuple[str, ...]

    @property
    def open(self) -> bool:
        """Return whether machines of it may still exist."""
        return self.ids is None or bool(set(self.ids) - set(self.ended))


@frozen
class _Write:
    """One change of the journal, and its callback."""

    statement: str
    values: Sequence[Any]
    tried: Callable[[], object] = lambda: None


class _OtherJournalVersionError(sqlite3.DatabaseError):
    """Report that the tables are those of another version."""


class Journal:
    """
    Write launches down, in a thread of its own; many processes may write to one file.

    What a lock or a full disk keeps out of the file is written with the next launch, or at the end.

    Args:
        path: The file; it and its directory are made where they are missing, and only the user may read them.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # A queue of its own: executors take no work while the interpreter ends, when pools left open are closed.
        self._work: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="skyward-journal", daemon=True)
        self._thread.start()

    @classmethod
    def open(cls) -> Journal:
        """Open the journal of this user."""
        return cls(journal_path())

    async def asked(self, request: LaunchRequest, provider: str, infra: Any) -> None:
        """
        Write down what is about to be asked for, and return when it is on disk.

        Args:
            request: The request.
            provider: The provider's name.
            infra: What the pool's machines share.

        Raises:
            PluginError: If `infra` holds what JSON cannot, or a secret.
        """
        cluster, offer = request.cluster, request.cluster.offer
        row = (
            request.token,
            cluster.pool_id,
            cluster.pool_name,
            provider,
            offer.region,
            offer.instance_type,
            int(request.spot),
            json.dumps(list(request.nodes)),
            json.dumps(_plain(infra, provider)),
            os.getpid(),
            time.time(),
        )
        loop = asyncio.get_running_loop()
        written: asyncio.Future[None] = loop.create_future()

        statement = (
            "INSERT INTO launches (token, pool_id, pool_name, provider, region, instance_type, spot, "
            "nodes, infra, client, asked_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        )
        self._work.put(_Write(statement, row, lambda: loop.call_soon_threadsafe(_settle, written)))
        # A journal that cannot be written must not keep a pool from working: the clouds' tags are the truth.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(written, _WRITING)

    def answered(self, token: str, ids: Iterable[str]) -> None:
        """Write down what came of a request."""
        text = json.dumps(list(ids))
        self._do("UPDATE launches SET ids = ? WHERE token = ?", (text, token))

    def ended(self, token: str, machine: str) -> None:
        """Record that a machine was terminated."""
        self._do(
            "UPDATE launches SET ended = json_insert(ended, '$[#]', ?) WHERE token = ?",
            (machine, token),
        )

    def settled(self, pool_id: str) -> None:
        """Write down that the cloud lists no machine of a pool any more."""
        statement = "UPDATE launches SET ids = coalesce(ids, '[]'), ended = coalesce(ids, '[]') WHERE pool_id = ?"
        self._do(statement, (pool_id,))

    def close(self) -> None:
        """Write what is left, and close the file."""
        self._work.put(None)
        self._thread.join(_WRITING)

    def _do(self, statement: str, values: Sequence[Any]) -> None:
        self._work.put(_Write(statement, values))

    def _run(self) -> None:
        waiting: deque[_Write] = deque(maxlen=_WAITING)
        connection: sqlite3.Connection | None = None
        again = float("-inf")
        try:
            over = False
            while not over:
                found, over = self._taken()
                waiting.extend(found)
                if waiting and connection is None and (over or time.monotonic() >= again):
                    connection, again = self._opened(), time.monotonic() + _AGAIN
                self._catch_up(connection, waiting)
                for write in found:
                    # The event loop that waits for this write may be closed.
                    with contextlib.suppress(RuntimeError):
                        write.tried()
        finally:
            if connection is not None:
                connection.close()

    def _taken(self) -> tuple[list[_Write], bool]:
        """Wait for a write, take those that came with it, and return whether none will come any more."""
        found: list[_Write] = []
        write = self._work.get()
        while write is not None:
            found.append(write)
            if len(found) == _TOGETHER or self._work.empty():
                return found, False
            write = self._work.get()
        return found, True

    def _opened(self) -> sqlite3.Connection | None:
        try:
            return _connect(self._path)
        except (OSError, ConfigError, sqlite3.Error) as error:
            _log.warning("journal.unusable path=%s: %s", self._path, error)
            return None

    def _catch_up(self, connection: sqlite3.Connection | None, waiting: deque[_Write]) -> None:
        """Write what waits, in its order, as far as that is possible now."""
        if connection is not None and len(waiting) > 1:
            # One transaction: each waits for the disk, and a thousand machines that are terminated are as many writes.
            try:
                with connection:
                    for write in waiting:
                        connection.execute(write.statement, write.values)
            except (sqlite3.Error, OverflowError, UnicodeError) as error:
                if _code(error) in _PASSING:
                    _log.warning("journal.failed path=%s waiting=%d: %s", self._path, len(waiting), error)
                    return
                # One of them is to blame: the others are written without it.
            else:
                waiting.clear()
        while connection is not None and waiting:
            try:
                with connection:
                    connection.execute(waiting[0].statement, waiting[0].values)
            except (sqlite3.Error, OverflowError, UnicodeError) as error:
                _log.warning("journal.failed path=%s waiting=%d: %s", self._path, len(waiting), error)
                if _code(error) in _PASSING:
                    return
            waiting.popleft()


def launches(path: Path | None = None) -> list[LaunchRecord]:
    """
    List what was written down, oldest first.

    Args:
        path: The journal's file; None is this user's.
    """
    path = path or journal_path()
    if not path.exists():
        return []
    try:
        with contextlib.closing(_connect(path)) as connection:
            connection.row_factory = sqlite3.Row
            rows = connection.execute("SELECT * FROM launches ORDER BY asked_at").fetchall()
    except (OSError, ConfigError, sqlite3.Error) as error:
        _log.warning("journal.unusable path=%s: %s", path, error)
        return []
    return [_launch(dict(row)) for row in rows]


def _connect(path: Path) -> sqlite3.Connection:
    """Open the journal; one that is damaged or of another version is put aside, one that is locked is not."""
    private.directory(path.parent, hint=STATE_HINT)
    try:
        return _open(path)
    except sqlite3.DatabaseError as error:
        if _code(error) not in _DAMAGED and not isinstance(error, _OtherJournalVersionError):
            raise
        aside = path.with_suffix(f".{int(time.time())}.damaged")
        path.replace(aside)
        _log.warning("journal.damaged path=%s kept=%s: %s", path, aside, error)
        return _open(path)


def _open(path: Path) -> sqlite3.Connection:
    # SQLite would make it as the umask says, and gives the files beside it the same mode.
    os.close(private.opened(path, os.O_RDWR | os.O_CREAT))
    connection = sqlite3.connect(path, timeout=_WRITING)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version not in (0, _VERSION):
            raise _OtherJournalVersionError(f"version {version}")
        if not version:
            with connection:
                connection.execute(_TABLE)
                connection.execute(f"PRAGMA user_version={_VERSION}")
        # Old rows may stay while another process holds the lock, or where the disk is full.
        connection.execute("PRAGMA busy_timeout=0")
        with contextlib.suppress(sqlite3.OperationalError), connection:
            connection.execute("DELETE FROM launches WHERE asked_at < ?", (time.time() - _KEPT,))
        connection.execute(f"PRAGMA busy_timeout={int(_WRITING * 1000)}")
    except BaseException:
        connection.close()
        raise
    return connection


def _code(error: BaseException) -> int | None:
    """Return what SQLite calls an error, without its finer shades."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _launch(row: Mapping[str, Any]) -> LaunchRecord:
    ids = None if row["ids"] is None else tuple(json.loads(row["ids"]))
    read = {
        "spot": bool(row["spot"]),
        "nodes": tuple(json.loads(row["nodes"])),
        "infra": json.loads(row["infra"]),
        "ids": ids,
        "ended": tuple(json.loads(row["ended"])),
    }
    return LaunchRecord(**{**row, **read})


def _plain(value: Any, provider: str) -> Any:
    """Return what JSON can hold of a provider's value."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if attrs.has(type(value)):
        for field in attrs.fields(type(value)):
            if field.repr is False:
                raise PluginError(
                    f"skyward_open of provider {provider!r} returned {type(value).__name__}, whose field "
                    f"{field.name!r} is kept out of its repr: a secret has no place in what is written down.",
                    plugin=provider,
                    hook="skyward_open",
                )
        return {field.name: _plain(getattr(value, field.name), provider) for field in attrs.fields(type(value))}
    if isinstance(value, Mapping):
        return {str(name): _plain(item, provider) for name, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item, provider) for item in value]
    raise PluginError(
        f"skyward_open of provider {provider!r} returned a {type(value).__name__}, which cannot be written down.",
        plugin=provider,
        hook="skyward_open",
        hint="Return a frozen value whose fields JSON can hold.",
    )


def _settle(written: asyncio.Future[None]) -> None:
    if not written.done():
        written.set_result(None)
