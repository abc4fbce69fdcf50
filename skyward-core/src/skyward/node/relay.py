"""
Join standard input and output with an agent's socket, for SSH servers that forward no Unix sockets.

`python -m skyward.node.relay SOCKET`
"""

from __future__ import annotations

import os
import socket
import sys
import threading

_READ = 128 << 10


def main() -> None:
    """Pass bytes both ways until either side ends."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(sys.argv[1])
        threading.Thread(target=_inward, args=(sock,), daemon=True).start()
        while data := sock.recv(_READ):
            _write_all(1, data)


def _inward(sock: socket.socket) -> None:
    try:
        while data := os.read(0, _READ):
            sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
    except OSError:
        return


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


if __name__ == "__main__":
    main()
