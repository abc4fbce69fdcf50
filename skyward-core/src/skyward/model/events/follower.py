"""What follows the calls of a pool from where they are made to where their results arrive, and what it learns."""

from __future__ import annotations

from typing import NamedTuple

from skyward.model.events.event_base import SkywardEvent

__all__ = ["CallTimes", "Follower"]


class CallTimes(NamedTuple):
    """
    Tell where and when one attempt of a call was, by the client's clock, in seconds since 1970.

    What did not happen is None: a call that was cancelled in the queue has not begun.

    Args:
        task: Number of the call, the same for all its attempts; as text it is the `task_id` of events.
        attempt: Number of the attempt, which no other call of this program has; `sky.carried` has it on the node.
        function: What the user calls it.
        carried: The text that the follower sent along.
        broadcast: Number of the broadcast that it is part of; 0 for another call.
        node: Index of the node.
        lane: Number of the worker process there.
        slot: Which of the process's slots it had.
        submitted: When its arguments began to be pickled; for a further attempt, when that was due.
        queued: When it was in the pool's queue.
        sent: When it was sent to the node, possibly ahead of its turn.
        placed: When it was its turn there, as the client sees it.
        began: When the function began, by the node's clock less what that is ahead.
        ended: When the function ended.
        answered: When the result, or the failure, was at the client.
        failure: Why it failed, in a line; None for a result.
        stopped: Whether it was ended on purpose: cancelled, or its pool left.
        again: Whether another attempt follows.
    """

    task: int
    attempt: int
    function: str
    carried: str
    broadcast: int
    node: int | None
    lane: int
    slot: int
    submitted: float
    queued: float
    sent: float | None
    placed: float | None
    began: float | None
    ended: float | None
    answered: float
    failure: str | None
    stopped: bool
    again: bool


class Follower:
    """
    Follow the calls of a pool; each method does nothing unless it is overridden.

    What one raises is logged once, and changes nothing for the call.
    """

    events: tuple[type[SkywardEvent], ...] = ()
    """The classes of events, with those that extend them, that `happened` is called with."""

    own = True
    """Whether it leaves events that tasks emit unopened; False opens those of its `events`."""

    def submitted(self, function: str) -> str:
        """
        Return a text that travels with a call; `sky.carried` returns it on the node.

        Called in the thread that makes the call, in its context, before the arguments are pickled.
        """
        return ""

    def started(self, attempt: int, node: int, carried: str) -> None:
        """Take notice that it is the turn of an attempt on a node; called in the pool's loop, so it must be quick."""

    def ended(self, call: CallTimes) -> None:
        """Take notice that an attempt ended; called in the pool's loop, so it must be quick."""

    def happened(self, event: SkywardEvent) -> None:
        """Take notice of an event; called in the thread of the pool's handlers."""

    def left(self) -> None:
        """Finish: the pool is over, and handlers have had all events; called in the thread that leaves the pool."""
