"""The user's health check on a node: asked again and again, in a process that may hang or end as it likes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from typing import Any

from skyward.node.agent.child_process import signal_name

__all__ = ["UserCheck"]

_log = logging.getLogger(__name__)

LOADING = 120.0
"""Seconds that the process has to import what the predicate needs."""

_MOST = 64 << 10


class UserCheck:
    """
    Run the user's check each period, and report when it fails.

    Args:
        loop: The agent's loop.
        report: Takes each report: `check`, `certain`, `reason`, and `passed`, whether it ever passed here.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, report: Callable[[dict[str, Any]], None]) -> None:
        self._loop = loop
        self._report = report
        self._setting: Mapping[str, Any] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._heard = b""
        self._ready = False
        self._next: asyncio.TimerHandle | None = None
        self._late: asyncio.TimerHandle | None = None
        self._failures = 0
        self._passed = False

    def start(self, setting: Mapping[str, Any]) -> None:
        """
        Begin to check.

        Args:
            setting: `argv`, `env`, `directory`, `predicate`, `period`, `failures`, `timeout`; nothing happens without.
        """
        self._setting = setting
        if setting:
            self._turn()

    def stop(self) -> None:
        """Check no more, and end the process."""
        self._setting = {}
        for timer in (self._next, self._late):
            if timer is not None:
                timer.cancel()
        self._end()

    def reaped(self, pid: int, status: int) -> None:
        """Record that a child of the agent ended, which may be the process."""
        if self._process is None or self._process.pid != pid:
            return
        self._process.returncode = os.waitstatus_to_exitcode(status)
        # What it wrote before its end counts.
        self._read(self._process)
        if self._late is not None:
            self._failed(f"its process ended with {_ended(status)}")
        else:
            self._end()

    def _turn(self) -> None:
        """Begin a check, and set the time of the next."""
        self._next = self._loop.call_later(self._setting["period"], self._turn)
        if self._late is not None:
            # One is under way, which may take longer than the period.
            return
        if self._process is None:
            self._begin()
        elif self._ready:
            self._ask(self._process)

    def _begin(self) -> None:
        try:
            process = self._process = subprocess.Popen(
                self._setting["argv"],
                env={**os.environ, **self._setting["env"]},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            self._mistaken(f"its process cannot be started: {error}")
            return
        assert process.stdin is not None
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        self._heard, self._ready = b"", False
        self._loop.add_reader(process.stdout.fileno(), self._read, process)
        self._wait(LOADING, f"it was not loaded within {LOADING:g} s")
        said = {name: self._setting[name] for name in ("directory", "predicate")}
        # In a thread: the pickle may be larger than a pipe takes at once.
        line = json.dumps(said).encode() + b"\n"
        threading.Thread(target=_write, args=(process, line), daemon=True).start()

    def _ask(self, process: subprocess.Popen[bytes]) -> None:
        limit = self._setting["timeout"]
        self._wait(limit, f"it took more than {limit:g} s")
        _write(process, b"\n")

    def _wait(self, seconds: float, why: str) -> None:
        self._late = self._loop.call_later(seconds, self._failed, why)

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        if process is not self._process or process.stdout is None:
            return
        try:
            data = os.read(process.stdout.fileno(), _MOST)
        except BlockingIOError:
            return
        if not data:
            self._loop.remove_reader(process.stdout.fileno())
            return
        self._heard = (self._heard + data)[-_MOST:]
        *lines, self._heard = self._heard.split(b"\n")
        for line in lines:
            if process is self._process:
                self._take(process, line)

    def _take(self, process: subprocess.Popen[bytes], line: bytes) -> None:
        try:
            said = json.loads(line)
        except ValueError:
            said = {}
        if self._late is not None:
            self._late.cancel()
            self._late = None
        if said.get("ready"):
            self._ready = True
            self._ask(process)
        elif "mistake" in said:
            self._mistaken(str(said["mistake"]))
        elif said.get("ok") is True:
            self._failures, self._passed = 0, True
        else:
            self._count(str(said.get("why", "it said nothing that makes sense")))

    def _failed(self, why: str) -> None:
        """Count a check that gave no answer, and end its process: the next check has another."""
        if self._late is not None:
            self._late.cancel()
            self._late = None
        self._end()
        self._count(why)

    def _count(self, why: str) -> None:
        self._failures += 1
        most = self._setting.get("failures", 1)
        if self._failures >= most:
            times = f"{most} times in a row" if most > 1 else "once"
            self._tell(f"its health check failed {times}: {why}", certain=True)
            self.stop()
        elif self._failures == 1:
            self._tell(f"its health check failed, which it may {most - 1} times in a row: {why}", certain=False)

    def _mistaken(self, why: str) -> None:
        self._tell(f"its health check cannot be used, and is not run any more: {why}", certain=False)
        self.stop()

    def _tell(self, reason: str, *, certain: bool) -> None:
        _log.warning("health.failed certain=%s reason=%s", certain, reason)
        self._report({"check": "user", "certain": certain, "reason": reason, "passed": self._passed})

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdout is not None:
            self._loop.remove_reader(process.stdout.fileno())
            process.stdout.close()
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        # Reaped by the agent.
        process.returncode = process.returncode or 0


def _write(process: subprocess.Popen[bytes], line: bytes) -> None:
    """Write a line to a process; one that is gone is noticed by its end."""
    with contextlib.suppress(OSError, ValueError):
        assert process.stdin is not None
        process.stdin.write(line)
        process.stdin.flush()


def _ended(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"exit code {code}" if code >= 0 else signal_name(-code)
