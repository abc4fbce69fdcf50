"""Calls cancelled one by one, by any number of threads: taken together in the loop, some at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from skyward.engine.calls.batches import PART

if TYPE_CHECKING:
    from skyward.engine.calls.call import Call
    from skyward.engine.pool.event_loop import EngineLoop


class Cancelling:
    """
    Pass calls that are cancelled one by one to the engine's loop.

    A post for each would make several objects, for which Python's garbage collector looks at all others more often.

    Args:
        engine: The loop.
        cancel: Stops calls that it has, and marks them as cancelled; called in the loop.
    """

    def __init__(self, engine: EngineLoop, cancel: Callable[[Sequence[Call]], None]) -> None:
        self._engine = engine
        self._cancel = cancel
        self._wanted: deque[Call] = deque()
        self._asked = False

    def put(self, call: Call) -> None:
        """
        Cancel a call soon; harmless for one that has ended.

        Raises:
            PoolClosedError: In a child process that was forked from the client.
        """
        self._engine.check()
        self._wanted.append(call)
        if not self._asked:
            self._ask()

    def _ask(self) -> None:
        self._asked = True
        self._engine.post(self._on_post)

    def _on_post(self) -> None:
        # Before the look at what there is: a call that comes from now on asks again.
        self._asked = False
        calls: list[Call] = []
        while self._wanted and len(calls) < PART:
            calls.append(self._wanted.popleft())
        self._cancel(calls)
        if not all(call.cancelled for call in calls):
            # They have ended, or were posted behind what brought us here and are to come.
            self._engine.post(self._cancel, [call for call in calls if not call.cancelled])
        if self._wanted and not self._asked:
            self._ask()
