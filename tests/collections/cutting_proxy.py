"""A proxy before a store that loses replies and cuts connections."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import attrs


@attrs.define(eq=False)
class CuttingProxy:
    """
    Forward connections, and cut some of them where a reply was about to pass: what was asked for is done by then.

    Args:
        path: Its socket.
        upstream: The store's.
        chance: How probable a cut is for each reply.
        drawing: Draws them.
    """

    path: str
    upstream: str
    chance: float
    drawing: random.Random
    cuts: int = 0
    _listener: socket.socket = attrs.field(init=False)
    _open: set[socket.socket] = attrs.field(init=False, factory=set)

    def start(self) -> None:
        """Begin to listen."""
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Stop, and close all connections."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        """Close all connections there are."""
        for each in list(self._open):
            _end(each)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(self.upstream)
            self._open |= {near, far}
            threading.Thread(target=self._forward, args=(near, far, 0.0), daemon=True).start()
            threading.Thread(target=self._forward, args=(far, near, self.chance), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket, chance: float) -> None:
        try:
            while data := source.recv(1 << 16):
                if self.drawing.random() < chance:
                    self.cuts += 1
                    break
                target.sendall(data)
        except OSError:
            pass
        for each in (source, target):
            _end(each)
            self._open.discard(each)


def _end(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


@contextmanager
def cutting(upstream: str, chance: float, seed: int, name: str = "proxy") -> Iterator[CuttingProxy]:
    """Run such a proxy beside a store."""
    proxy = CuttingProxy(f"{upstream}.{name}", upstream, chance, random.Random(seed))
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.close()
        with suppress(OSError):
            import os

            os.unlink(proxy.path)
