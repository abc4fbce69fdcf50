"""Wait, in a user's thread, until a pool has the nodes that it is to have."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from skyward.errors import UsageError

if TYPE_CHECKING:
    from skyward.plan.pool.lifecycle import PoolState


class Wholeness:
    """
    Have threads wait for the nodes of a pool, until it has those that can be had, gives up, or is closed.

    Nothing here has a limit of its own: machines take their time to boot, and what they cost is limited by the budget.

    Args:
        pool: The pool's name.
        state: Returns the pool as it is now; from any thread.
        wake: Has a pool start that may drain to zero, and returns whether it may; from any thread.
    """

    def __init__(self, pool: str, state: Callable[[], PoolState], wake: Callable[[], bool]) -> None:
        self._pool = pool
        self._state = state
        self._wake = wake
        self._changed = threading.Condition()
        self._given_up = ""

    def changed(self) -> None:
        """Notify the threads that wait."""
        with self._changed:
            self._changed.notify_all()

    def give_up(self, reason: str) -> None:
        """Record that the pool gets no more nodes; the first reason holds."""
        self._given_up = self._given_up or reason
        self.changed()

    def wait(self, within: float | None = None) -> None:
        """Wait until the pool has the nodes that can be had, or has given up, no longer than some seconds."""
        self._wait(lambda: self._state().whole, within)

    def awake(self) -> None:
        """Wait until a pool that may drain to zero has nodes again; returns at once for all others."""
        if not self._state().ready_count and self._wake():
            self._wait(lambda: self._state().ready_count > 0 and self._state().whole)

    def check_awake(self, wanted: str) -> None:
        """
        Refuse what needs a node at this moment.

        Args:
            wanted: What needs it, as the beginning of a sentence.

        Raises:
            UsageError: If the pool has drained to zero.
        """
        if not self._state().desired:
            raise UsageError(
                f"{wanted} needs a node, and the pool {self._pool!r} has none now: it starts with the next call.",
                hint="Call a function first, or write pool.resize(1).",
            )

    def _wait(self, holds: Callable[[], bool], within: float | None = None) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._given_up or holds(), within)
