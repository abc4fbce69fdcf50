"""
Which call goes to which lane: a state machine that is given the time, and does no I/O.

Callers take turns, and calls go round robin to free slots.
Calls are also sent ahead to busy lanes, as many as cover the time that a node is away (`lanes.py`); what was sent ahead
and has not begun is recalled when a slot is free sooner.
A group (a broadcast) is placed as a whole or not at all, and once it is its turn nothing overtakes it: two groups, or
a group and queued calls, cannot wait for each other.
Submitting, cancelling, placing and ending a call take constant time, whatever waits and however many nodes there are.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from skyward.plan.pool.call_groups import Group, Groups
from skyward.plan.pool.durations import Durations
from skyward.plan.pool.fair_queue import FairQueue
from skyward.plan.pool.lanes import IDLE, IDLE_SHARED, SHARED_FOR, Assignment, Entry, Lane, LaneKey, Node, Recall
from skyward.plan.pool.pinned_calls import PinnedCalls


class Scheduler:
    """
    Decide where calls go.

    Args:
        buffer: How many calls for each slot may always be sent ahead; None if no call may be.

    >>> scheduler = Scheduler()
    >>> scheduler.add_node(0, [(0, 0, 1)])
    >>> scheduler.submit(7, b"f")
    >>> scheduler.assign(now=10.0)
    [Assignment(call=7, key=LaneKey(node=0, lane=0), begins=True)]
    >>> scheduler.finished(7, 0.1, now=10.3)
    >>> round(scheduler.away(0), 3)
    0.2
    """

    def __init__(self, buffer: int | None = 0) -> None:
        self._buffer = buffer or 0
        self._sends_ahead, self._keeps = buffer is not None, False
        self.durations = Durations()
        self.lanes: dict[LaneKey, Lane] = {}
        self._nodes: dict[int, Node] = {}
        self._where: dict[int, Lane] = {}
        self._slots = 0
        # Nodes with a free slot, in the order in which they are used.
        self._open: OrderedDict[int, Node] = OrderedDict()
        # Busy lanes that may have room for one more call, and lanes in which calls wait.
        self._roomy: deque[Lane] = deque()
        self._ahead: dict[LaneKey, Lane] = {}
        self.queue: FairQueue[Entry | Group] = FairQueue()
        # Until when callers count as several, and how idle a slot may be meanwhile.
        self._shared_until = 0.0
        self._idle = IDLE
        self._groups = Groups()
        self.pinned = PinnedCalls()

    @property
    def queued(self) -> int:
        """Count what waits for a slot; a group counts once."""
        return len(self.queue) + len(self.pinned)

    @property
    def running(self) -> int:
        """Count the calls that were sent to lanes and have not ended."""
        return len(self._where)

    @property
    def slots(self) -> int:
        """Count the slots of all lanes."""
        return self._slots

    @property
    def ahead(self) -> int:
        """Count the lanes in which calls wait for a slot."""
        return len(self._ahead)

    def away(self, node: int) -> float:
        """Return for how many seconds a call to a node is away, apart from those that it runs."""
        return self._nodes[node].away

    def busy(self, node: int) -> int:
        """Count the calls on a node."""
        return sum(len(lane.calls) for lane in self._nodes[node].lanes) if node in self._nodes else 0

    def add_node(self, node: int, lanes: Iterable[tuple[int, int, int]]) -> None:
        """
        Open a node for calls.

        Args:
            node: Its index.
            lanes: For each lane its number, its rank on the node, and how many calls it runs at once.
        """
        added = self._nodes[node] = Node(node, lanes)
        self._admit(added)

    def suspend(self, node: int) -> None:
        """Begin nothing new on a node until `resume`; what is on it stays."""
        silent = self._nodes.get(node)
        if silent is not None and silent.alive:
            self._close(silent)
            silent.open.clear()
            self._roomy = deque(lane for lane in self._roomy if lane.node is not silent)

    def resume(self, node: int) -> None:
        """Open a node for calls again."""
        back = self._nodes.get(node)
        if back is not None and not back.alive:
            back.alive = True
            self._admit(back)

    def on(self, node: int) -> dict[int, bool]:
        """Return the calls on a node, and whether each has a slot there and does not wait for one."""
        lanes = self._nodes[node].lanes if node in self._nodes else ()
        return {call: place < lane.capacity for lane in lanes for place, call in enumerate(lane.calls)}

    def remove_node(self, node: int) -> list[int]:
        """Close a node; return which calls were on it, oldest first."""
        removed = self._nodes.pop(node, None)
        if removed is None:
            return []
        lost = [call for lane in removed.lanes for call in lane.calls]
        self._close(removed)
        for call in lost:
            del self._where[call]
        return sorted(lost)

    def set_aside(self, node: int, seat: int) -> list[int]:
        """Begin nothing new on a node, which is called `seat` from now on; return the calls on it, oldest first."""
        leaving = self._nodes.pop(node, None)
        if leaving is None:
            return []
        self._close(leaving)
        self._nodes[seat] = leaving
        return sorted(call for lane in leaving.lanes for call in lane.calls)

    def submit(
        self,
        call: int,
        function: bytes,
        *,
        caller: int = 0,
        node: int | None = None,
        size: int = 0,
        first: bool = False,
    ) -> None:
        """
        Queue a call.

        Args:
            call: Its id.
            function: Names what it runs, to know how long that takes; a call without it is never sent ahead.
            caller: Which turns it takes.
            node: The only node it may run on.
            size: Bytes of its arguments.
            first: Whether it goes before its caller's other calls; for calls that come back.
        """
        waits = Entry(function if self._sends_ahead else b"", size)
        if node is None:
            self.queue.push(call, waits, caller, first=first)
            return
        self.pinned.push(call, waits, node=node, caller=caller, first=first)

    def submit_group(self, members: Sequence[tuple[int, int, int]], *, caller: int = 0) -> None:
        """
        Queue calls that are placed together.

        Args:
            members: For each its id, its node and its rank there.
            caller: Which turn they take, as one.
        """
        group = self._groups.add(members)
        self.queue.push(group.key, group, caller)

    def groups_for(self, node: int) -> set[int]:
        """Return which queued calls are members of a group that needs a node."""
        return self._groups.on(node)

    def pinned_to(self, node: int) -> list[int]:
        """List the queued calls that only a node may run."""
        return self.pinned.on(node)

    def withdraw(self, *calls: int) -> set[int]:
        """Take calls out of the queue, each with its whole group; return which were there."""
        found: set[int] = set()
        for call in calls:
            if call in self._groups:
                self.queue.remove(self._groups.key(call))
                found.update(self._groups.remove(call))
            elif self.queue.remove(call) is not None or self.pinned.remove(call):
                found.add(call)
        return found

    def give_up(self, calls: Iterable[int], unwanted: Callable[[int], bool]) -> list[int]:
        """
        Remove cancelled calls from the queue, those of a group only together.

        Args:
            calls: Those that may be out of use now.
            unwanted: Returns whether a call is.

        Returns:
            Those that were taken out, oldest first.
        """
        groups = {self._groups.of(call) or (call,) for call in calls}
        return sorted(self.withdraw(*(group[0] for group in groups if all(map(unwanted, group)))))

    def clear(self) -> None:
        """Clear the queue; what was sent to lanes stays."""
        self.queue.clear()
        self._groups.clear()
        self.pinned.clear()

    def assign(self, now: float = 0.0) -> list[Assignment]:
        """
        Return what is to be sent where now.

        Args:
            now: Seconds on any clock that does not go back.
        """
        made: list[Assignment] = []
        if self.pinned.touched:
            self._assign_pinned(made, now, only_its_turn=True)
        queue = self.queue
        if queue.callers > 1:
            self._shared_until = now + SHARED_FOR
        self._idle = IDLE_SHARED if now < self._shared_until else IDLE
        while (self._open or self._roomy) and (head := queue.head()):
            call, entry = head
            if isinstance(entry, Group):
                if not self._place_group(entry, made, now):
                    return made
                continue
            begins = bool(self._open)
            lane = self._free_lane() if begins else self._lane_ahead(entry) if entry.function else None
            if lane is None:
                break
            queue.pop()
            lane.node.pinned_last = False
            made.append(self._put(call, entry, lane, now, begins=begins))
        if self.pinned.touched:
            self._assign_pinned(made, now, only_its_turn=False)
        return made

    def finished(self, call: int, seconds: float | None = None, *, now: float = 0.0) -> int | None:
        """
        Record that a call ended.

        Args:
            call: Its id.
            seconds: How long it ran, if it ran to its end.
            now: Seconds on the clock that `assign` goes by.

        Returns:
            The call that begins in its place, if one was sent ahead.
        """
        lane = self._where.pop(call, None)
        if lane is None:
            return None
        begun = call in islice(lane.calls, lane.capacity)
        entry = lane.calls.pop(call)
        sent_at = lane.begun_at.pop(call, None)
        if seconds is not None and entry.function:
            self.durations.learn(entry.function, seconds)
            if sent_at is not None:
                lane.node.measured(now - sent_at - seconds, now)
        if not begun:
            lane.begin(entry)
        follower = None
        if begun and lane.waiting:
            follower, next_one = next(islice(lane.calls.items(), lane.capacity - 1, None))
            lane.begin(next_one)
        if not lane.node.alive:
            # Nothing is sent to it any more, but what was sent ahead and not yet returned may begin.
            return follower
        if not lane.waiting:
            self._ahead.pop(lane.key, None)
        if begun:
            lane.since, lane.stalled = now, False
        if len(lane.calls) < lane.capacity:
            self._now_open(lane)
        elif len(lane.calls) <= lane.refill_at or not lane.waiting:
            self._list(lane)
        if self.pinned:
            self.pinned.touched[lane.key.node] = None
        return follower

    def recalls(self, now: float) -> list[Recall]:
        """
        List the lanes that are to return calls, which would wait there longer than elsewhere.

        Args:
            now: Seconds on the clock that `assign` goes by.
        """
        elsewhere = bool(self._open) and not self.queue
        found = []
        for lane in () if self._keeps else self._ahead.values():
            keep = lane.to_keep(self.durations, now, elsewhere=elsewhere)
            if keep is not None:
                lane.recalled_at = now
                lane.stalled |= not elsewhere
                lane.spare = 0
                found.append(Recall(lane.key, keep))
        return found

    def recalled(self, key: LaneKey) -> None:
        """Record that a lane returned what it was asked for; `finished` takes each of the calls."""
        if key in self.lanes:
            self.lanes[key].recalled_at = None

    def send_ahead(self, buffer: int | None, *, recall: bool) -> None:
        """Send so many calls ahead for each slot from now on, and recall some that could begin sooner, or none."""
        self._buffer, self._keeps = buffer or 0, not recall
        for lane in self.lanes.values():
            if len(lane.calls) >= lane.capacity:
                self._list(lane)

    # Inside.

    def _admit(self, node: Node) -> None:
        for lane in node.lanes:
            self.lanes[lane.key] = lane
            self._slots += lane.capacity
            lane.listed, lane.recalled_at = False, None
            if lane.waiting:
                self._ahead[lane.key] = lane
            if len(lane.calls) < lane.capacity:
                self._now_open(lane)
            else:
                self._list(lane)
        self.pinned.touched[node.index] = None

    def _close(self, node: Node) -> None:
        if not node.alive:
            # It was set aside or suspended before; in the first case its keys are its successor's.
            return
        node.alive = False
        self._open.pop(node.index, None)
        for lane in node.lanes:
            self._slots -= lane.capacity
            del self.lanes[lane.key]
            self._ahead.pop(lane.key, None)

    def _now_open(self, lane: Lane) -> None:
        node = lane.node
        node.open[lane.key] = lane
        self._open[node.index] = node

    def _free_lane(self) -> Lane:
        """Return a lane with a free slot, as there is one: nodes take turns, and the lanes of each."""
        index, node = next(iter(self._open.items()))
        self._open.move_to_end(index)
        key, lane = next(iter(node.open.items()))
        node.open.move_to_end(key)
        return lane

    def _lane_ahead(self, entry: Entry) -> Lane | None:
        """Find a busy lane that may take one more call; lanes take turns."""
        roomy = self._roomy
        while roomy:
            lane = roomy.popleft()
            if not lane.node.alive:
                continue
            if not lane.has_spare(entry, self.durations, self._buffer, self._idle):
                lane.listed = False
                continue
            lane.spare -= 1
            lane.listed = lane.spare > 0 or not lane.spare_for
            if lane.listed:
                roomy.append(lane)
            else:
                # Filled up again when a quarter has left, so that not each answer leads to a call by itself.
                lane.refill_at = (len(lane.calls) + 1) * 3 // 4
            return lane
        return None

    def _list(self, lane: Lane) -> None:
        """List a busy lane to be looked at again when a call may be sent ahead."""
        lane.spare_for = b""
        if not lane.listed:
            lane.listed = True
            self._roomy.append(lane)

    def _put(self, call: int, entry: Entry, lane: Lane, now: float, *, begins: bool) -> Assignment:
        self._where[call] = lane
        if not begins:
            lane.wait(call, entry)
            self._ahead[lane.key] = lane
            return Assignment(call, lane.key, begins)
        lane.calls[call] = entry
        lane.begun_at[call] = lane.since = now
        if len(lane.calls) >= lane.capacity:
            node = lane.node
            del node.open[lane.key]
            if not node.open:
                del self._open[node.index]
            self._list(lane)
        return Assignment(call, lane.key, begins)

    def _place_group(self, group: Group, made: list[Assignment], now: float) -> bool:
        places = []
        for call, node, rank in group.members:
            lanes = self._nodes[node].open.values() if node in self._nodes else ()
            lane = next((lane for lane in lanes if lane.rank == rank), None)
            if lane is None:
                return False
            places.append((call, lane))
        self.withdraw(group.key)
        made += [self._put(call, Entry(b"", 0), lane, now, begins=True) for call, lane in places]
        return True

    def _assign_pinned(self, made: list[Assignment], now: float, *, only_its_turn: bool) -> None:
        """
        Assign calls that only one node may run, on the nodes where something changed.

        Args:
            made: What is to be sent.
            now: The time.
            only_its_turn: Whether a node whose last call was one of them leaves its slot to the others.
        """
        head = self.queue.head()
        if head is not None and isinstance(head[1], Group):
            return
        for index in list(self.pinned.touched):
            node = self._nodes.get(index)
            while node is not None and node.alive and (waits := self.pinned.head(index)) is not None:
                if only_its_turn and node.pinned_last and head is not None:
                    break
                lane = next(iter(node.open.values()), None)
                begins = lane is not None
                if lane is None and waits.function:
                    lane = node.with_room(waits, self.durations, self._buffer, self._idle)
                if lane is None:
                    break
                call, entry = self.pinned.pop(index)
                node.pinned_last = True
                made.append(self._put(call, entry, lane, now, begins=begins))
        if not only_its_turn:
            self.pinned.touched.clear()
