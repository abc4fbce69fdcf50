"""
How much may be sent ahead to a worker that is busy, and what it is to return.

A worker that ends a call and has no other is idle until its answer has travelled to the client and the next call back:
for one round trip. It is never idle if calls that take as long as a round trip wait there already.
What waits there cannot begin elsewhere, so it is no more than that, and it is returned where it would wait longer
than it takes to have it run elsewhere.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from itertools import islice
from math import ceil
from typing import Final, NamedTuple

from skyward.plan.pool.durations import Durations

AHEAD_SECONDS: Final = 0.005
"""Seconds of expected work that may be sent ahead to a slot, however near it is."""

MARGIN: Final = 2.0
"""Round trips of expected work that may be sent ahead to a slot: one, and a quarter because calls differ."""

LEAST_AWAY: Final = 50e-6
"""Seconds that a call is away at least, apart from running: no chain of three processes is quicker."""

IDLE: Final = 0.05
"""The share of its time that a slot may be idle: where calls take that much longer than the way, none is sent ahead."""

IDLE_SHARED: Final = 0.25
"""The same while several callers wait: what is sent ahead for one of them is before the next call of each other."""

SHARED_FOR: Final = 1.0
"""Seconds for which callers count as several after the last time that more than one of them waited."""

CALL_COST: Final = 75e-6
"""Seconds that a call is expected to take at least: what the client and its node need to pass it on."""

AHEAD_BYTES: Final = 32 << 20
"""Bytes of arguments that may wait at a slot, beside one call of any size."""

AHEAD_CALLS: Final = 16_384
"""Calls that may wait at a slot, whatever its node reports of their durations and of its distance."""

LARGE: Final = 64 << 10
"""Bytes of arguments from which on each call is looked at by itself."""

PATIENCE: Final = 4.0
"""How many times as long as expected the calls of a lane may take before those that wait there are recalled."""

RECALL_WITHIN: Final = 2.0
"""Seconds, and as many round trips, after which a lane that returned nothing is asked once more."""

MEASURED_FOR: Final = 10.0
"""Seconds for which the least measured distance of a node counts, as in BBR's window of the least round trip."""

_SAMPLES: Final = 8
"""The latest measurements, which count however old they are."""


class LaneKey(NamedTuple):
    """The address of a lane: its node's index and its number there."""

    node: int
    lane: int


class Assignment(NamedTuple):
    """A call that is to be sent to a lane; it begins at once, or waits there for a slot."""

    call: int
    key: LaneKey
    begins: bool


class Recall(NamedTuple):
    """A lane that is to return calls which have not begun, and how many of them it may keep."""

    key: LaneKey
    keep: int


class Entry(NamedTuple):
    """
    What is known of a call.

    Args:
        function: Names what it runs; empty for one that is never sent ahead.
        size: Bytes of its arguments.
    """

    function: bytes
    size: int


class Node:
    """
    Hold a node's lanes, and how far away it is.

    Args:
        index: The node's.
        lanes: For each lane its number, its rank on the node, and how many calls it runs at once.
    """

    __slots__ = ("_away", "_measurements", "alive", "away", "cover", "index", "lanes", "open", "pinned_last")

    def __init__(self, index: int, lanes: Iterable[tuple[int, int, int]]) -> None:
        self.index = index
        self.lanes = [Lane(self, LaneKey(index, number), rank, capacity) for number, rank, capacity in lanes]
        # Those with a free slot, in the order in which they are used.
        self.open: OrderedDict[LaneKey, Lane] = OrderedDict((lane.key, lane) for lane in self.lanes)
        # Whether it takes calls, and whether the latest one was for it alone.
        self.alive = True
        self.pinned_last = False
        self.away = LEAST_AWAY
        # Seconds of expected work that may wait at each of its slots.
        self.cover = MARGIN * LEAST_AWAY + AHEAD_SECONDS
        # Which measurement it was, when, and what: each less than those after it.
        self._away: deque[tuple[int, float, float]] = deque()
        self._measurements = 0

    def measured(self, away: float, now: float) -> None:
        """
        Record how long a call was away that did not have to wait.

        The least of the latest ones counts: any of the others may have waited for a processor, and so may eight in
        turn, where a program submits thousands of calls one by one.

        Args:
            away: Seconds from sending it to its answer, apart from those that it ran.
            now: Seconds on the clock that calls were sent by.
        """
        self._measurements += 1
        while self._away and self._away[-1][2] >= away:
            self._away.pop()
        self._away.append((self._measurements, now, away))
        while self._away[0][0] <= self._measurements - _SAMPLES and self._away[0][1] < now - MEASURED_FOR:
            self._away.popleft()
        self.away = max(LEAST_AWAY, self._away[0][2])
        self.cover = MARGIN * self.away + AHEAD_SECONDS

    def with_room(self, entry: Entry, durations: Durations, buffer: int, idle: float) -> Lane | None:
        """Return a lane that may take one more call like one, although it is busy; as `Lane.room` says."""
        return next((lane for lane in self.lanes if lane.room(entry, durations, buffer, idle) > 0), None)


