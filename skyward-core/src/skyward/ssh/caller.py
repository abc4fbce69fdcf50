"""Where a new agent calls its client, so that it need not be knocked at once it is known to be there."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asyncssh import SSHClientConnection

__all__ = ["PACKET", "WINDOW", "Caller"]

_log = logging.getLogger(__name__)

WINDOW = 16 << 20
"""Bytes that the other end may send before we acknowledge them to SSH (measured: more gains nothing)."""

PACKET = 32 << 10
"""Bytes in one SSH packet."""

WITHIN = 0.3
"""Seconds for which a call is waited for once the agent is said to be there: it calls before that is said."""


class Caller:
    """
    Have an SSH server listen for one connection on a Unix socket, and hand it over.

    A server that does not do that costs nothing but the call: its agent is knocked at instead.

    Args:
        connection: The machine.
        path: The socket; it is made there, in a directory that only the user can enter.
    """

    def __init__(self, connection: SSHClientConnection, path: str) -> None:
        self._connection = connection
        self._path = path
        loop = asyncio.get_running_loop()
        self._session: asyncio.Future[Any] = loop.create_future()
        self._joined: asyncio.Future[None] = loop.create_future()
        self._called = False
        self._listening = loop.create_task(self._listen())

    async def join(self, session: Any) -> bool:
        """
        Return a session to the agent's connection, if it has called.

        Args:
            session: What asyncssh calls of a session; `connection_made` is among it.

        Returns:
            Whether the session has the connection now; it never gets it otherwise.
        """
        made = session.connection_made

        def connection_made(channel: Any) -> None:
            made(channel)
            self._joined.set_result(None)

        try:
            if self._listening.done() and not self._listening.result():
                return False
            session.connection_made = connection_made
            self._session.set_result(session)
            await asyncio.wait([self._joined], timeout=WITHIN)
            return self._joined.done()
        finally:
            await self.close()

    async def close(self) -> None:
        """Stop listening."""
        self._called = True
        if not self._session.done():
            self._session.cancel()
        self._listening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            if listener := await self._listening:
                listener.close()

    async def _listen(self) -> Any:
        import asyncssh

        try:
            options: Any = {"encoding": None, "window": WINDOW, "max_pktsize": PACKET}
            return await self._connection.create_unix_server(self._admit, self._path, **options)
        except (asyncssh.Error, asyncssh.ChannelListenError, OSError) as error:
            _log.info("agent.cannot_call path=%s reason=%s", self._path, error)
            return None

    async def _admit(self) -> Any:
        """Return the session to the first that calls, as soon as there is one."""
        import asyncssh

        if not self._called:
            self._called = True
            with contextlib.suppress(asyncio.CancelledError):
                return await asyncio.shield(self._session)
        raise asyncssh.ChannelOpenError(asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED, "the client waits for one agent")
