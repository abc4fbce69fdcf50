"""Priority of an event when the queue of handlers is full, and its size in that queue."""

from __future__ import annotations

from skyward.model.events.event import (
    BootstrapConsole,
    Error,
    Log,
    Metric,
    Metrics,
    Progress,
    SkywardEvent,
    TaskCompleted,
    TaskStarted,
)

__all__ = ["KEPT", "MEASUREMENT", "TASK", "rank", "weight"]

MEASUREMENT, TASK, KEPT = 0, 1, 2
"""What is dropped first, what next, and what never."""

_TEXT = 256


def rank(kind: type) -> int:
    """
    Return how much events of a type matter.

    Args:
        kind: The type.

    >>> rank(Metric) < rank(TaskStarted) < rank(Log)
    True
    """
    if issubclass(kind, (Metric, Metrics)):
        return MEASUREMENT
    return TASK if issubclass(kind, (TaskStarted, TaskCompleted, Progress)) else KEPT


def weight(item: object) -> int:
    """
    Return how many events something counts for: its text takes as much memory as so many others.

    Args:
        item: An event; anything else counts for nothing.

    >>> weight(Log(line="x" * 1000, node=0, at=0.0))
    4
    """
    if isinstance(item, (Log, BootstrapConsole)):
        return 1 + len(item.line) // _TEXT
    if isinstance(item, Error):
        return 1 + len(item.message) // _TEXT
    return 1 if isinstance(item, SkywardEvent) else 0
