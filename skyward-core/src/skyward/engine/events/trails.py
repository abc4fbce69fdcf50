"""The trails of calls: when each was where, for what follows the pool's calls; nothing where nothing does."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from skyward.engine.calls.trail import Trail
from skyward.link.messages import task_of
from skyward.model.events.follower import CallTimes, Follower
from skyward.plan.pool.call_times import ran_between

if TYPE_CHECKING:
    from skyward.engine.calls.answer import Answer
    from skyward.engine.calls.call import Call

_log = logging.getLogger(__name__)

_NOTHING: Mapping[str, str] = {}


class Trails:
    """
    Tell the followers of one pool what becomes of its calls.

    Args:
        clock: Returns the time, in seconds since 1970.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.followers: tuple[tuple[str, Follower], ...] = ()
        self._starters: tuple[tuple[str, Follower], ...] = ()
        self.ahead: dict[int, float] = {}
        self._since_1970 = clock() - time.monotonic()
        # Of each worker process: the slots that are free, and when the last call in each ended.
        self._free: dict[tuple[int, int], list[int]] = {}
        self._ends: dict[tuple[int, int], list[float]] = {}
        self._failed: set[str] = set()

    def add(self, name: str, follower: Follower) -> None:
        """Start following calls, for a plugin of a name."""
        self.followers = (*self.followers, (name, follower))
        self._choose()

    def remove(self, follower: Follower) -> None:
        """Stop following calls."""
        self.followers = tuple(each for each in self.followers if each[1] is not follower)
        self._choose()

    def _choose(self) -> None:
        """Choose the followers that have a use for the start of a call: most have none."""
        self._starters = tuple(each for each in self.followers if type(each[1]).started is not Follower.started)

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
        if row not in self._free:
            self._free[row], self._ends[row] = [], []
        trail.take(self._free[row], self._ends[row])
        trail.placed, trail.node = time.monotonic(), node
        for name, follower in self._starters:
            try:
                follower.started(call.id, node, trail.carried.get(name, ""))
            except Exception:
                self._report(name, "started")

    def ended(self, call: Call, answer: Answer, *, again: bool, delay: float) -> None:
        """Record that an attempt ended, and begin the trail of the next one, if there is one."""
        trail = call.trail
        assert trail is not None
        trail.vacate()
        offset = self._since_1970
        now = time.monotonic() + offset
        node = trail.node if answer.node is None else answer.node
        sent = None if trail.sent is None else trail.sent + offset
        placed = None if trail.placed is None else trail.placed + offset
        said = answer.began and answer.began - self.ahead.get(node, 0.0)  # type: ignore[arg-type]  # None is no node
        began, ended = ran_between(placed, sent, now, said or None, answer.seconds)
        if trail.slot >= 0 and ended is not None and began is not None:
            # Calls of one slot come one after the other, however little the clocks differ.
            ends = self._ends[trail.row]
            before = ends[trail.slot]
            if began < before <= ended:
                began = before
            ends[trail.slot] = ended
        failure, stopped = (answer.headline(), answer.stopped) if answer.failed else (None, False)
        number, name, carried = call.id, call.function.name, trail.carried
        where = (call.broadcast, node, trail.row[1], max(trail.slot, 0))
        when = (trail.submitted + offset, trail.queued + offset, sent, placed, began, ended, now)
        for plugin, follower in self.followers:
            text = carried.get(plugin, "") if carried else ""
            attempt = (task_of(number), number, name, text, *where, *when, failure, stopped, again)
            try:
                follower.ended(CallTimes._make(attempt))
            except Exception:
                self._report(plugin, "ended")
        if again:
            call.trail = Trail(now - offset + delay, trail.carried)

    def _report(self, name: str, method: str) -> None:
        if name not in self._failed:
            self._failed.add(name)
            _log.exception("follower.failed plugin=%s method=%s: said once", name, method)
