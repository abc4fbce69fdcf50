"""
Commands to the store: sent once, sent again when the connection broke, refused by errors of ours.

A command that only reads is sent again as it is.
One that writes goes with the session of its thread and its number there, by which the store knows a repetition
(`replay.lua`): it is carried out once, also where the answer was lost.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from skyward.collections.client_library import load_library
from skyward.collections.lua_script import LuaScript, lua_script
from skyward.collections.store_address import StoreAddress
from skyward.collections.store_connections import StoreConnections
from skyward.collections.thread_line import Word
from skyward.errors import CollectionError, StoreFullError, StoreLostError, UsageError

if TYPE_CHECKING:
    from valkey import ConnectionPool
    from valkey.connection import AbstractConnection

__all__ = ["LONGEST_WAIT_S", "StoreClient"]

LONGEST_WAIT_S = 1.0
"""For how long one command may wait in the store; then leases are looked at."""

FIRST_PAUSE_S = 0.02
LONGEST_PAUSE_S = 0.5


class _ScriptMissing(Exception):
    """The store does not know a script yet."""


class StoreClient:
    """
    Send commands to a store, from any thread, each of which has a connection of its own.

    Args:
        address: Returns where the store is; called whenever a thread takes a connection.
        patience: For how long a connection that broke is made again, in seconds.
        connections: Those of the process, which outlive this.
    """

    def __init__(self, address: Callable[[], StoreAddress], *, patience: float, connections: StoreConnections) -> None:
        self._address = address
        self._patience = patience
        self._connections = connections
        self._line = connections.line
        self._first: StoreAddress | None = None
        self._pool: ConnectionPool | None = None
        self._pid = 0
        self._closed = False
        # What the library raises; known once it is loaded.
        self._failures: tuple[type[Exception], ...] = ()

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
        return self._send(command, None)

    def call_once(self, *command: Word) -> Any:
        """Send a command that may not be carried out twice; None where the connection broke, and it may have been."""
        try:
            return self._exchange(command)
        except self._failures as error:
            self._broke_once(error)
            return None

    def run_and_wait(self, script: str, arguments: Sequence[Word], *command: Word) -> tuple[Any, Any] | None:
        """
        Run a script, and send a command that waits behind it, in one round trip.

        Returns:
            Both replies; None where the connection broke, or the store does not know the script, and either of them
            may have been carried out.
        """
        known = lua_script(script)
        try:
            connection = self._connected()
            try:
                pack: Callable[..., list[bytes]] = connection.pack_command
                both = b"".join([*pack("EVALSHA", known.digest, 0, *arguments), *pack(*command)])
                connection.send_packed_command([both])  # type: ignore[no-untyped-call]
                replies = [self._reply(connection) for _ in range(2)]
            except self._failures:
                raise
            except BaseException:
                self._interrupted(connection)
                raise
        except self._failures as error:
            self._broke_once(error)
            return None
        for reply in replies:
            if isinstance(reply, Exception):
                if isinstance(_refusal(reply), _ScriptMissing):
                    self.call("SCRIPT LOAD", known.text)
                    return None
                self._broke_once(reply)
        return replies[0], replies[1]

    def run(self, script: str, keys: Sequence[Word], arguments: Sequence[Word] = ()) -> Any:
        """Run a script that may run twice."""
        known = lua_script(script)
        return self._run(known, ("EVALSHA", known.digest, len(keys), *keys, *arguments), None)

    def run_once(self, script: str, keys: Sequence[Word], arguments: Sequence[Word] = ()) -> Any:
        """Run a script that takes effect once, whatever becomes of the connection."""
        known = lua_script(script)
        session, number = self._line.next_write()
        command = ("EVALSHA", known.digest, len(keys) + 1, session, *keys, number, *arguments)
        return self._run(known, command, 4 + len(keys))

    def write(self, *command: Word) -> Any:
        """Send a command that takes effect once."""
        return self.run_once("write", (), command)

    def wait(self, tokens: str, seconds: float) -> bytes | None:
        """Wait for a token in a list and return it; None after a second or what is left of the time."""
        found = self.call("BLPOP", tokens, max(0.01, min(LONGEST_WAIT_S, seconds)))
        return found[1] if found else None

    def claim(self, name: str, kind: str) -> str:
        """Make a name one kind's, unless it is another one's already, and return which it is; asked once a process."""
        generation = self.address.generation
        known = self._connections.kind(generation, name)
        if known is None:
            known = self.run("claim", (f"sky:kind:{name}",), (kind,)).decode()
            self._connections.learn(generation, name, known)
        return known

    def close(self) -> None:
        """Refuse further commands."""
        self._closed = True
        self._pool = None

    def _run(self, script: LuaScript, command: tuple[Word, ...], number: int | None) -> Any:
        """Send a command that runs a script, which the store may not have yet."""
        try:
            return self._send(command, number)
        except _ScriptMissing:
            command = _repeated(command, number)
        # A store that restarts between the two has forgotten it again.
        for _ in range(3):
            self.call("SCRIPT LOAD", script.text)
            try:
                return self.call(*command)
            except _ScriptMissing:
                continue
        raise CollectionError("The store forgets its scripts at once.", hint="Report it with the store's log.")

    def _send(self, command: tuple[Word, ...], number: int | None) -> Any:
        """
        Send a command.

        Args:
            command: What is sent.
            number: Where in it the number of a write is, which a repetition has as a negative one.
        """
        try:
            return self._exchange(command)
        except self._failures as error:
            return self._again(_repeated(command, number), error)

    def _exchange(self, command: tuple[Word, ...]) -> Any:
        """Send a command on the thread's connection, and read the reply."""
        connection = self._connected()
        try:
            connection.send_command(*command)  # type: ignore[no-untyped-call]  # as the library has it
            return connection.read_response()  # type: ignore[no-untyped-call]
        except self._failures:
            raise
        except BaseException:
            self._interrupted(connection)
            raise

    def _reply(self, connection: AbstractConnection) -> Any:
        """Read a reply; a refusal is returned, because another reply may be behind it."""
        from valkey import ResponseError

        try:
            return connection.read_response()  # type: ignore[no-untyped-call]
        except ResponseError as error:
            return error

    def _interrupted(self, connection: AbstractConnection) -> None:
        """Leave no reply of a task that was interrupted behind: it would be read as the next one's."""
        connection.disconnect()  # type: ignore[no-untyped-call]
        self._line.leave()

    def _broke_once(self, error: Exception) -> None:
        """Raise what a store refused; where there was no reply, forget the connections."""
        if (refused := _refusal(error)) is not None:
            raise refused from error
        # Also one that could not be connected: the store may be at another place by now.
        self._forget()

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

    def _connected(self) -> AbstractConnection:
        """Return the thread's connection to the store as it is now."""
        line = self._line
        if self._pool is None or line.pool is not self._pool or self._pid != os.getpid():
            self._connect()
        assert line.connection is not None
        return line.connection

    def _connect(self) -> None:
        """Take a connection for this thread, unless an earlier task of this process has left it one."""
        if self._closed:
            raise CollectionError(
                "A collection is used whose task has ended, or whose pool was left.",
                hint="Open it by its name in the task that uses it.",
            )
        load_library()
        import valkey

        self._failures = (valkey.ValkeyError, OSError)
        self._pid = os.getpid()
        self._pool = pool = self._connections.pool(self._ask())
        if self._line.pool is not pool:
            self._line.connect(pool)

    def _forget(self) -> None:
        """Drop the connections of which this thread's broke, or could not be made."""
        tried = self._line.tried
        if self._pool is tried:
            self._pool = None
        self._connections.forget(tried)

    def _again(self, command: tuple[Word, ...], error: Exception) -> Any:
        """Send a command again until it is answered, refused, or patience is at its end."""
        deadline = time.monotonic() + self._patience
        pause = 0.0
        while True:
            refused = _refusal(error)
            if refused is not None:
                raise refused from error
            # Also one that could not be connected: the store may be at another place by now.
            self._forget()
            if time.monotonic() + pause >= deadline:
                raise StoreLostError(
                    f"The collections' store cannot be reached at {self.address.path}: {_reason(error)}.",
                    hint="Its machine may be lost, or the link to it cut: see the pool's log.",
                ) from error
            time.sleep(pause)
            pause = min(LONGEST_PAUSE_S, max(FIRST_PAUSE_S, 2 * pause))
            try:
                return self._exchange(command)
            except self._failures as next_error:
                error = next_error


def _repeated(command: tuple[Word, ...], number: int | None) -> tuple[Word, ...]:
    """Return a command as it is sent again."""
    return command if number is None else (*command[:number], f"-{command[number]!s}", *command[number + 1 :])


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
