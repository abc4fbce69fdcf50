"""A process in a session of its own, which is not ended with the one that it was started in."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from types import FrameType

__all__ = ["apart"]

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def apart(work: Callable[[], int]) -> int:
    """
    Do something in a child that has a session of its own, and return its exit code; signals are passed on to it.

    Clients of the protocol kill the group of a server that has not ended two seconds after its input was closed;
    machines take longer to end. To be called before there are threads.

    Args:
        work: What is done; returns the exit code.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    child = os.fork()
    if child == 0:
        os.setsid()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return work()

    def passed_on(number: int, frame: FrameType | None) -> None:
        os.kill(child, number)

    for number in _SIGNALS:
        signal.signal(number, passed_on)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) % 256
