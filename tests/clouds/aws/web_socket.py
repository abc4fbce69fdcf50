"""As much of a WebSocket (RFC 6455) as a data channel of Session Manager needs, for either end of it."""

from __future__ import annotations

import base64
import hashlib
import os
import socket
import struct
import threading
from urllib.parse import urlsplit

__all__ = ["TEXT", "WebSocket", "accepted", "connected"]

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
_SALT = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_LONGEST = 1 << 20


class WebSocket:
    """
    Send and receive whole messages.

    Args:
        sock: The connection, whose handshake is done.
        masks: Whether this is the client's end, whose messages are masked.
    """

    def __init__(self, sock: socket.socket, *, masks: bool) -> None:
        self._sock = sock
        self._masks = masks
        self._lock = threading.Lock()

    def send(self, data: bytes, kind: int = BINARY) -> None:
        """Send a message in one frame."""
        flag = 0x80 if self._masks else 0
        if len(data) < 126:
            head = struct.pack("!BB", 0x80 | kind, flag | len(data))
        elif len(data) < 1 << 16:
            head = struct.pack("!BBH", 0x80 | kind, flag | 126, len(data))
        else:
            head = struct.pack("!BBQ", 0x80 | kind, flag | 127, len(data))
        if self._masks:
            mask = os.urandom(4)
            head, data = head + mask, _masked(data, mask)
        with self._lock:
            self._sock.sendall(head + data)

    def receive(self) -> bytes:
        """Return the next message; nothing when the other end has closed."""
        while True:
            try:
                first, second = self._exactly(2)
                kind, size = first & 0x0F, second & 0x7F
                if size > 125:
                    size = int.from_bytes(self._exactly(2 if size == 126 else 8))
                assert size <= _LONGEST, "a message is too long"
                # A client's frames are masked, and a server's never are.
                assert bool(second & 0x80) is not self._masks, "masked by the wrong end"
                mask = self._exactly(4) if second & 0x80 else bytes(4)
                data = _masked(self._exactly(size), mask)
            except (ConnectionError, OSError):
                return b""
            if kind == CLOSE:
                return b""
            if kind == PING:
                self.send(data, PONG)
            elif kind in (TEXT, BINARY):
                return data

    def close(self) -> None:
        """Say that nothing follows, and hang up."""
        try:
            self.send(b"", CLOSE)
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._sock.close()

    def _exactly(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            more = self._sock.recv(size - len(found))
            if not more:
                raise ConnectionError
            found += more
        return found


def accepted(sock: socket.socket) -> tuple[WebSocket, str]:
    """Answer a client's handshake; return its end and the path that it asks for."""
    request = _until_blank(sock)
    fields = {name.strip().lower(): text.strip() for name, _, text in (line.partition(":") for line in request[1:])}
    assert "websocket" == fields["upgrade"].lower(), request
    answer = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    sock.sendall(f"{answer}Sec-WebSocket-Accept: {_accept(fields['sec-websocket-key'])}\r\n\r\n".encode())
    return WebSocket(sock, masks=False), request[0].split()[1]


def connected(url: str) -> WebSocket:
    """Connect to a server."""
    place = urlsplit(url)
    assert place.hostname is not None
    sock = socket.create_connection((place.hostname, place.port or 80), timeout=20)
    sock.settimeout(None)
    key = base64.b64encode(os.urandom(16)).decode()
    head = f"GET {place.path}?{place.query} HTTP/1.1\r\nHost: {place.netloc}\r\nUpgrade: websocket\r\n"
    sock.sendall(f"{head}Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
    answer = _until_blank(sock)
    assert " 101 " in answer[0], answer
    assert any(_accept(key) in line for line in answer), answer
    return WebSocket(sock, masks=True)


def _accept(key: str) -> str:
    return base64.b64encode(hashlib.sha1(key.encode() + _SALT, usedforsecurity=False).digest()).decode()


def _until_blank(sock: socket.socket) -> list[str]:
    """Read the head of a request or answer, byte by byte: what follows is no part of it."""
    found = b""
    while not found.endswith(b"\r\n\r\n"):
        more = sock.recv(1)
        if not more or len(found) > 16384:
            raise ConnectionError
        found += more
    return found.decode().split("\r\n")[:-2]


def _masked(data: bytes, mask: bytes) -> bytes:
    return bytes(byte ^ mask[place % 4] for place, byte in enumerate(data)) if any(mask) else data
