"""Standard input that may be closed from here, as if the client had done so."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable

__all__ = ["closable_input"]

_AT_ONCE = 1 << 16


def closable_input() -> Callable[[], None]:
    """
    Replace descriptor 0 by a copy of what comes there, and return what ends that copy.

    A thread that reads standard input cannot be interrupted; this one reads what has an end.
    """
    source, (feed, taken) = os.dup(0), socket.socketpair()
    os.dup2(taken.fileno(), 0)
    taken.close()

    def close() -> None:
        with contextlib.suppress(OSError):
            feed.shutdown(socket.SHUT_WR)

    def copy() -> None:
        with contextlib.suppress(OSError):
            while data := os.read(source, _AT_ONCE):
                feed.sendall(data)
        close()

    threading.Thread(target=copy, name="skyward-mcp-input", daemon=True).start()
    return close
