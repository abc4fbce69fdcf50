"""Calls posted by time: at once while slots may be idle, together where they are made fast."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skyward.engine.calls.call import Call
    from skyward.engine.pool.event_loop import EngineLoop

TOGETHER = 0.001
"""Seconds for which calls are gathered while all slots have something to do; each post costs the loop a wake-up."""


class Posting:
    """
    Pass calls from the thread that makes them to the engine's loop.

    The loop and not the thread waits for more of them, because that thread may be still in the user's iterator by then.

    Args:
        engine: The loop.
        idle: Returns, in the loop, whether slots may be idle.
        submit: Sends calls on their way; called in the loop.
    """

    def __init__(
        self, engine: EngineLoop, *, idle: Callable[[], bool], submit: Callable[[Sequence[Call]], None]
    ) -> None:
        self._engine = engine
        self._idle = idle
        self._submit = submit
        self._made: deque[Call] = deque()
        self._asked = False

    def put(self, call: Call) -> None:
        """Send a call, now or with those of the next millisecond."""
        self._made.append(call)
        if not self._asked:
            self._asked = True
            self._engine.post(self._on_post)

    def _on_post(self) -> None:
        if self._idle():
            self._flush()
        else:
            self._engine.loop.call_later(TOGETHER, self._flush)

    def _flush(self) -> None:
        # Before the look at what there is: a call that is made from now on asks again.
        self._asked = False
        calls = []
        while self._made:
            calls.append(self._made.popleft())
        if calls:
            self._submit(calls)
