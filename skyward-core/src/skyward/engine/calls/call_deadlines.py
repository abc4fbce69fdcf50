"""Calls that have to begin, or to be answered, by a time: ended by one timer for all of them."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable, Mapping

from skyward.engine.calls.answer import Answer
from skyward.engine.calls.call import Call

_LEAST_SWEPT = 1024


class CallDeadlines:
    """
    Watch calls; lives in the engine's loop.

    Args:
        loop: The loop, by whose clock calls are late.
        calls: The open calls by the ids of their latest attempts.
        give_up: Stops a call wherever it is, and returns which calls are over with it.
        end: Ends a call with an answer.
        failure: Makes the answer of a call that failed: kind of error, message, call.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        calls: Mapping[int, Call],
        give_up: Callable[[Call], list[Call]],
        end: Callable[[Call, Answer], None],
        failure: Callable[..., Answer],
    ) -> None:
        self._loop = loop
        self._calls = calls
        self._give_up = give_up
        self._end = end
        self._failure = failure
        self._due: list[tuple[float, int, Call, bool]] = []
        self._swept_at = _LEAST_SWEPT
        self._numbers = itertools.count()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, call: Call) -> None:
        """Watch a call from now on, if it has a deadline or a limit to how long it may be queued."""
        if not (call.deadline or call.queue_timeout):
            return
        now = self._loop.time()
        if call.deadline:
            call.until = now + call.deadline
            self._push(call.until, call, queued=False)
        if call.queue_timeout:
            self._push(now + call.queue_timeout, call, queued=True)

    def close(self) -> None:
        """Watch no more."""
        self._due.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _push(self, when: float, call: Call, *, queued: bool) -> None:
        if len(self._due) >= self._swept_at:
            # Most calls end long before they are due.
            self._due = [one for one in self._due if self._open(one[2])]
            heapq.heapify(self._due)
            self._swept_at = max(_LEAST_SWEPT, 2 * len(self._due))
        heapq.heappush(self._due, (when, next(self._numbers), call, queued))
        if self._timer is None or when < self._timer.when():
            self._wind()

    def _wind(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(self._due[0][0], self._look) if self._due else None

    def _look(self) -> None:
        now = self._loop.time()
        while self._due and self._due[0][0] <= now:
            _, _, call, queued = heapq.heappop(self._due)
            if self._open(call) and not (queued and call.began):
                self._late(call, queued=queued)
        self._wind()

    def _open(self, call: Call) -> bool:
        return self._calls.get(call.id) is call

    def _late(self, call: Call, *, queued: bool) -> None:
        if queued:
            kind, message = "QueueTimeoutError", f"it waited for {call.queue_timeout:g} s"
        else:
            kind, message = "CallDeadlineError", f"it was not answered within {call.deadline:g} s"
        for one in self._give_up(call):
            self._end(one, self._failure(kind, message, call=one))
