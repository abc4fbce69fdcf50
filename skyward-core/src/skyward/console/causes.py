"""Each cause of a failure is reported once: the nodes of a pool that fail alike say so in a few words."""

from __future__ import annotations

import re

from attrs import evolve

from skyward.console.wording import Line, tell
from skyward.model.events.event import BootstrapFailed, Error, LaunchDelayed, SkywardEvent

__all__ = ["Causes"]

AGAIN_S = 600.0
"""Seconds after which what still fails is reported again."""

_MOST = 1000
_SAME = "for the same reason"
# Nodes, instances and directories bear numbers and digests that differ where the cause does not.
_OWN = re.compile(r"\b[0-9a-f]*\d[0-9a-f]*\b")


class Causes:
    """
    Return the line for each event, without causes that have been reported.

    >>> causes = Causes()
    >>> lines = [causes.tell(Error(message=f"node-{node}: no such package")) for node in (0, 1)]
    >>> lines[0].text, lines[1]
    ('node-0: no such package', None)
    """

    def __init__(self) -> None:
        self._told: dict[tuple[str, int | None], float] = {}

    def tell(self, event: SkywardEvent) -> Line | None:
        """
        Return the line for an event, or None if it is worth none.

        Args:
            event: What happened.
        """
        if isinstance(event, BootstrapFailed):
            node = event.instance.node if event.instance is not None else None
            new = self._is_new(event.error, event.at)
            if not self._is_new(event.error, event.at, -1 if node is None else node):
                return None
            return tell(event) if new else Line(f"bootstrap failed in {event.phase}, {_SAME}", "error", node)
        if isinstance(event, Error):
            return tell(event) if self._is_new(event.message, event.at) else None
        if isinstance(event, LaunchDelayed) and event.reason and not self._is_new(event.reason, event.at):
            return tell(evolve(event, reason=_SAME))
        return tell(event)

    def _is_new(self, cause: str, at: float, node: int | None = None) -> bool:
        """Return whether a cause was not reported lately, or not of a node; from now on it was."""
        key = (_OWN.sub("#", cause), node)
        new = at - self._told.get(key, float("-inf")) >= AGAIN_S
        if new:
            while len(self._told) >= _MOST:
                del self._told[next(iter(self._told))]
            self._told[key] = at
        return new
