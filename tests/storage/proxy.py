"""A proxy in front of an object store that does to requests and answers what bad networks and servers do."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from attrs import define, field, frozen

REFUSAL = "<?xml version='1.0'?><Error><Code>{code}</Code><Message>As the test wants it.</Message></Error>"


@frozen(kw_only=True)
class Asked:
    """Hold a request that came by."""

    method: str
    path: str
    headers: dict[str, str] = field(repr=False)
    size: int

    @property
    def is_part(self) -> bool:
        """Tell whether it brings a part of an object."""
        return self.method == "PUT" and "partNumber=" in self.path

    @property
    def is_range(self) -> bool:
        """Tell whether it asks for a range of an object."""
        return "Range" in self.headers


@define(kw_only=True)
class Fault:
    """
    Say what happens to some requests.

    Args:
        meets: Tells which.
        times: To how many of them.
        skip: How many are spared before.
        refuse: Status and code of an answer that comes without asking the server.
        cut_after: Bytes of the answer's body after which the connection is closed.
        lose_answer: Whether the server is asked, and its answer dropped with the connection.
        damage: Whether a byte of the answer's body is changed.
        damage_request: Whether a byte of the request's body is changed.
        stall: Seconds for which nothing is sent.
        then: Called when it happens.
    """

    meets: Callable[[Asked], bool]
    times: int = 1
    skip: int = 0
    refuse: tuple[int, str] | None = None
    cut_after: int | None = None
    lose_answer: bool = False
    damage: bool = False
    damage_request: bool = False
    stall: float = 0.0
    then: Callable[[], object] | None = None


class Proxy:
    """
    Stand in front of a server.

    Args:
        upstream: Its address.
    """

    def __init__(self, upstream: str) -> None:
        self.upstream = urlsplit(upstream)
        self.faults: list[Fault] = []
        self.asked: list[Asked] = []
        self.closing = threading.Event()
        self.lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), Handler)
        self._server.proxy = self
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        """Stop serving."""
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()

    def add(self, fault: Fault) -> None:
        """Have a fault happen."""
        self.faults.append(fault)

    def take(self, asked: Asked) -> Fault | None:
        """Return what happens to a request."""
        with self.lock:
            self.asked.append(asked)
            for fault in self.faults:
                if fault.times > 0 and fault.meets(asked):
                    if fault.skip:
                        fault.skip -= 1
                        continue
                    fault.times -= 1
                    return fault
        return None

    def count(self, meets: Callable[[Asked], bool]) -> int:
        """Tell how many requests of a kind came by."""
        return sum(meets(asked) for asked in self.asked)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    proxy: Proxy

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep quiet about clients that are gone."""


class Handler(BaseHTTPRequestHandler):
    """Handle the requests of one connection."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def setup(self) -> None:
        """Send small answers at once."""
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Keep quiet."""

    def pass_on(self) -> None:
        """Do to a request what a fault says, else ask the server."""
        proxy = self.server.proxy
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        asked = Asked(method=self.command, path=self.path, headers=dict(self.headers.items()), size=len(body))
        fault = proxy.take(asked) or Fault(meets=lambda _: True)
        if fault.then is not None:
            fault.then()
        if fault.stall:
            proxy.closing.wait(fault.stall)
        if fault.refuse is not None:
            status, code = fault.refuse
            text = b"" if self.command == "HEAD" else REFUSAL.format(code=code).encode()
            return self.answer(status, [("Content-Type", "application/xml")], text)
        if fault.damage_request:
            body = _damaged(body)
        status, headers, text = self.ask(proxy, body)
        if fault.lose_answer:
            self.close_connection = True
            return None
        if fault.damage:
            text = _damaged(text)
        return self.answer(status, headers, text, cut_after=fault.cut_after)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = pass_on

    def ask(self, proxy: Proxy, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        """Ask the server."""
        host, port = proxy.upstream.hostname or "", proxy.upstream.port
        with contextlib.closing(http.client.HTTPConnection(host, port, timeout=60)) as line:
            line.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in ("expect", "connection"):
                    line.putheader(name, value)
            line.endheaders(body)
            reply = line.getresponse()
            return reply.status, reply.getheaders(), reply.read()

    def answer(self, status: int, headers: list[tuple[str, str]], text: bytes, *, cut_after: int | None = None) -> None:
        """Send an answer, or the beginning of it."""
        self.send_response_only(status)
        known = {name.lower() for name, _ in headers}
        for name, value in headers:
            if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                self.send_header(name, value)
        length = {name.lower(): value for name, value in headers}.get("content-length", str(len(text)))
        kept = self.command == "HEAD" and "content-length" in known
        self.send_header("Content-Length", length if kept else str(len(text)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if cut_after is None:
            self.wfile.write(text)
            return
        self.wfile.write(text[:cut_after])
        self.wfile.flush()
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


def _damaged(body: bytes) -> bytes:
    at = len(body) // 2
    return body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :] if body else body


def waited(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Wait until a condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
