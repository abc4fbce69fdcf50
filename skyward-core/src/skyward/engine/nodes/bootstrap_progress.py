"""What a bootstrap writes while it makes a machine ready, as events and errors."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from skyward.errors import ProvisionError
from skyward.model.events import event as events
from skyward.plain import redacted
from skyward.plan.bootstrap.environment_commands import hint

LINE = 16 << 10
"""Bytes after which a line is cut in two; a machine may print without ever ending one."""

_LINES = 15


class BootstrapReader:
    """
    Turn what a bootstrap writes into events, and its failure into an error.

    Args:
        token: Begins its own lines.
        tell: Takes the events.
        where: The machine, in words.
    """

    def __init__(self, token: str, tell: Callable[[events.SkywardEvent], None], where: str) -> None:
        self._mark = f"@@{token} "
        self._tell = tell
        self._where = where
        self._rest = b""
        self._phase = "start"
        self._command = ""
        self._began = time.monotonic()
        self._lines: deque[str] = deque(maxlen=_LINES)

    def take(self, data: bytes) -> str:
        """
        Read more of it; gives the interpreter once it is done.

        Raises:
            ProvisionError: If it failed.
        """
        *lines, self._rest = (self._rest + data).split(b"\n")
        while len(self._rest) > LINE:
            lines.append(self._rest[:LINE])
            self._rest = self._rest[LINE:]
        for line in lines:
            python = self._line(line.decode("utf-8", "replace").rstrip("\r"))
            if python:
                return python
        return ""

    def last(self) -> str:
        """Return in which phase it is, and what it wrote last."""
        return f" It was in phase {self._phase!r}{self._tail()}"

    def _line(self, line: str) -> str:
        if not line.startswith(self._mark):
            line = redacted(line)
            self._lines.append(line)
            self._tell(events.BootstrapConsole(line=line))
            return ""
        what, _, rest = line.removeprefix(self._mark).partition(" ")
        if what == "done":
            return rest
        if what == "command":
            self._command = rest
            self._tell(events.BootstrapCommand(command=rest))
        elif what == "phase":
            self._enter(*rest.split())
        elif what == "failed":
            raise self._failed(*rest.split())
        elif what == "unstarted":
            last = [line for line in self._lines if line][-3:]
            raise ProvisionError(f"{self._where}: the bootstrap could not start: {' '.join(last)}", hint=hint(last))
        return ""

    def _enter(self, event: str, phase: str, *_: str) -> None:
        now = time.monotonic()
        if event == "started":
            self._phase, self._began, self._command = phase, now, ""
            self._lines.clear()
            self._tell(events.BootstrapPhase(phase=phase, event="started"))
        else:
            self._tell(events.BootstrapPhase(phase=phase, event="completed", elapsed=now - self._began))

    def _failed(self, phase: str, code: str, *_: str) -> ProvisionError:
        lines = list(self._lines)
        command = f": {self._command}" if self._command else "."
        self._tell(events.BootstrapPhase(phase=phase, event="failed", elapsed=time.monotonic() - self._began))
        return ProvisionError(
            f"{self._where}: phase {phase!r} of the bootstrap failed with code {code}{command}{self._tail()}",
            hint=hint(lines),
        )

    def _tail(self) -> str:
        return "".join(f"\n  | {line}" for line in self._lines)
