"""The trail of one call: when it was where."""

from __future__ import annotations

import heapq
import time
from collections.abc import Mapping


class Trail:
    """Hold when a call was where, by the monotonic clock; a call of a pool that is not followed has none."""

    __slots__ = ("_held", "carried", "node", "placed", "queued", "row", "sent", "slot", "submitted")

    def __init__(self, submitted: float, carried: Mapping[str, str]) -> None:
        self.submitted = self.queued = submitted
        self.carried = carried
        self.sent: float | None = None
        self.placed: float | None = None
        self.node: int | None = None
        self.row: tuple[int, int] = (0, 0)
        self.slot = -1
        self._held: list[int] | None = None

    def take(self, free: list[int], ends: list[float]) -> None:
        """Take a slot of a worker process, the lowest that is free."""
        self.vacate()
        if free:
            self.slot = heapq.heappop(free)
        else:
            self.slot = len(ends)
            ends.append(0.0)
        self._held = free

    def vacate(self) -> None:
        """Leave the slot, before the next call takes it."""
        if self._held is not None:
            heapq.heappush(self._held, self.slot)
            self._held = None

    def copy(self) -> Trail:
        """Return the trail of another call that is queued now with this one, as for the ranks of a broadcast."""
        trail = Trail(self.submitted, self.carried)
        trail.queued = time.monotonic()
        return trail
