"""
The port where other nodes of the pool fetch stored buffers: each connection in a thread, so calls are not kept waiting.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import mmap
import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from skyward.link.transfer_orders import ANSWER, MARK, REQUEST

if TYPE_CHECKING:
    import ssl

    from skyward.link.segment import Segment

_log = logging.getLogger(__name__)

AUTHENTICATED_WITHIN = 5.0
"""Seconds that a connection has to authenticate, and to say what it wants."""

MOST_SILENT = 32
"""Connections that have not done so; the first of them is closed when one more comes, as nodes do so at once."""

MOST_SERVED = 8
"""Connections that are served at a time; the client asks for two, and more while some of them stall."""

_TAKEN_WITHIN = 30.0
"""Seconds in which a connection takes one piece."""

_PIECE = 1 << 20
_BACKLOG = 64
_AGAIN = 1.0
"""Seconds after which connections are accepted again where there was no descriptor for one."""


class _PeerConnection:
    """A connection; `wake` is a descriptor of it that its thread does not use."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.wake = sock.dup()
        self.limit: asyncio.TimerHandle | None = None

    def end(self) -> None:
        """Stop its thread."""
        with contextlib.suppress(OSError):
            self.wake.shutdown(socket.SHUT_RDWR)


class PeerListener:
    """
    Listen for nodes of the pool.

    Args:
        loop: The agent's loop.
        context: The pool's TLS settings.
        listener: What listens, non-blocking; closed with the door.
        find: Returns what is stored under a name, from any thread.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        context: ssl.SSLContext,
        listener: socket.socket,
        find: Callable[[bytes], Segment | None],
    ) -> None:
        self._loop = loop
        self._context = context
        self._listener = listener
        self._find = find
        self._silent: list[_PeerConnection] = []
        self._served: list[_PeerConnection] = []
        self._closed = False
        self.given = 0
        """Bytes that were sent."""
        loop.add_reader(listener, self._knock)

    @property
    def port(self) -> int:
        """Return where it listens."""
        port: int = self._listener.getsockname()[1]
        return port

    def close(self) -> None:
        """Stop listening, and close the connections that are there."""
        if not self._closed:
            self._closed = True
            self._loop.remove_reader(self._listener)
            self._listener.close()
            for visit in (*self._silent, *self._served):
                visit.end()

    def _knock(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except (BlockingIOError, ConnectionError):
            return
        except OSError as error:
            # Out of descriptors: the connection stays in the queue, and the loop would call this over and over.
            _log.warning("peer.not_let_in reason=%s", error)
            self._loop.remove_reader(self._listener)
            self._loop.call_later(_AGAIN, self._open_again)
            return
        if len(self._silent) >= MOST_SILENT:
            self._silent.pop(0).end()
        visit = _PeerConnection(sock)
        self._silent.append(visit)
        visit.limit = self._loop.call_later(AUTHENTICATED_WITHIN, self._expired, visit)
        try:
            threading.Thread(target=self._serve, args=(visit,), name="skyward-peer", daemon=True).start()
        except RuntimeError as error:
            _log.warning("peer.not_let_in reason=%s", error)
            visit.sock.close()
            self._gone(visit)

    def _open_again(self) -> None:
        if not self._closed:
            self._loop.add_reader(self._listener, self._knock)

    def _expired(self, visit: _PeerConnection) -> None:
        if visit in self._silent:
            visit.end()

    def _speaks(self, visit: _PeerConnection) -> None:
        """Record, in the loop, that a connection is authenticated."""
        if visit in self._silent:
            self._silent.remove(visit)
            self._served.append(visit)
            if len(self._served) > MOST_SERVED or self._closed:
                visit.end()

    def _gone(self, visit: _PeerConnection) -> None:
        if visit.limit is not None:
            visit.limit.cancel()
        for visits in (self._silent, self._served):
            with contextlib.suppress(ValueError):
                visits.remove(visit)
        visit.wake.close()

    # In a thread for each connection.

    def _serve(self, visit: _PeerConnection) -> None:
        try:
            visit.sock.settimeout(AUTHENTICATED_WITHIN)
            with visit.sock, self._context.wrap_socket(visit.sock, server_side=True) as tls:
                self._hand_on(visit, tls)
        except (OSError, ValueError) as error:
            # Not authenticated, or closed by its node, which reports why to the client by itself.
            _log.debug("peer.left reason=%s", error)
        finally:
            self._tell(self._gone, visit)

    def _hand_on(self, visit: _PeerConnection, tls: ssl.SSLSocket) -> None:
        asked = b""
        while len(asked) < REQUEST.size:
            more = tls.recv(REQUEST.size - len(asked))
            if not more:
                return
            asked += more
        mark, name = REQUEST.unpack(asked)
        if mark != MARK:
            return
        self._tell(self._speaks, visit)
        tls.settimeout(_TAKEN_WITHIN)
        segment = self._find(name)
        if segment is None:
            tls.sendall(ANSWER.pack(0, 0))
            return
        tls.sendall(ANSWER.pack(1, segment.size))
        # Unmapped with its last view: one that a failed write still holds must not be closed under it.
        content = memoryview(mmap.mmap(segment.fd, segment.size, prot=mmap.PROT_READ))
        for at in range(0, segment.size, _PIECE):
            piece = content[at : at + _PIECE]
            tls.sendall(piece)
            self.given += len(piece)

    def _tell(self, do: Callable[[_PeerConnection], None], visit: _PeerConnection) -> None:
        # An agent that is at its end listens to none of this.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(do, visit)


def listening(address: str) -> socket.socket:
    """
    Listen at a free port of the interface that the other nodes see, or of all where the machine does not know its own
    address, as behind a translation of addresses, or goes by a name, which may mean something else here.

    Args:
        address: What the other nodes reach this one at.

    Raises:
        OSError: If there is no port.
    """
    for place in (_literal(address), ""):
        if place is None:
            continue
        sock = socket.socket(socket.AF_INET6 if ":" in place else socket.AF_INET)
        try:
            sock.bind((place, 0))
            sock.listen(_BACKLOG)
        except OSError:
            sock.close()
            if not place:
                raise
            continue
        sock.setblocking(False)
        return sock
    raise AssertionError


def _literal(address: str) -> str | None:
    """
    Return an address that is one; None for a name.

    >>> _literal("10.0.0.7"), _literal("gpu1.lab")
    ('10.0.0.7', None)
    """
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return None
