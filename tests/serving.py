"""Small servers that functions of tests start on their nodes, and clients of them."""

from __future__ import annotations

import contextlib
import http.client
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b"x" * int(self.path.strip("/") or 0)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


class _Counter(socketserver.BaseRequestHandler):
    """Say how much was sent once the other side has said its last word: a half-closed connection."""

    def handle(self) -> None:
        size = 0
        while data := self.request.recv(1 << 16):
            size += len(data)
        self.request.sendall(str(size).encode())


class _Threads(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


class _Endless(socketserver.BaseRequestHandler):
    """Send for as long as a client reads."""

    def handle(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self.request.sendall(b"x" * 1000)
                time.sleep(0.01)


_KINDS: dict[str, Callable[[tuple[str, int]], socketserver.BaseServer]] = {
    "http": lambda address: ThreadingHTTPServer(address, _Page),
    "count": lambda address: _Threads(address, _Counter),
    "endless": lambda address: _Threads(address, _Endless),
}
_running: list[socketserver.BaseServer] = []


def serve(kind: str, port: int = 0) -> int:
    """Start a server in this process, which lives as long as it does; give its port."""
    server = _KINDS[kind](("127.0.0.1", port))
    _running.append(server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return int(server.server_address[1])  # type: ignore[index]


def get(address: str, size: int) -> int:
    """Read a page of so many bytes, and give how many came."""
    connection = http.client.HTTPConnection(address, timeout=20)
    try:
        connection.request("GET", f"/{size}")
        return len(connection.getresponse().read())
    finally:
        connection.close()


@contextlib.contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    """Connect to a port of this machine."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as sock:
        yield sock


def count(port: int, size: int) -> int:
    """Send so many bytes, say that this is all, and give what the other side counted."""
    with connected(port) as sock:
        sock.sendall(b"x" * size)
        sock.shutdown(socket.SHUT_WR)
        return int(sock.recv(100))


def is_open(port: int) -> bool:
    """Say whether a server listens at a port of this machine."""
    try:
        with connected(port):
            return True
    except ConnectionRefusedError:
        return False


def is_broken_off(sock: socket.socket) -> bool:
    """Read to the end, and say whether it was no good one."""
    try:
        while sock.recv(1 << 16):
            pass
    except ConnectionError:
        return True
    return False


def is_refused(port: int) -> bool:
    """Connect to a port of this machine, and say whether that is broken off at once."""
    try:
        with connected(port) as sock:
            return is_broken_off(sock)
    except ConnectionResetError:
        return True


def free_port() -> int:
    """Find a port of this machine that no program has."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])
