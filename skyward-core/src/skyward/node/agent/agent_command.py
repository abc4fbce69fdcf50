"""A command whose output the agent wants, without waiting for it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from functools import partial

_MOST = 64 << 10


class AgentCommand:
    """
    Run a command beside the agent's loop, and end it with all it started when it takes too long.

    What reaps the agent's children has to report its end by `reaped`.

    Args:
        loop: The agent's loop.
        argv: The command line.
        timeout: Seconds that it has.
        on_done: Called once, with what it wrote and what is wrong with it; one of them is empty.

    Raises:
        OSError: If it can't be started.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, argv: Sequence[str], timeout: float, on_done: Callable[[str, str], None]
    ) -> None:
        self._loop = loop
        self._on_done = on_done
        self._output = b""
        self._open = True
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.pid = self._process.pid
        assert self._process.stdout is not None
        self._stdout = self._process.stdout
        os.set_blocking(self._stdout.fileno(), False)
        loop.add_reader(self._stdout.fileno(), self._read)
        self._timer = loop.call_later(timeout, partial(self._end, f"it took more than {timeout:g} s"))

    def reaped(self, status: int) -> None:
        """Record that it ended with this wait status."""
        self._process.returncode = os.waitstatus_to_exitcode(status)
        self._settle()

    def kill(self) -> None:
        """End it, without a report."""
        self._on_done = lambda *_: None
        self._end("")

    def _read(self) -> None:
        try:
            data = os.read(self._stdout.fileno(), _MOST)
        except BlockingIOError:
            return
        self._output += data
        if len(self._output) > _MOST:
            self._end("it wrote more than a number")
        elif not data:
            self._close()
            self._settle()

    def _settle(self) -> None:
        code = self._process.returncode
        if self._open or code is None:
            return
        self._finish(f"it ended with exit code {code}" if code else "")

    def _end(self, why: str) -> None:
        # A process that was reaped may have children left in its group, and its number is not given out until then.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._finish(why)

    def _finish(self, why: str) -> None:
        self._close()
        self._timer.cancel()
        done, self._on_done = self._on_done, lambda *_: None
        done("" if why else self._output.decode(errors="replace"), why)

    def _close(self) -> None:
        if self._open:
            self._open = False
            self._loop.remove_reader(self._stdout.fileno())
            self._stdout.close()
