"""How far a loop in a task is, as a bar at the client."""

from __future__ import annotations

from skyward.node.task.progress_report import INTERVAL, ProgressReport, label_of
from skyward.node.task.task_context import current

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TypeVar

    T = TypeVar("T")

__all__ = ["INTERVAL", "track"]


def track(iterable: Iterable[T], *, total: int | None = None, label: str = "") -> Iterator[T]:
    """
    Yield from something in a task, and show at the client how far that is.

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
    if total is None:
        length = getattr(type(iterable), "__len__", None)
        total = length(iterable) if length is not None else None
    report = ProgressReport(label or label_of(context), total)
    done = 0
    try:
        for item in iterable:
            yield item
            done += 1
            report.advance(done)
    finally:
        # Also where the loop was left early, which is as far as it came.
        report.finish(done)
