"""The lines of a live console: each cause once, and failed tasks up to a number."""

from __future__ import annotations

from skyward.console.causes import Causes
from skyward.console.wording import Line, count
from skyward.model.events.event import SkywardEvent, TaskCompleted

__all__ = ["Notes"]

# Lines about failed tasks, in all; the console itself counts the rest.
_FAILURES = 10


class Notes:
    """
    Return what a live console writes about an event beside what it draws.

    >>> from skyward.model.events.event import Error, NodeReady
    >>> notes = Notes()
    >>> notes.line(Error(message="no such package")).text, notes.line(NodeReady(node=0))
    ('no such package', None)
    """

    def __init__(self) -> None:
        self._causes = Causes()
        self._failures = 0

    def line(self, event: SkywardEvent) -> Line | None:
        """
        Return the line for an event, or None if it is worth none.

        Args:
            event: What happened.
        """
        if type(event) is TaskCompleted and (event.success or event.stopped or self._enough()):
            return None
        line = self._causes.tell(event)
        return None if line is None or line.passing else line

    def rest(self) -> Line | None:
        """Return the line that counts the failures without one, or None if there are none."""
        more = self._failures - _FAILURES
        return Line(f"{count(more)} more failed or are tried again", "error") if more > 0 else None

    def _enough(self) -> bool:
        self._failures += 1
        return self._failures > _FAILURES