class Lane:
    """
    Hold the calls of one worker process: those that run, and behind them those that were sent ahead.

    Args:
        node: Its node.
        key: Its address.
        rank: Its rank on the node.
        capacity: How many calls it runs at once.
    """

    __slots__ = (
        "begun_at", "calls", "capacity", "key", "listed", "node", "rank", "recalled_at", "refill_at", "since",
        "spare", "spare_for", "spare_idle", "stalled", "waiting", "waiting_bytes",
    )  # fmt: skip

    def __init__(self, node: Node, key: LaneKey, rank: int, capacity: int) -> None:
        self.node = node
        self.key = key
        self.rank = rank
        self.capacity = capacity
        self.calls: dict[int, Entry] = {}
        # When calls were sent that were to begin at once.
        self.begun_at: dict[int, float] = {}
        # How many calls of each function wait, and the bytes of their arguments.
        self.waiting: dict[bytes, int] = {}
        self.waiting_bytes = 0
        # When a call began or ended here the last time.
        self.since = 0.0
        self.recalled_at: float | None = None
        self.stalled = False
        # Whether it is among the lanes that are looked at when a call may be sent ahead.
        self.listed = False
        # How many more calls of which function may be sent ahead, as of when that was asked last, and with which limit.
        self.spare = 0
        self.spare_for = b""
        self.spare_idle = IDLE
        # How many calls it has when it is looked at again.
        self.refill_at = 0

    @property
    def ahead(self) -> int:
        """Count the calls that wait here for a slot."""
        return max(0, len(self.calls) - self.capacity)

    def running(self) -> Iterator[Entry]:
        """Iterate over the calls that run."""
        return islice(self.calls.values(), self.capacity)

    def wait(self, call: int, entry: Entry) -> None:
        """Take a call that waits for a slot."""
        self.calls[call] = entry
        function, size = entry
        self.waiting[function] = self.waiting.get(function, 0) + 1
        self.waiting_bytes += size

    def begin(self, entry: Entry) -> None:
        """Record that a call waits no longer: it begins, or is gone."""
        function, size = entry
        left = self.waiting[function] - 1
        if left:
            self.waiting[function] = left
        else:
            del self.waiting[function]
        self.waiting_bytes -= size

    def expected_wait(self, durations: Durations) -> float:
        """Return for how many seconds of a slot the calls that wait are expected to run."""
        work = 0.0
        for function, count in self.waiting.items():
            work += count * max(CALL_COST, durations.of(function))
        return work / self.capacity

    def room(self, entry: Entry, durations: Durations, buffer: int, idle: float = IDLE) -> int:
        """
        Return how many more calls like one may be sent ahead.

        Args:
            entry: The call.
            durations: What calls are expected to take.
            buffer: How many calls for each slot may be, whatever they take.
            idle: The share of its time that a slot may be idle.
        """
        capacity, node = self.capacity, self.node
        unasked = buffer * capacity - (len(self.calls) - capacity)
        if self.stalled or (self.waiting and self.waiting_bytes >= AHEAD_BYTES):
            return unasked
        if durations.of(next(iter(self.calls.values())).function) * idle > node.away:
            return unasked
        left = (node.cover - self.expected_wait(durations)) * capacity
        if left <= 0:
            return unasked
        most = AHEAD_CALLS * capacity - (len(self.calls) - capacity)
        count = 1 if entry.size >= LARGE else ceil(left / max(CALL_COST, durations.of(entry.function)))
        return max(unasked, min(count, most))

    def has_spare(self, entry: Entry, durations: Durations, buffer: int, idle: float) -> bool:
        """
        Return whether one more call may be sent ahead, as of when that was asked last for its function.

        Args:
            entry: The call.
            durations: What calls are expected to take.
            buffer: How many calls for each slot may be, whatever they take.
            idle: The share of its time that a slot may be idle.
        """
        if self.spare_for != entry.function or self.spare_idle != idle:
            busy = len(self.calls) >= self.capacity
            self.spare = self.room(entry, durations, buffer, idle) if busy else 0
            # A large one may be the last for which there is room.
            self.spare_for = entry.function if entry.size < LARGE else b""
            self.spare_idle = idle
        return self.spare > 0

    def to_keep(self, durations: Durations, now: float, *, elsewhere: bool) -> int | None:
        """
        Return how many of the calls that wait here are to stay; None if all of them are.

        A call that has run longer than it was expected to is expected to run for as long as it is over.

        Args:
            durations: What calls are expected to take.
            now: Seconds on the clock that calls were sent by.
            elsewhere: Whether a slot is free that has nothing else to do.
        """
        ahead, away = self.ahead, self.node.away
        if not ahead or (self.recalled_at is not None and now - self.recalled_at < RECALL_WITHIN * (1 + away)):
            return None
        expected = max(durations.of(entry.function) for entry in self.running())
        remaining = abs(expected - (now - self.since))
        each = self.expected_wait(durations) / ahead
        if elsewhere:
            # What begins here before it could begin there stays: it is asked for, comes back and is sent again.
            limit = 2 * away
            if remaining + ahead * each <= limit:
                return None
        else:
            limit = PATIENCE * (self.node.cover + expected)
            if remaining + ahead * each <= limit:
                return None
            limit = MARGIN * away
        kept = int(max(0.0, limit - remaining) / each)
        return kept if kept < ahead else None
