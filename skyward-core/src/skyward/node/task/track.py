"""How far a loop in a task is, as a bar at the client."""

from __future__ import annotations

import time

from skyward.node.task.task_context import current, emit_from_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TypeVar

    T = TypeVar("T")

__all__ = ["INTERVAL", "track"]

INTERVAL = 0.1
"""Seconds between two reports."""


def track(iterable: Iterable[T], *, total: int | None = None, label: str = "") -> Iterator[T]:
    """
    Show at the client how far a task is with something that it goes through.

    Consoles show a bar for each label; handlers get a `sky.Progress` ten times a second at most, and one at the end.
    Outside a task it goes through the items and shows nothing.

    Args:
        iterable: What to go through.
        total: How many items there are; its length if left out, and not known where it has none.
        label: What is counted; the function's name if left out, with the rank where there are several.

    >>> [2 * item for item in track([1, 2, 3])]
    [2, 4, 6]
    """
    context = current()
    if context is None:
        yield from iterable
        return
    from skyward.model.events.event import Progress  # What a worker needs to start is less.

    if total is None:
        length = getattr(type(iterable), "__len__", None)
        total = length(iterable) if length is not None else None
    if not label:
        info = context.info()
        rank = f" {info.global_worker_index}" if info.broadcast and info.total_workers > 1 else ""
        label = f"{context.function or 'task'}{rank}"
    done, reported = 0, time.monotonic()
    emit_from_task(Progress(label=label, done=0, total=total))
    try:
        for item in iterable:
            yield item
            done += 1
            now = time.monotonic()
            if now - reported >= INTERVAL:
                reported = now
                emit_from_task(Progress(label=label, done=done, total=total))
    finally:
        # Also where the loop was left early, which is as far as it came.
        emit_from_task(Progress(label=label, done=done, total=total))
