"""How far something in a task is, reported to the client not too often."""

from __future__ import annotations

import time

from skyward.node.task.task_context import emit_from_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from skyward.node.task.task_context import TaskContext

__all__ = ["INTERVAL", "ProgressReport", "label_of"]

INTERVAL = 0.1
"""Seconds between two reports."""


def label_of(context: TaskContext) -> str:
    """Name what a call counts by its function, with the rank where there are several."""
    info = context.info()
    rank = f" {info.global_worker_index}" if info.broadcast and info.total_workers > 1 else ""
    return f"{context.function or 'task'}{rank}"


class ProgressReport:
    """
    Report one bar, beginning with nothing done.

    Args:
        label: What is counted.
        total: How many there are, if that is known.
    """

    __slots__ = ("_reported", "label", "total")

    def __init__(self, label: str, total: int | None) -> None:
        self.label = label
        self.total = total
        self._reported = time.monotonic()
        self._emit(0)

    def advance(self, done: int) -> None:
        """Report how many are done, if the last report is a while ago."""
        now = time.monotonic()
        if now - self._reported >= INTERVAL:
            self._reported = now
            self._emit(done)

    def finish(self, done: int) -> None:
        """Report how many were done in the end."""
        self._emit(done)

    def _emit(self, done: int) -> None:
        from skyward.model.events.event import Progress  # What a worker needs to start is less.

        emit_from_task(Progress(label=self.label, done=done, total=self.total))
