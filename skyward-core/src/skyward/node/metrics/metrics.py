"""Measure a node while it is used: nothing wakes up when nothing was asked for."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from skyward.link.channel import Link
from skyward.link.frames import Kind, encode_json
from skyward.node.agent.agent_command import AgentCommand
from skyward.node.metrics import readings

LEAST_INTERVAL = 0.1
"""Seconds between two measurements at least, whatever was asked for."""

_TIMEOUT = 10.0
_LONGEST_BACKOFF = 300.0
# Measurements that are due this soon are taken along.
_TOGETHER = 0.02
_MOST_BACKLOG = 64 << 10


class Job:
    """
    One thing to measure, and when.

    Args:
        asked: A `Collector`, as JSON.
        now: The time.
    """

    def __init__(self, asked: Mapping[str, Any], now: float) -> None:
        self.name: str = asked["name"]
        self.source: str = asked["source"]
        self.unit: str = asked["unit"]
        self.argument: str | None = asked["argument"]
        self.interval = max(LEAST_INTERVAL, asked["interval"])
        self.due = now + self.interval
        self.failures = 0
        self.busy = False
        self.before: Any = None

    def next(self, now: float) -> None:
        """Set when it is due again: on its own grid, or later if it was late or has failed."""
        wait = min(self.interval * 2.0**self.failures, max(self.interval, _LONGEST_BACKOFF))
        self.due = self.due + wait if self.due + wait > now else now + wait

    def row(self, value: float, which: object = None) -> list[Any]:
        """Return what is sent to the client."""
        return [self.source, self.name if which is None else f"{self.name}:{which}", self.unit, value]


class Sampler:
    """
    Measure what was asked for, and report it to the client.

    While the client is away the latest measurements are kept, and no others.

    Args:
        loop: The agent's loop.
        proc: Where the kernel describes itself.
        timeout: Seconds that a command has.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, proc: str = "/proc", timeout: float = _TIMEOUT) -> None:
        self._loop = loop
        self._proc = Path(proc)
        self._timeout = timeout
        self._client: Link | None = None
        self._jobs: list[Job] = []
        self._commands: dict[int, AgentCommand] = {}
        self._held: dict[str, list[Any]] = {}
        self._troubles: list[str] = []
        self._timer: asyncio.TimerHandle | None = None

    def start(self, asked: Sequence[Mapping[str, Any]], client: Link | None) -> None:
        """
        Begin to measure.

        Args:
            asked: The collectors, as JSON; nothing happens without any.
            client: Where it is sent.
        """
        now = time.monotonic()
        self._client = client
        jobs = [Job(one, now) for one in asked]
        if not shutil.which("nvidia-smi"):
            jobs = [job for job in jobs if job.source not in readings.GPU_FIELDS]
        self._jobs = jobs
        # The first of two readings, where it takes two.
        self._read_proc([job for job in jobs if job.source in ("cpu", "network_rx", "network_tx")], now)
        self._sleep(now)

    def stop(self) -> None:
        """Measure no more, and end the commands under way."""
        if self._timer is not None:
            self._timer.cancel()
        self._jobs = []
        for command in self._commands.values():
            command.kill()

    def reaped(self, pid: int, status: int) -> None:
        """Record that a child of the agent ended, which may be a command."""
        command = self._commands.pop(pid, None)
        if command is not None:
            command.reaped(status)

    # The clock.

    def _sleep(self, now: float) -> None:
        if self._jobs:
            wait = max(0.0, min(job.due for job in self._jobs) - now)
            self._timer = self._loop.call_later(wait, self._tick)

    def _tick(self) -> None:
        now = time.monotonic()
        due = [job for job in self._jobs if job.due <= now + _TOGETHER]
        for job in due:
            job.next(now)
        self._ask_gpus([job for job in due if job.source in readings.GPU_FIELDS and not job.busy])
        for job in due:
            if job.source == "command" and not job.busy:
                self._run([job], ("sh", "-c", str(job.argument)), partial(_custom, job))
            elif job.source == "disk" and not job.busy:
                self._ask_disk(job)
        self._tell(self._read_proc(due, now))
        self._sleep(now)

    # What the kernel knows at once.

    def _read_proc(self, jobs: Sequence[Job], now: float) -> list[list[Any]]:
        texts: dict[str, str] = {}
        rows = []
        for job in jobs:
            if job.source not in _PROC:
                continue
            file, value_of = _PROC[job.source]
            if file not in texts:
                texts[file] = self._text(file)
            value = value_of(job, texts[file], now)
            if value is not None:
                rows.append(job.row(round(value, 3)))
        return rows

    def _text(self, file: str) -> str:
        try:
            return (self._proc / file).read_text()
        except OSError:
            return ""

    # What takes its time.

    def _ask_disk(self, job: Job) -> None:
        # A file system in the network that is gone blocks its caller, which must not be the agent.
        job.busy = True
        threading.Thread(target=self._statvfs, args=(job,), daemon=True).start()

    def _statvfs(self, job: Job) -> None:
        rows, why = [], ""
        try:
            found = os.statvfs(str(job.argument))
            value = readings.disk_percent(found.f_blocks, found.f_bfree, found.f_bavail)
            rows = [] if value is None else [job.row(round(value, 3))]
        except OSError as error:
            why = error.strerror or str(error)
        try:
            self._loop.call_soon_threadsafe(self._measured, [job], rows, why)
        except RuntimeError:
            # The agent has left.
            return

    def _ask_gpus(self, jobs: Sequence[Job]) -> None:
        if jobs:
            sources = sorted({job.source for job in jobs})
            self._run(jobs, readings.gpu_query(sources), partial(_gpus, jobs, sources))

    def _run(self, jobs: Sequence[Job], argv: Sequence[str], read: Callable[[str], list[list[Any]]]) -> None:
        def done(output: str, why: str) -> None:
            rows = read(output) if not why else []
            if not rows and not why:
                why = f"no number, but {output.strip()[:80]!r}"
            self._measured(jobs, rows, why)

        for job in jobs:
            job.busy = True
        try:
            command = AgentCommand(self._loop, argv, self._timeout, done)
        except (OSError, ValueError) as error:
            self._measured(jobs, [], str(error))
        else:
            self._commands[command.pid] = command

    def _measured(self, jobs: Sequence[Job], rows: list[list[Any]], why: str) -> None:
        if why and not any(job.failures for job in jobs):
            names = ", ".join(job.name for job in jobs)
            self._troubles.append(f"{names} can't be measured: {why}. It is tried again, less and less often.")
        now = time.monotonic()
        for job in jobs:
            job.busy = False
            job.failures = min(job.failures + 1, 20) if why else 0
            if why:
                job.due = now
                job.next(now)
        self._tell(rows)

    # The client.

    def _tell(self, rows: list[list[Any]]) -> None:
        # Those that are new come last.
        for row in rows:
            self._held.pop(row[1], None)
            self._held[row[1]] = row
        client = self._client
        if not (self._held or self._troubles) or client is None or client.closed:
            return
        if not client.connected or client.backlog > _MOST_BACKLOG:
            return
        frame = {"values": list(self._held.values()), "troubles": self._troubles}
        self._held, self._troubles = {}, []
        client.send(encode_json(Kind.METRIC, frame))


