"""What an agent says of itself to its client, first of all."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Sequence
from typing import Any

from skyward.link.frames import VERSION
from skyward.node.data.memory_share import share_of_memory
from skyward.node.metrics.interfaces import network


def welcome(meeting_port: int, addresses: Sequence[str | None]) -> dict[str, Any]:
    """
    Render the body of a WELCOME frame.

    Args:
        meeting_port: The port that frameworks meet at.
        addresses: Those at which this machine is reached, that for the other nodes first.
    """
    return {
        "version": VERSION,
        "pid": os.getpid(),
        "python": sys.version.split()[0],
        "platform": sys.platform,
        "hostname": socket.gethostname(),
        "port": meeting_port,
        "network": network(addresses),
        "now": time.time(),
        "keeps": share_of_memory(),
    }


def rendezvous_socket() -> socket.socket:
    """
    Keep a port free for frameworks to meet at, until the socket is closed.

    It does not listen, so Linux lets others listen there that allow addresses to be used again, and gives the port to
    no rank that asks for any.
    """
    sock = reserved_socket()
    release_port(sock)
    return sock


def reserved_socket() -> socket.socket:
    """Keep a port, so that nothing else can listen there, not even this process, until `release_port` or its end."""
    sock = socket.socket()
    sock.bind(("", 0))
    return sock


def release_port(reserved: socket.socket) -> None:
    """
    Release a port that was kept for a framework; to be called right before that listens, as others could as well.

    Args:
        reserved: The socket that keeps it.
    """
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
