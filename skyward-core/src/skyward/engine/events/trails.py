"""The trails of calls: when each was where, for what follows the pool's calls; nothing where nothing does."""

from __future__ import annotations

import heapq
import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from skyward.link.messages import task_of
from skyward.model.events.follower import CallTimes, Follower
from skyward.plan.pool.call_times import ran_between

if TYPE_CHECKING:
    from skyward.engine.calls.answer import Answer
    from skyward.engine.calls.call import Call

_log = logging.getLogger(__name__)

_NOTHING: Mapping[str, str] = {}


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


class Trails:
    """
    Tell the followers of one pool what becomes of its calls.

    Args:
        clock: Returns the time, in seconds since 1970.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.followers: tuple[tuple[str, Follower], ...] = ()
        self.ahead: dict[int, float] = {}
        self._since_1970 = clock() - time.monotonic()
        # Of each worker process: the slots that are free, and when the last call in each ended.
        self._free: dict[tuple[int, int], list[int]] = {}
        self._ends: dict[tuple[int, int], list[float]] = {}
        self._failed: set[str] = set()

    def add(self, name: str, follower: Follower) -> None:
        """Have calls followed from now on, by a plugin of a name."""
        self.followers = (*self.followers, (name, follower))

    def remove(self, follower: Follower) -> None:
        """Have calls followed no more."""
        self.followers = tuple(each for each in self.followers if each[1] is not follower)

    def begin(self, function: str) -> Trail | None:
        """Begin the trail of a call that is about to be made in this thread; None where nothing follows."""
        if not self.followers:
            return None
        now, carried = time.monotonic(), _NOTHING
        for name, follower in self.followers:
            try:
                text = follower.submitted(function)
            except Exception:
                self._report(name, "submitted")
                continue
            if text:
                carried = {**carried, name: text}
        return Trail(now, carried)

    def started(self, call: Call, node: int) -> None:
        """Record that it is a call's turn on a node."""
        trail = call.trail
        assert trail is not None
        row = trail.row = (node, call.lane)
        trail.take(self._free.setdefault(row, []), self._ends.setdefault(row, []))
        trail.placed, trail.node = time.monotonic(), node
        for name, follower in self.followers:
            try:
                follower.started(call.id, node, trail.carried.get(name, ""))
            except Exception:
                self._report(name, "started")

    def ended(self, call: Call, answer: Answer, *, again: bool, delay: float) -> None:
        """Record that an attempt ended, and begin the trail of the next one, if there is one."""
        trail = call.trail
        assert trail is not None
        now, offset = time.monotonic(), self._since_1970
        node = answer.node if answer.node is not None else trail.node
        sent = None if trail.sent is None else trail.sent + offset
        placed = None if trail.placed is None else trail.placed + offset
        began, ended = ran_between(
            placed=placed,
            sent=sent,
            answered=now + offset,
            began=answer.began - self.ahead.get(node, 0.0) if answer.began and node is not None else None,
            seconds=answer.seconds,
        )
        slot = trail.slot
        if slot >= 0 and began is not None and ended is not None:
            # Calls of one slot come one after the other, however little the clocks differ.
            ends = self._ends[trail.row]
            began = max(began, min(ends[slot], ended))
            ends[slot] = ended
        trail.vacate()
        failure = answer.headline() if answer.failed else None
        stopped = answer.failed and answer.stopped
        about = (task_of(call.id), call.id, call.function.name)
        times = (
            *(trail.submitted + offset, trail.queued + offset, sent, placed, began, ended, now + offset),
            *(failure, stopped, again),
        )
        for name, follower in self.followers:
            carried = trail.carried.get(name, "")
            try:
                follower.ended(
                    CallTimes._make((*about, carried, call.broadcast, node, trail.row[1], max(slot, 0), *times))
                )
            except Exception:
                self._report(name, "ended")
        if again:
            call.trail = Trail(now + delay, trail.carried)

    def _report(self, name: str, method: str) -> None:
        if name not in self._failed:
            self._failed.add(name)
            _log.exception("follower.failed plugin=%s method=%s: said once", name, method)
