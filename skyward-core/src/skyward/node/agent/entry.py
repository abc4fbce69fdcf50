"""How a process that the agent starts finds its sockets, and what it is to be."""

from __future__ import annotations

import signal
import socket
import sys
from typing import Any

from skyward.link.frames import decode_json

TASK_FD, CONTROL_FD, SLOT_TABLE_FD, DUMP_FD = 3, 4, 5, 6
"""The descriptors that the agent hands to a process."""

INTERRUPT_SIGNAL = signal.SIGURG
"""What wakes the main thread from a system call to be interrupted; ignored by default, and by everybody else."""

STACKS_SIGNAL = signal.SIGRTMIN + 7 if sys.platform == "linux" else signal.SIGUSR2
"""What has a worker write its stacks to `DUMP_FD`; no program is known that uses it, and its handler runs in C."""


def read_start(tasks: socket.socket) -> tuple[dict[str, Any], bytes]:
    """Read the first frame, which says what this worker is to be."""
    header = tasks.recv(8, socket.MSG_WAITALL)
    size = int.from_bytes(header[:4], "little")
    body = tasks.recv(size, socket.MSG_WAITALL)
    length = int.from_bytes(body[:4], "little")
    return decode_json(body[4 : 4 + length]), body[4 + length :]


def die_with_parent() -> None:
    """Ask the kernel to end this process when the agent is gone, whatever user code does to the control thread."""
    if sys.platform == "linux":
        import ctypes

        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
