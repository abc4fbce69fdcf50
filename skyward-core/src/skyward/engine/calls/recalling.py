"""Recall calls from lanes that were sent ahead and could begin sooner elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

from skyward.engine.nodes.member import Member
from skyward.engine.pool.event_loop import EngineLoop
from skyward.plan.pool.scheduling import Scheduler

RECALL_AFTER = 0.02
"""Seconds between two looks for such lanes, as long as calls wait in any."""

_LOOK = 1e-4
"""Seconds that the next look waits longer for each of these lanes, so that looking takes some percent of a core."""


class Recalling:
    """
    Look for such lanes as long as there may be any; lives in the engine's loop.

    Args:
        engine: The loop.
        scheduler: Decides which lanes are asked.
        members: The ready nodes by their index.
    """

    def __init__(self, engine: EngineLoop, scheduler: Scheduler, members: Mapping[int, Member]) -> None:
        self._engine = engine
        self._scheduler = scheduler
        self._members = members
        self._watching = False

    def watch(self) -> None:
        """Look soon, if calls were sent ahead."""
        if not self._watching and self._scheduler.ahead:
            self._watching = True
            self._engine.loop.call_later(RECALL_AFTER + _LOOK * self._scheduler.ahead, self._look)

    def _look(self) -> None:
        self._watching = False
        for key, keep in self._scheduler.recalls(self._engine.loop.time()):
            self._members[key.node].link.recall(key.lane, keep)
        self.watch()
