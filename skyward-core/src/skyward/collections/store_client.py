"""
Commands to the store: sent once, sent again when the connection broke, refused by errors of ours.

A command that only reads is sent again as it is.
One that writes goes with the session of its thread and its number there, by which the store knows a repetition
(`replay.lua`): it is carried out once, also where the answer was lost.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from skyward.collections.client_library import load_library
from skyward.collections.lua_script import LuaScript, lua_script
from skyward.collections.store_address import StoreAddress
from skyward.errors import CollectionError, StoreFullError, StoreLostError, UsageError

if TYPE_CHECKING:
    from valkey import Valkey

__all__ = ["LONGEST_WAIT_S", "StoreClient"]

LONGEST_WAIT_S = 1.0
"""For how long one command may wait in the store; then leases are looked at."""

REPLY_TIMEOUT_S = 30.0
"""After which a connection is dropped that carries nothing."""

FIRST_PAUSE_S = 0.02
LONGEST_PAUSE_S = 0.5

Word = bytes | str | int | float
"""What a command consists of."""


class _ScriptMissing(Exception):
    """The store does not know a script yet."""


class _Session(threading.local):
    """Numbers the writes of a thread."""

    def __init__(self) -> None:
        self.pid = 0
        self.name = ""
        self.writes = 0

    def next(self) -> tuple[str, int]:
        """Return the session and the number of a write."""
        # A fork has a copy of its parent's.
        if self.pid != (pid := os.getpid()):
            self.pid, self.name, self.writes = pid, f"sky:session:{uuid.uuid4().hex}", 0
        self.writes += 1
        return self.name, self.writes


class StoreClient:
    """
    Send commands to a store, from any thread, each on a connection of its own while it is under way.

    Args:
        address: Returns where the store is; called whenever a connection is made.
        patience: For how long a connection that broke is made again, in seconds.
    """

    def __init__(self, address: Callable[[], StoreAddress], *, patience: float) -> None:
        self._address = address
        self._patience = patience
        self._first: StoreAddress | None = None
        self._store: Valkey | None = None
        self._pid = 0
        # What the library raises; known once it is loaded.
        self._failures: tuple[type[Exception], ...] = ()
        self._lock = threading.Lock()
        self._session = _Session()

    @property
    def address(self) -> StoreAddress:
        """Return where the store was first."""
        return self._first or self._ask()

    def call(self, *command: Word) -> Any:
        """
        Send a command that may be carried out twice.

        Raises:
            StoreLostError: If the store cannot be reached, or is a new one.
            StoreFullError: If it is full.
        """
        store = self._store
        if store is None or self._pid != os.getpid():
            store = self._connect()
        try:
            return store.execute_command(*command)
        except self._failures as error:
            return self._again(command, error, store)

    def run(self, script: str, keys: Sequence[Word], arguments: Sequence[Word] = ()) -> Any:
        """Run a script that may run twice."""
        known = lua_script(script)
        try:
            return self.call("EVALSHA", known.digest, len(keys), *keys, *arguments)
        except _ScriptMissing:
            return self._load_and_run(known, keys, arguments)

    def run_once(self, script: str, keys: Sequence[Word], arguments: Sequence[Word] = ()) -> Any:
        """Run a script that takes effect once, whatever becomes of the connection."""
        session, number = self._session.next()
        return self.run(script, (session, *keys), (number, *arguments))

    def write(self, *command: Word) -> Any:
        """Send a command that takes effect once."""
        return self.run_once("write", (), command)

    def wait(self, tokens: str, seconds: float) -> bytes | None:
        """Wait for a token in a list and return it; None after a second or what is left of the time."""
        found = self.call("BLPOP", tokens, max(0.01, min(LONGEST_WAIT_S, seconds)))
        return found[1] if found else None

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            store, self._store = self._store, None
        if store is not None:
            store.connection_pool.disconnect()

    def _load_and_run(self, script: LuaScript, keys: Sequence[Word], arguments: Sequence[Word]) -> Any:
        # A store that restarts between the two has forgotten it again.
        for _ in range(3):
            self.call("SCRIPT LOAD", script.text)
            try:
                return self.call("EVALSHA", script.digest, len(keys), *keys, *arguments)
            except _ScriptMissing:
                continue
        raise CollectionError("The store forgets its scripts at once.", hint="Report it with the store's log.")

    def _ask(self) -> StoreAddress:
        """Ask where the store is, and refuse another one than the first."""
        address = self._address()
        if self._first is None:
            self._first = address
        elif address.generation != self._first.generation:
            raise StoreLostError(
                "The collections' store was lost with its machine, and a new one was started, which is empty.",
                hint="Begin again with what the collections have to hold; a pool's next task uses the new store.",
            )
        return address

    def _connect(self) -> Valkey:
        """Return the connections to the store as it is now."""
        load_library()
        import valkey
        from valkey.backoff import NoBackoff
        from valkey.retry import Retry

        if self._pid != os.getpid():
            # The lock of a parent may be held by one of its threads.
            self._lock = threading.Lock()
            self._store = None
            self._pid = os.getpid()
        with self._lock:
            if self._store is not None:
                return self._store
            address = self._ask()
            self._failures = (valkey.ValkeyError, OSError)

            def log_in(connection: Any) -> None:
                try:
                    now = self._ask()
                    if (now.path, now.password) != (address.path, address.password):
                        raise valkey.ConnectionError("the store has moved")
                    connection.on_connect()
                except BaseException:
                    connection.disconnect()
                    raise

            pool = valkey.ConnectionPool(
                connection_class=valkey.UnixDomainSocketConnection,
                path=address.path,
                password=address.password,
                socket_timeout=REPLY_TIMEOUT_S,
                # A command is sent again by ours, which knows whether it may be.
                retry=Retry(NoBackoff(), 0),
                valkey_connect_func=log_in,
                lib_name=None,
                lib_version=None,
            )
            self._store = valkey.Valkey(connection_pool=pool)
            return self._store

    def _forget(self, store: Valkey) -> None:
        """Drop connections that broke; those of other threads find out by themselves."""
        with self._lock:
            if self._store is store:
                self._store = None
        store.connection_pool.disconnect(inuse_connections=False)

    def _again(self, command: tuple[Word, ...], error: Exception, store: Valkey) -> Any:
        """Send a command again until it is answered, refused, or patience is at its end."""
        deadline = time.monotonic() + self._patience
        pause = 0.0
        while True:
            refused = _refusal(error)
            if refused is not None:
                raise refused from error
            self._forget(store)
            if time.monotonic() + pause >= deadline:
                raise StoreLostError(
                    f"The collections' store cannot be reached at {self.address.path}: {_reason(error)}.",
                    hint="Its machine may be lost, or the link to it cut: see the pool's log.",
                ) from error
            time.sleep(pause)
            pause = min(LONGEST_PAUSE_S, max(FIRST_PAUSE_S, 2 * pause))
            store = self._connect()
            try:
                return store.execute_command(*command)
            except self._failures as next_error:
                error = next_error


def _refusal(error: Exception) -> Exception | None:
    """Return what a reply of the store means, and None where there was no reply."""
    from valkey import exceptions

    if not isinstance(error, exceptions.ResponseError):
        return UsageError(f"The store takes no such word: {error}") if isinstance(error, exceptions.DataError) else None
    text = str(error)
    if isinstance(error, exceptions.NoScriptError):
        return _ScriptMissing()
    if isinstance(error, exceptions.OutOfMemoryError) or "OOM" in text:
        return StoreFullError(
            "The collections' store is full: it has as much in memory as it may.",
            hint="Remove what is not needed, or send large values by sky.put and store what it returns.",
        )
    if "MISCONF" in text or "No space left" in text:
        return StoreFullError(
            f"The collections' store cannot write to its disk: {text}.", hint="Free space on the pool's head node."
        )
    if "overflow" in text or "not an integer" in text:
        return UsageError("A counter is a whole number between -2**63 and 2**63 - 1.")
    return CollectionError(f"The collections' store refused a command: {text}.")


def _reason(error: Exception) -> str:
    return str(error).rstrip(".") or type(error).__name__
