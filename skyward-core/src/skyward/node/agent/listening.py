"""The door of a node that clients reach from elsewhere: a Unix socket, and one client after the other's own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import stat
from collections.abc import Callable, Mapping
from typing import Any

from skyward.errors import ProtocolError
from skyward.link.cells import CellParser, CellType, cell
from skyward.link.channel import Batch
from skyward.link.frames import Frame, decode_json
from skyward.link.hello import why_refused
from skyward.link.wire import Wire
from skyward.plan.bootstrap.node_scripts import SILENT, call_path

ROOM = 256 << 10
"""Bytes that may wait in a connection's buffer."""

_GREETING_WITHIN = 30.0


class AgentListener:
    """
    Listen on a Unix socket for the one client that knows the session's name.

    Args:
        loop: The agent's loop.
        batch: Where the agent gathers writes.
        session: The name.
        lease: A file that is touched while the client is there.

    `leased` says that another client may take the node over once its own is dead.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, batch: Batch, session: str, lease: str) -> None:
        self._loop = loop
        self._batch = batch
        self._session = session
        self._lease = lease
        self._beats = 0
        self._beaten_at = 0.0
        self._server: asyncio.AbstractServer | None = None
        self.leased = False
        self.wire: Wire | None = None
        self._here = os.path.join(os.path.dirname(lease), "client")
        self.on_admitted: Callable[[], None] = lambda: None
        self.on_succeeded: Callable[[], None] = lambda: None
        self.on_away: Callable[[], None] = lambda: None

    async def open(
        self,
        path: str,
        on_frame: Callable[[Frame, tuple[int, ...]], None],
        on_closed: Callable[[Exception | None], None],
    ) -> Wire:
        """
        Listen from now on; the link is there before any client is.

        Where the client waits for the agent itself, beside the node's directory, it is called first.
        """
        self.wire = Wire(
            self._loop,
            self._batch,
            self._session,
            on_frame=on_frame,
            on_closed=on_closed,
            on_lost=self._lost,
            on_received=self._beat,
        )
        await self._call(call_path(os.path.dirname(path)))
        # The directory is the owner's alone; a name that is in place only once everything is ready shows that it is.
        hidden = f"{path}.new"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(hidden)
        self._server = await self._loop.create_unix_server(lambda: AgentConnection(self), hidden)
        os.chmod(hidden, stat.S_IRUSR | stat.S_IWUSR)
        os.rename(hidden, path)
        return self.wire

    async def _call(self, path: str) -> None:
        """Connect to a client that waits; it speaks first, as those do that come to the door."""
        with contextlib.suppress(OSError):
            await self._loop.create_unix_connection(lambda: AgentConnection(self), path)
        with contextlib.suppress(OSError):
            os.unlink(path)

    def admit(self, guest: AgentConnection, data: bytes) -> bool:
        """Look at what a connection begins with; True once it is the client's."""
        cells = CellParser().feed(data)
        if not cells:
            return False
        kind, body = cells[0].kind, bytes(cells[0].body)
        if kind is not CellType.HELLO:
            raise ProtocolError("A connection began with no HELLO.")
        hello = decode_json(body)
        succeeds = self._succeeds(hello)
        refused = why_refused(hello, hello["session"] if succeeds else self._session)
        if refused or self.wire is None:
            raise ProtocolError(refused)
        if succeeds:
            self._session = hello["session"]
            self.on_succeeded()
            self.wire.renew(self._session)
        with contextlib.suppress(OSError):
            os.close(os.open(self._here, os.O_WRONLY | os.O_CREAT, 0o600))
        # What went over the connection before may hang until it is noticed.
        self.on_admitted()
        self.wire.attach(guest)
        self.wire.receive(guest, data)
        return True

    def _succeeds(self, hello: Mapping[str, Any]) -> bool:
        """Return whether a client takes the node over: of several that know the last one's session, the first."""
        session = hello.get("session")
        # One that was not left belongs to its client for as long as that is heard.
        free = self.wire is not None and (self.wire.parked or (self.leased and self.wire.away(SILENT)))
        before = hello.get("succeeds")
        return (
            free and isinstance(session, str) and bool(session) and isinstance(before, list) and self._session in before
        )

    def _lost(self, error: Exception | None) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._here)
        self.on_away()

    def _beat(self) -> None:
        """Write a heartbeat of the client for the watchdog, at most once a second."""
        now = self._loop.time()
        if now - self._beaten_at < 1.0:
            return
        self._beaten_at = now
        self._beats += 1
        # In place and always as long, because a disk that is full has no room for what is cut off first.
        with contextlib.suppress(OSError), open(os.open(self._lease, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as lease:
            lease.write(b"agent %012d\n" % self._beats)


class AgentConnection(asyncio.BufferedProtocol):
    """
    One connection to the door.

    Args:
        door: The door it came to.
    """

    def __init__(self, door: AgentListener) -> None:
        self._door = door
        self._transport: asyncio.Transport | None = None
        # Always the same memory: what arrives is written to its place before more is read.
        self._buffer = memoryview(bytearray(ROOM))
        self._greeting = b""
        self._admitted = False
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=ROOM, low=ROOM // 4)
        self._patience = asyncio.get_running_loop().call_later(_GREETING_WITHIN, transport.abort)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        data = self._buffer[:nbytes]
        if self._admitted:
            if self._door.wire is not None:
                self._door.wire.receive(self, data)
            return
        self._greeting += data
        try:
            self._admitted = self._door.admit(self, self._greeting)
        except ProtocolError as error:
            self.write(cell(CellType.HELLO, json.dumps({"refused": str(error)}).encode()))
            self.close()
            return
        if self._admitted:
            self._greeting = b""
            if self._patience is not None:
                self._patience.cancel()
        elif len(self._greeting) > ROOM:
            self.close()

    def resume_writing(self) -> None:
        if self._door.wire is not None:
            self._door.wire.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._patience is not None:
            self._patience.cancel()
        if self._door.wire is not None:
            self._door.wire.lost(self, exc)

    def write(self, data: bytes) -> None:
        """Send bytes."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def room(self) -> int:
        """Count the bytes that can be taken now."""
        if self._transport is None or self._transport.is_closing():
            return 0
        return ROOM - self._transport.get_write_buffer_size()

    def close(self) -> None:
        """Close it, after what was written."""
        if self._transport is not None:
            self._transport.close()
