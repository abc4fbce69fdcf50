"""Nodes at the other end of a line, as numbers on a virtual clock: what a scheduler makes of them."""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from skyward.plan.pool.scheduling import LaneKey, Scheduler

LOOK_EVERY = 0.02
"""Seconds between two looks for lanes that are to give back calls."""


class Work(NamedTuple):
    """A call: when it is submitted, what it runs and for how long, and which caller's it is."""

    at: float
    function: bytes
    seconds: float
    caller: int = 0


class Ended(NamedTuple):
    """What became of a call: when it was submitted, when it began, and when its answer was there."""

    submitted: float
    began: float
    answered: float


class Line:
    """
    Run calls on slots that are so far away.

    Args:
        slots: For each node, how many calls it runs at once, one in each lane.
        away: Seconds of a round trip to each node.
        cost: Seconds of the client for each call that is sent, or answered.
        on_answer: What an answer makes a caller submit.
    """

    def __init__(
        self,
        slots: Sequence[int],
        away: Sequence[float],
        *,
        cost: float = 0.0,
        on_answer: Callable[[int, float], Sequence[Work]] = lambda call, now: (),
    ) -> None:
        self.scheduler = Scheduler()
        self.ended: dict[int, Ended] = {}
        self.recalled = 0
        self.most_ahead = 0
        self._away = away
        self._cost = cost
        self._on_answer = on_answer
        self._works: dict[int, Work] = {}
        self._numbers = itertools.count(1)
        self._events: list[tuple[float, int, Callable[..., None], tuple[object, ...]]] = []
        self._order = itertools.count()
        self._running: dict[LaneKey, int | None] = {}
        self._waiting: dict[LaneKey, deque[int]] = {}
        self._began: dict[int, float] = {}
        self._looking = False
        self._free_at = 0.0
        self.now = 0.0
        for node, lanes in enumerate(slots):
            self.scheduler.add_node(node, [(lane, lane, 1) for lane in range(lanes)])
            for lane in range(lanes):
                self._running[LaneKey(node, lane)] = None
                self._waiting[LaneKey(node, lane)] = deque()

    def run(self, works: Sequence[Work]) -> float:
        """Run all calls, and those that their answers lead to; return when the last answer was there."""
        for at, some in itertools.groupby(sorted(works, key=lambda work: work.at), key=lambda work: work.at):
            self._at(at, self._submit, list(some))
        while self._events:
            self.now, _, do, arguments = heapq.heappop(self._events)
            do(*arguments)
        assert len(self.ended) == len(self._works), "a call was lost"
        return max(ended.answered for ended in self.ended.values())

    @property
    def busy(self) -> float:
        """Return which share of the slots' time calls ran, from the first submission to the last answer."""
        over = max(ended.answered for ended in self.ended.values())
        return sum(work.seconds for work in self._works.values()) / (over * len(self._running))

    def _at(self, when: float, do: Callable[..., None], *arguments: object) -> None:
        heapq.heappush(self._events, (when, next(self._order), do, arguments))

    # The client.

    def _submit(self, works: Sequence[Work]) -> None:
        for work in works:
            number = next(self._numbers)
            self._works[number] = work._replace(at=self.now)
            self.scheduler.submit(number, work.function, caller=work.caller)
        self._assign()

    def _assign(self) -> None:
        for made in self.scheduler.assign(self.now):
            self._free_at = max(self._free_at, self.now) + self._cost
            self._at(self._free_at + self._away[made.key.node] / 2, self._arrive, made.call, made.key)
        self.most_ahead = max(self.most_ahead, self.scheduler.running - len(self._running))
        if self.scheduler.ahead and not self._looking:
            self._looking = True
            self._at(self.now + LOOK_EVERY, self._look)

    def _look(self) -> None:
        self._looking = False
        for key, keep in self.scheduler.recalls(self.now):
            self._at(self.now + self._away[key.node] / 2, self._give_back, key, keep)
        if self.scheduler.ahead:
            self._looking = True
            self._at(self.now + LOOK_EVERY, self._look)

    def _answered(self, call: int, key: LaneKey) -> None:
        work = self._works[call]
        self.ended[call] = Ended(work.at, self._began[call], self.now)
        self.scheduler.finished(call, work.seconds, now=self.now)
        more = self._on_answer(call, self.now)
        for work in more:
            if work.at > self.now:
                self._at(work.at, self._submit, [work])
        self._submit([work for work in more if work.at <= self.now])

    def _taken_back(self, key: LaneKey, calls: Sequence[int]) -> None:
        self.scheduler.recalled(key)
        self.recalled += len(calls)
        for call in reversed(calls):
            self.scheduler.finished(call, now=self.now)
            work = self._works[call]
            self.scheduler.submit(call, work.function, caller=work.caller, first=True)
        self._assign()

    # The nodes.

    def _arrive(self, call: int, key: LaneKey) -> None:
        self._waiting[key].append(call)
        self._begin(key)

    def _begin(self, key: LaneKey) -> None:
        if self._running[key] is None and self._waiting[key]:
            call = self._running[key] = self._waiting[key].popleft()
            assert call not in self._began, "a call began twice"
            self._began[call] = self.now
            self._at(self.now + self._works[call].seconds, self._end, call, key)

    def _end(self, call: int, key: LaneKey) -> None:
        self._running[key] = None
        self._at(self.now + self._away[key.node] / 2, self._answered, call, key)
        self._begin(key)

    def _give_back(self, key: LaneKey, keep: int) -> None:
        waiting = self._waiting[key]
        back = [waiting.pop() for _ in range(len(waiting) - keep)]
        self._at(self.now + self._away[key.node] / 2, self._taken_back, key, back[::-1])


def list_schedule(durations: Sequence[float], slots: int) -> float:
    """Return when the last call ends if each begins, in order, as soon as a slot is free that is not away at all."""
    free = [0.0] * slots
    for seconds in durations:
        heapq.heapreplace(free, free[0] + seconds)
    return max(free)
