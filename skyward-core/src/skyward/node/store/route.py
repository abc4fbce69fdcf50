"""
The way from a node to the store on another one, through the client: two Unix sockets whose connections are joined.

Tasks connect to one of them, as they would to the store.
The client connects to the other over its SSH connection, as it does to the agent, and holds connections ready that
lead to the store already.
So nothing is needed of the SSH server that the link does not need as well.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
from collections import deque
from collections.abc import Callable

from skyward.link.joining import READ, join, reset, reset_cancelled

__all__ = ["JOINED_WITHIN", "StoreRoute"]

JOINED_WITHIN = 30.0
"""Seconds for which a task's connection waits for one of the client's."""

_LOOKS_EVERY = 5.0
"""Seconds between two looks whether the client is still there."""

_MOST_READY = 64
"""Connections of the client's that are held ready; more are closed."""

_Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class StoreRoute:
    """
    Join connections of tasks with those that the client holds ready.

    Args:
        loop: The agent's loop.
        directory: The node's directory, this user's alone.
        number: Which server of the pool it leads to.
        away: Returns whether nothing was received from the client for too long.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, directory: str, number: int, away: Callable[[], bool]) -> None:
        self.number = number
        self.path = os.path.join(directory, f"store-{number}.in")
        self.door = os.path.join(directory, f"store-{number}.out")
        self._loop = loop
        self._away = away
        self._ready: deque[_Connection] = deque()
        self._waiting: deque[asyncio.Future[_Connection]] = deque()
        self._joined: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.AbstractServer] = []
        self._looking: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Listen at both sockets."""
        self._servers = [await _listening(self.path, self._of_task), await _listening(self.door, self._of_client)]
        self._looking = self._loop.create_task(self._look())

    def reset(self) -> None:
        """Reset every connection: those of a client that was away lead nowhere."""
        for task in self._joined:
            task.cancel()
        while self._ready:
            reset(self._ready.popleft()[1])

    def close(self) -> None:
        """Stop listening, and break every connection off."""
        if self._looking is not None:
            self._looking.cancel()
        for server in self._servers:
            server.close()
        for path in (self.path, self.door):
            with contextlib.suppress(OSError):
                os.unlink(path)
        self.reset()

    def _of_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take a connection that leads to the store."""
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result((reader, writer))
                return
        self._drop_ended()
        if len(self._ready) >= _MOST_READY:
            reset(writer)
        else:
            self._ready.append((reader, writer))

    def _of_task(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = self._loop.create_task(self._join((reader, writer)))
        self._joined.add(task)
        task.add_done_callback(self._joined.discard)
        task.add_done_callback(lambda task: reset_cancelled(task, (reader, writer)))

    async def _join(self, task: _Connection) -> None:
        self._drop_ended()
        try:
            if self._ready:
                store = self._ready.popleft()
            else:
                waiting: asyncio.Future[_Connection] = self._loop.create_future()
                self._waiting.append(waiting)
                store = await asyncio.wait_for(waiting, JOINED_WITHIN)
        except (TimeoutError, asyncio.CancelledError):
            reset(task[1])
            raise
        await join(task, store)

    def _drop_ended(self) -> None:
        """Drop what the client held ready and has closed since."""
        for connection in [each for each in self._ready if each[0].at_eof() or each[1].is_closing()]:
            self._ready.remove(connection)
            reset(connection[1])

    async def _look(self) -> None:
        """Reset everything when nothing was received from the client for a while: its connections hang."""
        while True:
            await asyncio.sleep(_LOOKS_EVERY)
            if (self._joined or self._ready) and self._away():
                self.reset()


async def _listening(
    path: str, accepted: Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]
) -> asyncio.AbstractServer:
    """Listen at a Unix socket that this user alone can connect to."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    server = await asyncio.start_unix_server(accepted, path, limit=READ)
    os.chmod(path, stat.S_IRUSR | stat.S_IWUSR)
    return server
