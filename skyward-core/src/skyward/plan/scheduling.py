"""
Which call goes to which lane: a state machine without clock or I/O.

Calls wait in one queue and go round robin to free slots.
A short call may also be sent ahead to a busy lane, so that short calls do not wait for a round trip each; what
was sent ahead and has not begun can be given back when a slot is free elsewhere.
A group (a broadcast) is placed as a whole or not at all, and nothing behind it overtakes it: two groups, or a
group and queued calls, cannot wait for each other.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import NamedTuple

AHEAD_SECONDS = 0.005
"""How much expected work may be sent ahead to a lane, in seconds."""

AHEAD_CALLS = 64
"""How many calls may be sent ahead to a lane for their shortness."""

SHORT = 0.001
"""A call expected to run no longer than this, in seconds, may be sent ahead."""

_SMOOTHING = 0.2


class LaneKey(NamedTuple):
    """The address of a lane: its node's index and its number there."""

    node: int
    lane: int


class Assignment(NamedTuple):
    """A call that is to be sent to a lane; it begins at once, or waits there for a slot."""

    call: int
    key: LaneKey
    begins: bool


class _Lane:
    __slots__ = ("ahead_seconds", "alive", "calls", "capacity", "key", "rank", "roomy")

    def __init__(self, key: LaneKey, rank: int, capacity: int) -> None:
        self.key = key
        self.rank = rank
        self.capacity = capacity
        self.calls: dict[int, bytes] = {}
        self.ahead_seconds = 0.0
        self.alive = True
        self.roomy = False


class _Group(NamedTuple):
    members: tuple[tuple[int, int, int], ...]


