"""One link to an agent over SSH connections that come and go."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from skyward.errors import SkywardError, TransportError, UnreachableError
from skyward.link.wire import Wire
from skyward.node.agent.relay import AGENT_CLOSED
from skyward.ssh.caller import PACKET, WINDOW, Caller

if TYPE_CHECKING:
    from asyncssh import SSHClientConnection

_log = logging.getLogger(__name__)

_ROOM = 256 << 10
_OPEN_WITHIN = 20.0
_FIRST_WAIT, _LONGEST_WAIT = 0.05, 5.0


class AgentLine:
    """
    One SSH channel under a link.

    Args:
        wire: The link.
    """

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._channel: Any = None
        self._gathered: list[bytes] | None = None
        self._gathered_size = 0
        self.gone = False
        self.agent_closed = False

    # What asyncssh calls.

    def connection_made(self, chan: Any) -> None:
        """Take the channel."""
        self._channel = chan
        chan.set_write_buffer_limits(high=_ROOM, low=_ROOM // 4)

    def session_started(self) -> None:
        """Do nothing: the link opens the conversation."""

    def data_received(self, data: bytes, datatype: int | None) -> None:
        """Pass on what arrived; what a relay writes to its standard error is none of it."""
        if datatype is None:
            self._gather()
            self._wire.receive(self, data)

    def eof_received(self) -> bool:
        """Return None, so that the channel closes."""
        return False

    def pause_writing(self) -> None:
        """Do nothing: `room` says so."""

    def resume_writing(self) -> None:
        """Write what waited."""
        self._wire.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """Report the loss to the link."""
        self.gone = True
        self._wire.lost(self, exc)

    def exit_status_received(self, status: int) -> None:
        """Record why a relay ends; its channel ends by itself."""
        self.agent_closed = status == AGENT_CLOSED

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:  # noqa: FBT001  # asyncssh's
        """Do nothing: the end of a relay is the end of its channel."""

    # What the link calls.

    def write(self, data: bytes) -> None:
        """Send bytes."""
        if self._gathered is not None:
            self._gathered.append(data)
            self._gathered_size += len(data)
        else:
            self._write(data)

    def room(self) -> int:
        """Count the bytes that can be taken now."""
        if self._channel is None or self._channel.is_closing():
            return 0
        return _ROOM - int(self._channel.get_write_buffer_size()) - self._gathered_size

    def close(self) -> None:
        """Close it, after what was written."""
        self._write_gathered()
        if self._channel is not None:
            self._channel.close()

    def _gather(self) -> None:
        """Keep what is written until all packets that have arrived are handled: each write is a packet of its own."""
        if self._gathered is None:
            self._gathered = []
            asyncio.get_running_loop().call_soon(self._write_gathered)

    def _write_gathered(self) -> None:
        gathered, self._gathered, self._gathered_size = self._gathered, None, 0
        if gathered:
            self._write(b"".join(gathered))
            # There may be more than there was room for.
            self._wire.flush()

    def _write(self, data: bytes) -> None:
        if self._channel is not None and not self._channel.is_closing():
            with contextlib.suppress(OSError):
                self._channel.write(data)


class SSHLink:
    """
    Keep a link to an agent alive: dial again whenever it breaks, until that has failed for too long.

    Args:
        wire: The link.
        connect: Returns the machine's connection, a new one if the last was lost.
        socket: The agent's socket.
        relay: The command that joins its standard input and output with that socket, where none is forwarded.
        ended: Asked when the socket does not answer: says why the agent is gone, or nothing if it is there.
        patience: Seconds of failure after which the link is given up.
        interval: Seconds between two heartbeats.
        where: What messages call the node.
    """

    def __init__(
        self,
        wire: Wire,
        *,
        connect: Callable[[float], Awaitable[SSHClientConnection]],
        socket: str,
        relay: str,
        ended: Callable[[SSHClientConnection], Awaitable[str]],
        patience: float,
        interval: float,
        where: str,
    ) -> None:
        self._wire = wire
        self._connect = connect
        self._socket = socket
        self._relay = relay
        self._ended = ended
        self._patience = patience
        self._interval = interval
        self._where = where
        self._relayed = False
        self._line: AgentLine | None = None
        self._wait = _FIRST_WAIT
        self._attached_at = 0.0
        self._again: asyncio.Task[None] | None = None
        self._beating: asyncio.Task[None] | None = None

    async def start(self, caller: Caller | None = None) -> None:
        """
        Open the first channel.

        Args:
            caller: Where the agent may have called already.

        Raises:
            SkywardError: If that fails.
        """
        line = AgentLine(self._wire)
        if caller is not None and await caller.join(line) and not line.gone:
            self._line = line
            self._attached_at = asyncio.get_running_loop().time()
            self._wire.attach(line, first=True)
        else:
            await self._attach(await self._connect(_OPEN_WITHIN), first=True)
        self._beating = asyncio.create_task(self._beat())

    def lost(self, error: Exception | None) -> None:
        """Begin to dial again; called by the link."""
        if self._again is None or self._again.done():
            _log.info("link.lost %s reason=%s", self._where, error or "closed by the other end")
            self._again = asyncio.create_task(self._redial())

    def stop(self) -> None:
        """Do nothing: the link is over."""
        for task in (self._again, self._beating):
            if task is not None and task is not asyncio.current_task():
                task.cancel()

    async def _attach(self, connection: SSHClientConnection, *, first: bool = False) -> None:
        """Continue over a new channel of a connection."""
        before, line = self._line, AgentLine(self._wire)
        self._line = line
        try:
            async with asyncio.timeout(_OPEN_WITHIN):
                # A relay can be started whether there is an agent or not.
                if before is not None and before.agent_closed and (gone := await self._ended(connection)):
                    raise TransportError(gone)
                await self._open(connection, line)
        except TimeoutError:
            raise UnreachableError(f"No channel to the agent within {_OPEN_WITHIN:g} s.") from None
        except OSError as error:
            raise UnreachableError(f"No channel to the agent: {error}.") from error
        if line.gone:
            raise UnreachableError("The channel to the agent was closed at once.")
        self._attached_at = asyncio.get_running_loop().time()
        self._wire.attach(line, first=first)

    async def _open(self, connection: SSHClientConnection, line: AgentLine) -> None:
        import asyncssh

        options: Any = {"encoding": None, "window": WINDOW, "max_pktsize": PACKET}
        # asyncssh asks for its own base classes, and calls what `Line` has.
        session: Any = lambda: line  # noqa: E731
        try:
            if not self._relayed:
                await connection.create_unix_connection(session, self._socket, **options)
                return
        except asyncssh.ChannelOpenError as error:
            gone = await self._ended(connection)
            if gone:
                raise TransportError(gone) from error
            # The agent is there, so it is the server that forwards no sockets.
            _log.info("link.relayed %s reason=%s", self._where, error)
            self._relayed = True
        except asyncssh.Error as error:
            raise UnreachableError(f"No channel to the agent: {error}.") from error
        try:
            await connection.create_session(session, self._relay, **options)
        except asyncssh.Error as error:
            raise UnreachableError(f"No channel to the agent: {error}.") from error

    async def _redial(self) -> None:
        loop = asyncio.get_running_loop()
        if self._wire.received_at > self._attached_at:
            self._wait = _FIRST_WAIT
        else:
            await self._pause()
        while not self._wire.closed:
            # Counted from the last word of the other end: channels that open and close at once are none.
            left = self._patience - (loop.time() - self._wire.received_at)
            try:
                await self._attach(await self._connect(max(0.0, left)))
            except UnreachableError as error:
                if left <= 0:
                    self._wire.close(
                        TransportError(f"{self._where} could not be reached for {self._patience:g} s: {error}")
                    )
                    return
                await self._pause()
            except SkywardError as error:
                self._wire.close(error)
                return
            else:
                _log.info("link.restored %s after=%.1fs", self._where, loop.time() - self._wire.received_at)
                return

    async def _pause(self) -> None:
        await asyncio.sleep(self._wait * random.uniform(0.5, 1.0))
        self._wait = min(_LONGEST_WAIT, 2 * self._wait)

    async def _beat(self) -> None:
        """Send heartbeats, which renew the lease that the node's watchdog checks."""
        while not self._wire.closed:
            await asyncio.sleep(self._interval)
            self._wire.ping()
