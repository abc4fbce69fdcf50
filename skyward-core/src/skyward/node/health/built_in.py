"""The checks that every agent makes while its node is used: disks, memory, GPUs, the kernel's log, the clock."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from skyward.node.agent.agent_command import AgentCommand
from skyward.node.agent.out_of_memory import limit_mb, used_mb
from skyward.node.health import findings
from skyward.node.health.findings import DiskUse, Finding, Gpus

__all__ = ["GPU_QUERY", "BuiltInChecks"]

PERIOD = 30.0
"""Seconds between two looks."""

GPU_EVERY = 2
"""Looks of which one asks `nvidia-smi`, which takes longer than all else together."""

TOLD_AGAIN = 600.0
"""Seconds after which what is still wrong is reported again."""

_TIMEOUT = 20.0
_MOST_RECORDS = 1000
GPU_QUERY = "nvidia-smi --query-gpu=uuid,ecc.errors.uncorrected.volatile.total --format=csv,noheader,nounits 2>&1; true"
"""What lists the GPUs, each with its memory errors; what it says instead is read too."""


class BuiltInChecks:
    """
    Look at the node each period, and report what is wrong with it, once.

    Args:
        loop: The agent's loop.
        report: Takes each report: `check`, `certain` and `reason`.
        proc: Where the kernel describes itself.
        kernel_log: Where it writes what happens.
        period: Seconds between two looks.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        report: Callable[[dict[str, Any]], None],
        *,
        proc: str = "/proc",
        kernel_log: str = "/dev/kmsg",
        period: float = PERIOD,
    ) -> None:
        self._loop = loop
        self._report = report
        self._proc = Path(proc)
        self._kernel_log = kernel_log
        self._period = period
        self._paths: dict[str, bool] = {}
        self._asking: set[str] = set()
        self._told: dict[tuple[str, str], float] = {}
        self._gpus: Gpus | None = None
        self._gone: set[str] = set()
        self._command: AgentCommand | None = None
        self._log = -1
        self._timer: asyncio.TimerHandle | None = None
        self._looks = 0
        self._offset = 0.0

    def start(self, paths: Sequence[str]) -> None:
        """
        Begin to look.

        Args:
            paths: Directories whose file systems are to have room.
        """
        self._paths = {path: os.access(path, os.W_OK) for path in dict.fromkeys(paths)}
        self._offset = time.time() - time.monotonic()
        with contextlib.suppress(OSError):
            self._log = os.open(self._kernel_log, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._log, 0, os.SEEK_END)
        self._look()

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
        if self._command is not None:
            self._command.kill()
        if self._log >= 0:
            os.close(self._log)
            self._log = -1
        self._paths = {}

    def reaped(self, pid: int, status: int) -> None:
        """Record that a child of the agent ended, which may be the command."""
        if self._command is not None and self._command.pid == pid:
            command, self._command = self._command, None
            command.reaped(status)

    def _look(self) -> None:
        self._timer = self._loop.call_later(self._period, self._look)
        pressure, meminfo = self._text("pressure/memory"), self._text("meminfo")
        found = [findings.memory_pressure(meminfo, pressure, limit_mb(), used_mb()[1]), self._clock()]
        self._tell([*filter(None, found), *findings.kernel_log(self._records())])
        for path in self._paths:
            if path in self._asking:
                self._tell([Finding("disk", path, f"the file system at {path} does not answer")])
            else:
                # One in the network that is gone blocks its caller, which must not be the agent.
                self._asking.add(path)
                threading.Thread(target=self._statvfs, args=(path,), name="skyward-disk", daemon=True).start()
        if self._looks % GPU_EVERY == 0 and self._command is None and shutil.which("nvidia-smi"):
            with contextlib.suppress(OSError):
                self._command = AgentCommand(self._loop, ("sh", "-c", GPU_QUERY), _TIMEOUT, self._listed)
        self._looks += 1

    def _clock(self) -> Finding | None:
        offset = time.time() - time.monotonic()
        step, self._offset = offset - self._offset, offset
        return findings.clock(step)

    def _text(self, name: str) -> str:
        try:
            return (self._proc / name).read_text()
        except (OSError, ValueError):
            return ""

    def _records(self) -> list[str]:
        """Return what the kernel has logged since the last look."""
        records: list[str] = []
        while self._log >= 0 and len(records) < _MOST_RECORDS:
            try:
                data = os.read(self._log, 8192)
            except BrokenPipeError:
                # Records were overwritten before they were read.
                continue
            except OSError:
                break
            if not data:
                break
            records += data.decode(errors="replace").splitlines()
        return records

    def _statvfs(self, path: str) -> None:
        found: list[Finding] = []
        with contextlib.suppress(OSError):
            seen = os.statvfs(path)
            read_only = bool(seen.f_flag & os.ST_RDONLY) and self._paths.get(path, False)
            sizes = (seen.f_blocks * seen.f_frsize, seen.f_bavail * seen.f_frsize, seen.f_files, seen.f_favail)
            found += filter(None, [findings.disk(DiskUse(path, *sizes, read_only=read_only))])
        # The agent may have left.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(partial(self._measured, path, found))

    def _measured(self, path: str, found: Sequence[Finding]) -> None:
        self._asking.discard(path)
        self._tell(found)

    def _listed(self, output: str, why: str) -> None:
        if why:
            self._tell([Finding("gpu", "nvidia-smi", f"nvidia-smi does not answer: {why}")])
            return
        seen = findings.gpus_of(output)
        if self._gpus is None:
            self._gpus = seen
        found = findings.lost_gpus(self._gpus, seen)
        gone = {one.about for one in found if one.certain}
        # A GPU that is being reset is missing for a moment.
        self._tell([one for one in found if not one.certain or one.about in self._gone])
        self._gone = gone

    def _tell(self, found: Iterable[Finding]) -> None:
        now = time.monotonic()
        for one in found:
            before = self._told.get((one.check, one.about))
            if self._paths and (before is None or now - before >= TOLD_AGAIN):
                self._told[one.check, one.about] = now
                # A machine that was well when it began has not failed from the start.
                self._report({"check": one.check, "certain": one.certain, "reason": one.reason, "passed": True})
