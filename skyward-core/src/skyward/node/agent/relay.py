"""
Join standard input and output with an agent's socket, for SSH servers that forward no Unix sockets.

`python -m skyward.node.agent.relay SOCKET`
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading

AGENT_CLOSED = 69
"""Exit status when the agent has closed its end, or nothing listens there; `EX_UNAVAILABLE` of sysexits(3)."""

_READ = 128 << 10


def main() -> None:
    """Pass bytes both ways until either side ends; the exit status makes the client look for the agent."""
    with socket.socket(socket.AF_UNIX) as sock, contextlib.suppress(OSError):
        sock.connect(sys.argv[1])
        threading.Thread(target=_inward, args=(sock,), daemon=True).start()
        while data := sock.recv(_READ):
            _write_all(1, data)
    sys.exit(AGENT_CLOSED)


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