class Scheduler:
    """
    Decide where calls go.

    Args:
        buffer: How many calls may always be sent ahead to a busy slot.

    >>> scheduler = Scheduler()
    >>> scheduler.add_node(0, [(0, 0, 1)])
    >>> scheduler.submit(7, b"f")
    >>> scheduler.assign()
    [Assignment(call=7, key=LaneKey(node=0, lane=0), begins=True)]
    >>> scheduler.finished(7, 0.1)
    """

    def __init__(self, buffer: int = 0) -> None:
        self._buffer = buffer
        self._lanes: dict[LaneKey, _Lane] = {}
        self._nodes: dict[int, list[_Lane]] = {}
        self._free: deque[_Lane] = deque()
        self._roomy: deque[_Lane] = deque()
        # By call, a group by its first one: a withdrawn call is found at once, however long the queue is.
        self._queue: OrderedDict[int, bytes | _Group] = OrderedDict()
        self._pinned: dict[int, OrderedDict[int, bytes]] = {}
        self._grouped: dict[int, int] = {}
        self._pinned_to: dict[int, int] = {}
        self._where: dict[int, _Lane] = {}
        self._expected: dict[bytes, float] = {}

    @property
    def queued(self) -> int:
        """Count what waits for a slot; a group counts once."""
        return len(self._queue) + len(self._pinned_to)

    @property
    def running(self) -> int:
        """Count the calls that were sent to lanes and have not ended."""
        return len(self._where)

    @property
    def slots(self) -> int:
        """Count the slots of all lanes."""
        return sum(lane.capacity for lane in self._lanes.values())

    def busy(self, node: int) -> int:
        """Count the calls on a node."""
        return sum(len(lane.calls) for lane in self._nodes.get(node, ()))

    def add_node(self, node: int, lanes: Iterable[tuple[int, int, int]]) -> None:
        """
        Open a node for calls.

        Args:
            node: Its index.
            lanes: For each lane its number, its rank on the node, and how many calls it runs at once.
        """
        new = [_Lane(LaneKey(node, number), rank, capacity) for number, rank, capacity in lanes]
        self._nodes[node] = new
        for lane in new:
            self._lanes[lane.key] = lane
            self._free.extend([lane] * lane.capacity)
        self._free = deque(_spread(self._free))

    def remove_node(self, node: int) -> list[int]:
        """Close a node; tell which calls were on it, oldest first."""
        lost: list[int] = []
        for lane in self._nodes.pop(node, ()):
            lane.alive = False
            # One that was set aside is there no longer, and its key may be its successor's.
            if self._lanes.get(lane.key) is lane:
                del self._lanes[lane.key]
            lost += lane.calls
        for call in lost:
            del self._where[call]
        self._free = deque(lane for lane in self._free if lane.alive)
        self._roomy = deque(lane for lane in self._roomy if lane.alive)
        return sorted(lost)

    def set_aside(self, node: int, seat: int) -> list[int]:
        """
        Begin nothing new on a node, whose number becomes free; what is on it stays.

        Args:
            node: Its index.
            seat: What it is called from now on.

        Returns:
            The calls on it, oldest first.
        """
        lanes = self._nodes.pop(node, [])
        self._nodes[seat] = lanes
        for lane in lanes:
            lane.alive = False
            del self._lanes[lane.key]
        self._free = deque(lane for lane in self._free if lane.alive)
        self._roomy = deque(lane for lane in self._roomy if lane.alive)
        return sorted(call for lane in lanes for call in lane.calls)

    def submit(self, call: int, function: bytes, *, node: int | None = None, first: bool = False) -> None:
        """
        Queue a call.

        Args:
            call: Its id.
            function: Names what it runs, to know how long that takes; a call without it is never sent ahead.
            node: The only node it may run on.
            first: Whether it goes before what waits already; for calls that come back.
        """
        if node is None:
            self._queue[call] = function
            if first:
                self._queue.move_to_end(call, last=False)
            return
        pinned = self._pinned.setdefault(node, OrderedDict())
        pinned[call] = function
        self._pinned_to[call] = node
        if first:
            pinned.move_to_end(call, last=False)

    def submit_group(self, members: Sequence[tuple[int, int, int]]) -> None:
        """
        Queue calls that are placed together.

        Args:
            members: For each its id, its node and its rank there.
        """
        key = members[0][0]
        self._queue[key] = _Group(tuple(members))
        for call, _, _ in members:
            self._grouped[call] = key

    def groups_for(self, node: int) -> set[int]:
        """Tell which queued calls are members of a group that needs a node."""
        entries = [self._queue[key] for key in set(self._grouped.values())]
        groups = [entry.members for entry in entries if isinstance(entry, _Group)]
        return {call for members in groups for call, its_node, _ in members if its_node == node}

    def pinned_to(self, node: int) -> list[int]:
        """List the queued calls that only a node may run, in the order in which they wait."""
        return list(self._pinned.get(node, ()))

    def group_of(self, call: int) -> tuple[int, ...]:
        """Tell which queued calls are placed together with one; none for a call that is in no group."""
        key = self._grouped.get(call)
        entry = None if key is None else self._queue[key]
        return tuple(member for member, _, _ in entry.members) if isinstance(entry, _Group) else ()

    def withdraw(self, *calls: int) -> set[int]:
        """Take calls out of the queue, each with its whole group; tell which were there."""
        found: set[int] = set()
        for call in calls:
            if group := self.group_of(call):
                del self._queue[self._grouped[call]]
                for member in group:
                    del self._grouped[member]
                found.update(group)
            elif self._queue.pop(call, None) is not None:
                found.add(call)
            elif (node := self._pinned_to.pop(call, None)) is not None:
                del self._pinned[node][call]
                found.add(call)
        return found

    def give_up(self, calls: Iterable[int], unwanted: Callable[[int], bool]) -> list[int]:
        """
        Remove cancelled calls from the queue, those of a group only together.

        Args:
            calls: Those that may be out of use now.
            unwanted: Tells whether a call is.

        Returns:
            Those that were taken out, oldest first.
        """
        groups = {self.group_of(call) or (call,) for call in calls}
        return sorted(self.withdraw(*(group[0] for group in groups if all(map(unwanted, group)))))

    def clear(self) -> None:
        """Empty the queue; what was sent to lanes stays."""
        self._queue, self._pinned = OrderedDict(), {}
        self._grouped, self._pinned_to = {}, {}

    def assign(self) -> list[Assignment]:
        """Say what is to be sent where now."""
        made: list[Assignment] = []
        queue = self._queue
        while queue:
            call, head = next(iter(queue.items()))
            if isinstance(head, _Group):
                if not self._place_group(head, made):
                    return made
                self.withdraw(call)
            elif self._free:
                del queue[call]
                made.append(self._put(call, head, self._free.popleft(), begins=True))
            elif head and (lane := self._lane_ahead(head)) is not None:
                del queue[call]
                made.append(self._put(call, head, lane, begins=False))
            else:
                break
        if self._pinned:
            self._assign_pinned(made)
        return made

    def finished(self, call: int, seconds: float | None = None) -> int | None:
        """
        Note that a call ended.

        Args:
            call: Its id.
            seconds: How long it ran, if it ran to its end.

        Returns:
            The call that begins in its place, if one was sent ahead.
        """
        lane = self._where.pop(call, None)
        if lane is None:
            return None
        begun = call in islice(lane.calls, lane.capacity)
        function = lane.calls.pop(call)
        if function and seconds is not None:
            self._learn(function, seconds)
        if not lane.alive:
            # Nothing is sent to it any more, but what was sent ahead and not yet given back may begin.
            begins = begun and len(lane.calls) >= lane.capacity
            return next(islice(lane.calls, lane.capacity - 1, None)) if begins else None
        if not lane.roomy:
            lane.roomy = True
            self._roomy.append(lane)
        if len(lane.calls) <= lane.capacity:
            lane.ahead_seconds = 0.0
        elif not begun:
            lane.ahead_seconds = max(0.0, lane.ahead_seconds - self._expected.get(function, 0.0))
        if not begun:
            return None
        if len(lane.calls) < lane.capacity:
            self._free.append(lane)
            return None
        follower = next(islice(lane.calls, lane.capacity - 1, None))
        lane.ahead_seconds = max(0.0, lane.ahead_seconds - self._expected.get(lane.calls[follower], 0.0))
        return follower

    def stuck(self) -> list[LaneKey]:
        """List the lanes that hold calls which could begin elsewhere now."""
        if not self._free or self._queue:
            return []
        return [key for key, lane in self._lanes.items() if len(lane.calls) > lane.capacity]

    @property
    def ahead(self) -> bool:
        """Tell whether any call waits in a lane for a slot."""
        return len(self._where) > 0 and any(len(lane.calls) > lane.capacity for lane in self._lanes.values())

    def _learn(self, function: bytes, seconds: float) -> None:
        expected = self._expected.get(function)
        if expected is None or seconds > 4 * expected:
            self._expected[function] = seconds
            while len(self._expected) > 4096:
                del self._expected[next(iter(self._expected))]
        else:
            self._expected[function] = expected + _SMOOTHING * (seconds - expected)

    def _put(self, call: int, function: bytes, lane: _Lane, *, begins: bool) -> Assignment:
        lane.calls[call] = function
        self._where[call] = lane
        return Assignment(call, lane.key, begins)

    def _lane_ahead(self, function: bytes) -> _Lane | None:
        """Find a busy lane that may take one more call of this function."""
        expected = self._expected.get(function, SHORT * 2)
        while self._roomy:
            lane = self._roomy[0]
            waiting = len(lane.calls) - lane.capacity
            if waiting < self._buffer * lane.capacity:
                self._roomy.rotate(-1)
                return lane
            if expected <= SHORT and waiting < AHEAD_CALLS and lane.ahead_seconds + expected <= AHEAD_SECONDS:
                lane.ahead_seconds += expected
                self._roomy.rotate(-1)
                return lane
            lane.roomy = False
            self._roomy.popleft()
        return None

    def _place_group(self, group: _Group, made: list[Assignment]) -> bool:
        places = []
        for call, node, rank in group.members:
            lane = next(
                (lane for lane in self._nodes.get(node, ()) if lane.rank == rank and len(lane.calls) < lane.capacity),
                None,
            )
            if lane is None:
                return False
            places.append((call, lane))
        for call, lane in places:
            self._free.remove(lane)
            made.append(self._put(call, b"", lane, begins=True))
        return True

    def _assign_pinned(self, made: list[Assignment]) -> None:
        if self._queue and isinstance(next(iter(self._queue.values())), _Group):
            return
        for node, queue in list(self._pinned.items()):
            for lane in self._nodes.get(node, ()):
                while queue and len(lane.calls) < lane.capacity:
                    self._free.remove(lane)
                    call, function = queue.popitem(last=False)
                    del self._pinned_to[call]
                    made.append(self._put(call, function, lane, begins=True))
            if not queue:
                del self._pinned[node]


def _spread(lanes: Iterable[_Lane]) -> list[_Lane]:
    """Order free slots so that neighbours are on different nodes, then on different lanes."""
    seen: dict[LaneKey, int] = {}
    keyed = []
    for lane in lanes:
        nth = seen[lane.key] = seen.get(lane.key, 0) + 1
        keyed.append(((nth, lane.key.lane, lane.key.node), lane))
    return [lane for _, lane in sorted(keyed, key=lambda pair: pair[0])]
