"""Calls that have to end: asked first, and after some seconds with their process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

from skyward.link.frames import Kind, encode
from skyward.link.messages import CANCEL, CancelReason
from skyward.node.agent.child_process import ChildProcess
from skyward.node.agent.stack_dumps import StackDumps

GRACE = 5.0
"""Seconds that a call has to leave after it was cancelled or timed out, before its process is ended."""

_TICK = 0.05


class Deadlines:
    """
    Watch the calls that have a timeout, and those that were cancelled.

    A call's clock starts when it starts on the worker, which is read from the slot table.

    Args:
        loop: The agent's loop.
        processes: The agent's processes by their pid.
        dumps: Notes where a call is before it is made to leave.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, processes: Mapping[int, ChildProcess], dumps: StackDumps
    ) -> None:
        self._loop = loop
        self._processes = processes
        self._dumps = dumps
        self._ticking = False

    def watch(self) -> None:
        """Look at the slot tables until no call with a timeout is left."""
        if not self._ticking:
            self._ticking = True
            self._loop.call_later(_TICK, self._look)

    def cancelled(self, process: ChildProcess, call: int) -> None:
        """End the process if the call, which was asked to leave, is still there after the grace."""
        self._loop.call_later(GRACE, self._end_unless_left, process, call)

    def _end_unless_left(self, process: ChildProcess, call: int) -> None:
        if process.exit_status is not None or call not in process.in_flight:
            return
        if any(running.call == call for running in process.slot_table.running()):
            process.kill(f"cancel:{call}")

    def _look(self) -> None:
        self._ticking = False
        now = time.monotonic()
        for process in list(self._processes.values()):
            if not any(process.in_flight.values()):
                continue
            self.watch()
            for running in process.slot_table.running():
                timeout = process.in_flight.get(running.call, 0.0)
                over = now - running.since - timeout
                if timeout and over >= 0:
                    self._past(process, running.call, over)

    def _past(self, process: ChildProcess, call: int, over: float) -> None:
        if over >= GRACE:
            process.kill(f"timeout:{call}")
        elif self._dumps.at_timeout(process, call):
            # Sent at each look until the call is over; the worker acts on the first alone.
            process.control.send(encode(Kind.CANCEL, CANCEL.pack(call, CancelReason.TIMEOUT)))
