"""
The connections of one process to the store: each thread keeps one, which its next task finds.

A worker has one of these for all of its tasks, so that only the first operation of a thread connects.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from skyward.collections.client_library import load_library
from skyward.collections.store_address import StoreAddress
from skyward.collections.thread_line import CommandPacker, ThreadLine

if TYPE_CHECKING:
    from valkey import ConnectionPool

__all__ = ["StoreConnections"]

REPLY_TIMEOUT_S = 30.0
"""After which a connection is dropped that carries nothing."""


class StoreConnections:
    """
    Keep the connections to the store as it is now, and what its collections are known to be.

    All of it may be used by several threads, and by the clients of several tasks.
    """

    def __init__(self) -> None:
        self.line = ThreadLine()
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._pool: ConnectionPool | None = None
        self._store: tuple[str, str, str] | None = None
        self._kinds: dict[tuple[str, str], str] = {}

    def pool(self, address: StoreAddress) -> ConnectionPool:
        """Return the connections to a store; those to another one are used up by the threads that have them."""
        load_library()
        if self._pid != (pid := os.getpid()):
            # The lock of a parent may be held by one of its threads, and its connections are its own.
            self._lock, self._pool, self._pid = threading.Lock(), None, pid
        store = address.path, address.password, address.generation
        with self._lock:
            if self._pool is None or self._store != store:
                self._store, self._pool = store, _connections(address)
            return self._pool

    def forget(self, pool: ConnectionPool | None) -> None:
        """Drop connections that broke; those of other threads find out by themselves."""
        with self._lock:
            if self._pool is pool:
                self._pool = None
        if pool is not None:
            pool.disconnect(inuse_connections=False)

    def kind(self, generation: str, name: str) -> str | None:
        """Return what a name stands for in a store, if it is known here."""
        return self._kinds.get((generation, name))

    def learn(self, generation: str, name: str, kind: str) -> None:
        """Record what a name stands for, as long as that store lives."""
        if any(known != generation for known, _ in list(self._kinds)[:1]):
            self._kinds.clear()
        self._kinds[generation, name] = kind

    def close(self) -> None:
        """Close the connections, also those that threads have."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.disconnect()


def _connections(address: StoreAddress) -> ConnectionPool:
    import valkey
    from valkey.backoff import NoBackoff
    from valkey.retry import Retry

    return valkey.ConnectionPool(
        connection_class=valkey.UnixDomainSocketConnection,
        path=address.path,
        password=address.password,
        socket_timeout=REPLY_TIMEOUT_S,
        # A command is sent again by ours, which knows whether it may be.
        retry=Retry(NoBackoff(), 0),
        command_packer=CommandPacker(),
        lib_name=None,
        lib_version=None,
    )
