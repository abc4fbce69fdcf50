"""
The timeline of a pool, written to a file while it happens, for Perfetto and Chrome.

The loop only notes what ended; a thread of its own makes the lines.
The file is one array in the Trace Event Format, of which its readers forgive a missing end: it can be opened while the
pool runs, and after a program that was killed.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import IO, Self

from skyward.errors import ConfigError
from skyward.model.events.event import SkywardEvent
from skyward.model.events.follower import CallTimes, Follower
from skyward.plan.pool import trace_events as lines
from skyward.plan.pool.machine_phases import MACHINES, MachinePhase, MachinePhases

_log = logging.getLogger(__name__)

LARGEST = 1 << 30
"""Bytes of a timeline, beyond which calls are counted and no longer written; what opens it takes no more."""

WAITING = 200_000
"""Calls that may wait to be written, beyond which they are counted and left out: the disk is slower than the pool."""

_EVERY = 0.2
"""Seconds for which lines are gathered before they are written."""

_END = 10.0
"""Seconds within which what waits has to be written at the end."""


class Timeline(Follower):
    """
    Record a pool until `close`, the end of its `with` block, or that of the pool.

    Args:
        path: The file, which is replaced.
        pool: The pool's name.

    Raises:
        ConfigError: If the file cannot be written.
    """

    events = MACHINES

    def __init__(self, path: str | os.PathLike[str], pool: str) -> None:
        self.path = os.fspath(path)
        try:
            self._file: IO[str] = open(self.path, "w", encoding="utf-8")  # noqa: SIM115  # closed by the last line
        except OSError as error:
            raise ConfigError(
                f"The timeline of pool {pool!r} cannot be written to {self.path!r}: {error.strerror}.",
                hint="Give pool.trace a file in a folder that exists.",
            ) from error
        self._since = time.time()
        self._waiting: deque[CallTimes | SkywardEvent] = deque()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._over = threading.Event()
        self._ending = threading.Lock()
        self._phases = MachinePhases()
        self._machines: dict[tuple[int, str], int] = {}
        self._named: set[tuple[int, int]] = set()
        self._size = 0
        self._left_out = 0
        self._broken = False
        self.detach: Callable[[], None] = lambda: None
        self._write(["[\n", ",\n".join(lines.process(lines.CLIENT, f"client of pool {pool}"))])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the recording, and write what is left of it; harmless when that is done."""
        self.detach()
        self.left()

    def ended(self, call: CallTimes) -> None:
        """Take an attempt that ended."""
        if len(self._waiting) < WAITING:
            self._take(call)
        else:
            self._left_out += 1

    def happened(self, event: SkywardEvent) -> None:
        """Take what happened to a machine."""
        self._take(event)

    def left(self) -> None:
        """Write the end of the file."""
        with self._ending:
            if self._over.is_set():
                return
            self._over.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(_END)
        if self._thread is None or not self._thread.is_alive():
            self._finish()

    def _take(self, what: CallTimes | SkywardEvent) -> None:
        if self._over.is_set():
            return
        self._waiting.append(what)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="skyward-timeline", daemon=True)
            self._thread.start()
        if not self._wake.is_set():
            self._wake.set()

    def _run(self) -> None:
        while not self._over.is_set():
            self._wake.wait()
            self._over.wait(_EVERY)
            self._wake.clear()
            self._drain()
        self._drain()

    def _drain(self) -> None:
        made: list[str] = []
        while self._waiting:
            what = self._waiting.popleft()
            made += self._call(what) if isinstance(what, CallTimes) else self._machine(what)
            if len(made) > 2000:
                self._write(_separated(made))
                made = []
        self._write(_separated(made))

    def _call(self, call: CallTimes) -> list[str]:
        if self._size > LARGEST:
            self._left_out += 1
            return []
        made = [lines.call_lines(call, self._since)]
        if call.node is None or call.began is None:
            return made
        return self._name(call.node, lines.row(call), f"process {call.lane}, slot {call.slot}") + made

    def _machine(self, event: SkywardEvent) -> list[str]:
        made: list[str] = []
        for step in self._phases.take(event):
            tid = self._machine_row(step.node, step.instance)
            made += self._name(step.node, tid, f"machine {step.instance}")
            if isinstance(step, MachinePhase):
                made.append(lines.phase(step.node, tid, step.name, step.began, step.ended, self._since))
            else:
                made.append(lines.instant(lines.of_node(step.node), tid, step.name, step.at, self._since, step.reason))
        return made

    def _machine_row(self, node: int, instance: str) -> int:
        return self._machines.setdefault((node, instance), sum(key[0] == node for key in self._machines))

    def _name(self, node: int, tid: int, name: str) -> list[str]:
        """Return the lines that name a thread, and its node, if they have no name yet."""
        if (node, tid) in self._named:
            return []
        first = all(key[0] != node for key in self._named)
        self._named.add((node, tid))
        pid = lines.of_node(node)
        return (lines.process(pid, f"node {node}") if first else []) + lines.thread(pid, tid, name)

    def _finish(self) -> None:
        now = time.time()
        made = []
        for phase in self._phases.close(now):
            tid = self._machine_row(phase.node, phase.instance)
            made += self._name(phase.node, tid, f"machine {phase.instance}")
            made.append(lines.phase(phase.node, tid, phase.name, phase.began, phase.ended, self._since))
        if self._left_out:
            name = f"{self._left_out} calls are left out"
            made.append(lines.instant(lines.CLIENT, 0, name, now, self._since))
            _log.warning("timeline.left_out path=%s calls=%d", self.path, self._left_out)
        self._write([*_separated(made), "\n]\n"])
        try:
            self._file.close()
        except OSError as error:
            self._fail(error)

    def _write(self, made: list[str]) -> None:
        if self._broken or not made:
            return
        text = "".join(made)
        self._size += len(text)
        try:
            self._file.write(text)
            self._file.flush()
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        # A full disk is no reason to stop the pool.
        self._broken = True
        _log.warning("timeline.broken path=%s: %s; nothing more is written to it", self.path, error)


def _separated(made: list[str]) -> list[str]:
    """Add a comma before each line; the file's first one is written by itself."""
    return [",\n" + line for line in made]