def _cpu(job: Job, text: str, now: float) -> float | None:
    before, job.before = job.before, readings.cpu_times(text)
    return readings.cpu_percent(before, job.before) if before and job.before else None


def _memory(value_of: Callable[[readings.Memory], float], job: Job, text: str, now: float) -> float | None:
    found = readings.memory(text)
    return value_of(found) if found else None


def _network(direction: int, job: Job, text: str, now: float) -> float | None:
    before, found = job.before, readings.traffic(text, job.argument)
    job.before = (found, now)
    if not before or not before[0] or not found:
        return None
    return readings.rate(before[0][direction], found[direction], now - before[1])


def _custom(job: Job, output: str) -> list[list[Any]]:
    value = readings.number(output)
    return [] if value is None else [job.row(value)]


def _gpus(jobs: Sequence[Job], sources: Sequence[str], output: str) -> list[list[Any]]:
    found = readings.gpus(output, sources) or {}
    return [job.row(found[gpu][job.source], gpu) for job in jobs for gpu in found if job.source in found[gpu]]


_PROC: Mapping[str, tuple[str, Callable[[Job, str, float], float | None]]] = {
    "cpu": ("stat", _cpu),
    "memory": ("meminfo", partial(_memory, lambda found: 100.0 * found.used / found.total)),
    "memory_used": ("meminfo", partial(_memory, lambda found: found.used)),
    "memory_total": ("meminfo", partial(_memory, lambda found: found.total)),
    "network_rx": ("net/dev", partial(_network, 0)),
    "network_tx": ("net/dev", partial(_network, 1)),
}
