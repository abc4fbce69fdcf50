"""What this machine's clients asked clouds for, written down before they ask: for finding what nobody else knows of."""

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
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
from attrs import frozen

from skyward.errors import PluginError
from skyward.model.machine import LaunchRequest

_log = logging.getLogger(__name__)

_VERSION = 1
_KEPT = 30 * 24 * 3600.0
_WRITING = 10.0
_TABLE = """
CREATE TABLE IF NOT EXISTS launches (
    token TEXT PRIMARY KEY, pool_id TEXT NOT NULL, pool_name TEXT NOT NULL, provider TEXT NOT NULL, region TEXT,
    instance_type TEXT NOT NULL, spot INTEGER NOT NULL, nodes TEXT NOT NULL, infra TEXT NOT NULL,
    client INTEGER NOT NULL, asked_at REAL NOT NULL, ids TEXT, ended TEXT NOT NULL DEFAULT '[]'
)
"""


@frozen(kw_only=True)
class Launch:
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
        ended: Those of them that were given back.
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
        """Tell whether machines of it may still exist."""
        return self.ids is None or bool(set(self.ids) - set(self.ended))


def journal_path() -> Path:
    """
    Name the file of the journal.

    It is in `SKYWARD_STATE`, else in `skyward` in `XDG_STATE_HOME`, else in `~/.local/state/skyward`.
    """
    if state := os.environ.get("SKYWARD_STATE"):
        return Path(state) / "journal.sqlite"
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "skyward" / "journal.sqlite"


class Journal:
    """
    Write launches down, in a thread of its own; many processes may write to one file.

    Args:
        path: The file; it and its directory are made where they are missing, and only the user may read them.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # A queue of its own: executors take no work while the interpreter ends, when forgotten pools are closed.
        self._work: queue.SimpleQueue[Callable[[sqlite3.Connection], None] | None] = queue.SimpleQueue()
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

        def write(connection: sqlite3.Connection) -> None:
            try:
                with connection:
                    connection.execute(
                        "INSERT INTO launches (token, pool_id, pool_name, provider, region, instance_type, spot, "
                        "nodes, infra, client, asked_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                        row,
                    )
            finally:
                loop.call_soon_threadsafe(_settle, written)

        self._work.put(write)
        # A journal that cannot be written must not keep anybody from working: the clouds' tags are the truth.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(written, _WRITING)

    def answered(self, token: str, ids: Iterable[str]) -> None:
        """Write down what came of a request."""
        text = json.dumps(list(ids))
        self._do("UPDATE launches SET ids = ? WHERE token = ?", (text, token))

    def ended(self, token: str, machine: str) -> None:
        """Write down that a machine was given back."""
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
        def write(connection: sqlite3.Connection) -> None:
            with connection:
                connection.execute(statement, values)

        self._work.put(write)

    def _run(self) -> None:
        try:
            connection = _connect(self._path)
        except (OSError, sqlite3.Error) as error:
            _log.warning("journal.unusable path=%s: %s", self._path, error)
            connection = sqlite3.connect(":memory:")
            connection.execute(_TABLE)
        with contextlib.closing(connection):
            while (write := self._work.get()) is not None:
                try:
                    write(connection)
                except sqlite3.Error as error:
                    _log.warning("journal.failed path=%s: %s", self._path, error)


def launches(path: Path | None = None) -> list[Launch]:
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
    except (OSError, sqlite3.Error) as error:
        _log.warning("journal.unusable path=%s: %s", path, error)
        return []
    return [_launch(dict(row)) for row in rows]


def _connect(path: Path) -> sqlite3.Connection:
    """Open the journal; one that is damaged or of another version is put aside."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        return _open(path)
    except sqlite3.DatabaseError:
        aside = path.with_suffix(f".{int(time.time())}.damaged")
        path.replace(aside)
        _log.warning("journal.damaged path=%s kept=%s", path, aside)
        return _open(path)


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_WRITING)
    try:
        path.chmod(0o600)
        connection.execute("PRAGMA journal_mode=WAL")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version not in (0, _VERSION):
            raise sqlite3.DatabaseError(f"version {version}")
        with connection:
            connection.execute(_TABLE)
            connection.execute(f"PRAGMA user_version={_VERSION}")
            connection.execute("DELETE FROM launches WHERE asked_at < ?", (time.time() - _KEPT,))
    except BaseException:
        connection.close()
        raise
    return connection


def _launch(row: Mapping[str, Any]) -> Launch:
    ids = None if row["ids"] is None else tuple(json.loads(row["ids"]))
    read = {
        "spot": bool(row["spot"]),
        "nodes": tuple(json.loads(row["nodes"])),
        "infra": json.loads(row["infra"]),
        "ids": ids,
        "ended": tuple(json.loads(row["ended"])),
    }
    return Launch(**{**row, **read})


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
