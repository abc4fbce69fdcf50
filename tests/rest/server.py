"""A small API on loopback that answers what a test put in line for it, byte for byte if need be."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Call(NamedTuple):
    """One request that came."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


class Scripted(ThreadingHTTPServer):
    """Answer with what is in line; the last answer again and again."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: list[tuple[int, dict[str, str], bytes]] = [(200, {}, b"{}")]
        self.calls: list[Call] = []
        self.held = threading.Event()
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        """Return the server's address."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def say(self, *answers: Any) -> None:
        """Put answers in line: a status, or a status and a body, or those and headers; 0 cuts, -1 stalls."""
        self.answers = []
        for answer in answers:
            status, body, headers = (*(answer if isinstance(answer, tuple) else (answer, {})), {}, {})[:3]
            raw = (
                body
                if isinstance(body, bytes)
                else body.encode()
                if isinstance(body, str)
                else json.dumps(body).encode()
            )
            self.answers.append((status, headers, raw))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Scripted

    def _serve(self) -> None:
        server = self.server
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): text for name, text in self.headers.items()}
        with server.lock:
            server.calls.append(Call(self.command, self.path, headers, json.loads(raw) if raw else None))
            status, more, body = server.answers.pop(0) if len(server.answers) > 1 else server.answers[0]
        if status == -1:
            server.held.wait(30)
        if status <= 0:
            if body != b"{}":
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + body)
            self.close_connection = True
            return
        if "Date" in more:
            self.send_response_only(status)
        else:
            self.send_response(status)
        for name, text in more.items():
            self.send_header(name, text)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if status != 204:
            self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def scripted() -> Iterator[Scripted]:
    """Run a server for the length of a block."""
    server = Scripted()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.held.set()
        server.shutdown()
        server.server_close()
        thread.join()
