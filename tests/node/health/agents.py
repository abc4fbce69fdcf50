"""What the tests of health checks need of an agent: a loop that reaps."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from typing import Any


def reaping(watch: Any, pid: Callable[[], int | None]) -> None:
    """
    Report the end of a child as the agent does.

    Args:
        watch: Takes it.
        pid: Names the child that there is.
    """

    def reap() -> None:
        while (child := pid()) is not None:
            try:
                ended, status = os.waitpid(child, os.WNOHANG)
            except ChildProcessError:
                return
            if not ended:
                return
            watch.reaped(ended, status)

    asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, reap)
