"""Which cell of a notebook each task was sent from."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

__all__ = ["CallCells"]

LIMIT = 100_000
"""Tasks whose cells are known; what an earlier one prints is shown under the cell that runs."""


class CallCells:
    """
    Hold the cells of tasks.

    Args:
        current: Names the cell that runs now in the calling thread; empty if none.
        flush: Sends the lines that are held back; called before a result is given.

    >>> cells = CallCells(lambda: "cell 2")
    >>> cells.sent("7", "cell 1")
    >>> cells.of("7"), cells.of("8")
    ('cell 1', 'cell 2')
    """

    def __init__(self, current: Callable[[], str], flush: Callable[[], object] = lambda: None) -> None:
        self.current = current
        self.flush = flush
        self._cells: OrderedDict[str, str] = OrderedDict()
        self._interrupts: tuple[Callable[[str], None], ...] = ()

    def sent(self, task_id: str, cell: str) -> None:
        """Record the cell of a task."""
        self._cells[task_id] = cell
        if len(self._cells) > LIMIT:
            self._cells.popitem(last=False)

    def of(self, task_id: str | None) -> str:
        """Name the cell that a task was sent from; the one that runs now if that is not known."""
        return (self._cells.get(task_id, "") if task_id else "") or self.current()

    def on_interrupt(self, cancel: Callable[[str], None]) -> None:
        """Call something with each cell that is interrupted."""
        self._interrupts = (*self._interrupts, cancel)

    def interrupted(self, cell: str) -> None:
        """Cancel what a cell has sent."""
        for cancel in self._interrupts:
            cancel(cell)
