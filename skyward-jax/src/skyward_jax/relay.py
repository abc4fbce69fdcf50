"""
Stands between a rank and JAX's coordinator, which ends every process that it is cut off from.

The coordinator lives in the process of the head.
JAX aborts a process as soon as its connection there breaks, whatever that process does, and has no way to be asked
otherwise.
Here the engine sees to nodes and processes that are lost; so a rank's connection never breaks, and nothing answers on
it any more.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from functools import partial

__all__ = ["Relay"]

_PAUSE = 0.02
"""Seconds between two tries to reach the coordinator, which may not listen yet."""

_READ = 64 << 10


class Relay:
    """
    Pass bytes on between this process and the coordinator.

    Args:
        host: Where the coordinator is.
        port: At which port.
        limit: Seconds in which it may begin to listen.
    """

    def __init__(self, host: str, port: int, limit: float) -> None:
        self._there = (host, port)
        self._deadline = time.monotonic() + limit
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.lost = False
        """Whether the coordinator is gone, so that it answers nothing."""
        self._start(self._accept)

    def close(self) -> None:
        """Stop listening; connections that are open are served until they end."""
        # Closing alone does not wake the thread that waits for connections.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                here, _ = self._listener.accept()
                self._start(partial(self._serve, here))

    def _serve(self, here: socket.socket) -> None:
        there = self._dialled()
        if there is None:
            self._keep_quiet(here)
            return
        left = threading.Event()
        self._start(partial(self._bring_back, there, here, left))
        with here, there:
            with contextlib.suppress(OSError):
                while data := here.recv(_READ):
                    # What is not read any more is lost, as on a network that is cut.
                    with contextlib.suppress(OSError):
                        there.sendall(data)
            left.set()
            # Closing alone does not wake the thread that waits for the other side.
            with contextlib.suppress(OSError):
                there.shutdown(socket.SHUT_RDWR)

    def _bring_back(self, there: socket.socket, here: socket.socket, left: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := there.recv(_READ):
                here.sendall(data)
        self.lost = self.lost or not left.is_set()

    def _dialled(self) -> socket.socket | None:
        while time.monotonic() < self._deadline:
            with contextlib.suppress(OSError):
                sock = socket.create_connection(self._there, timeout=1.0)
                sock.settimeout(None)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return sock
            time.sleep(_PAUSE)
        self.lost = True
        return None

    def _keep_quiet(self, here: socket.socket) -> None:
        with here, contextlib.suppress(OSError):
            while here.recv(_READ):
                pass

    def _start(self, work: Callable[[], None]) -> None:
        threading.Thread(target=work, name="skyward-jax-relay", daemon=True).start()
