"""Where calls have run that keep something in their process for the calls that follow: objects of classes."""

from __future__ import annotations

from skyward.engine.calls.call import Call
from skyward.engine.nodes.member import Member

__all__ = ["Kept"]


class Kept:
    """
    Remember the lanes in which something was kept, so that a process there that lacks it knows that it was lost.

    A lane is remembered for as long as the pool lives: a node that takes the place of a lost one has lost it, too.
    """

    def __init__(self) -> None:
        self._lanes: set[tuple[str, int, int]] = set()

    def note(self, call: Call, member: Member) -> None:
        """Record that what a call needs was kept in the lane that it ran in."""
        if call.function.needs:
            self._lanes.add((call.function.needs, member.node, call.lane))

    def holds(self, call: Call, member: Member) -> bool:
        """Return whether what a call needs was kept before in the lane that it is sent to."""
        return (call.function.needs, member.node, call.lane) in self._lanes
