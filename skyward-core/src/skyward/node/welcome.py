"""What an agent says of itself to its client, first of all."""

from __future__ import annotations

import os
import socket
import sys
import time
from typing import Any

from skyward.link.frames import VERSION


def welcome() -> dict[str, Any]:
    """Render the body of a WELCOME frame."""
    return {
        "version": VERSION,
        "pid": os.getpid(),
        "python": sys.version.split()[0],
        "platform": sys.platform,
        "hostname": socket.gethostname(),
        "port": _free_port(),
        "now": time.time(),
    }


def _free_port() -> int:
    """Find a port that is free now, for frameworks to meet at."""
    with socket.socket() as sock:
        sock.bind(("", 0))
        port: int = sock.getsockname()[1]
        return port
