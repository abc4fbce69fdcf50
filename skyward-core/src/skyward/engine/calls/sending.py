"""Calls on their way to nodes: queued, sent where the scheduler says, begun."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from skyward.engine.calls.affinity import Kept
from skyward.engine.calls.call import Call, Observer
from skyward.engine.calls.recalling import Recalling
from skyward.engine.nodes.member import Member
from skyward.engine.pool.event_loop import EngineLoop
from skyward.errors import ProtocolError
from skyward.plan.pool.lanes import Assignment
from skyward.plan.pool.scheduling import Scheduler


class Sending:
    """
    Send queued calls to the lanes that the scheduler assigns.

    Args:
        engine: The loop.
        scheduler: Says where calls go.
        calls: The open calls by their id.
        members: The ready nodes by their index.
        observer: Called at each start.
        membership: Renders for a node what its members are now: version, facts.
        unsent: Called with a call that cannot be sent to a node, why, and the error that this is.
    """

    def __init__(
        self,
        engine: EngineLoop,
        scheduler: Scheduler,
        calls: Mapping[int, Call],
        members: Mapping[int, Member],
        *,
        observer: Observer | None,
        membership: Callable[[int], tuple[int, dict[str, Any]]],
        unsent: Callable[[Member, Call, str, str], None],
    ) -> None:
        self._engine = engine
        self._scheduler = scheduler
        self._calls = calls
        self._members = members
        self._observer = observer
        self._membership = membership
        self._unsent = unsent
        self._recalling = Recalling(engine, scheduler, members)
        self.kept = Kept()

    def queue(self, call: Call, *, first: bool = False) -> None:
        """Queue a call; one that comes back goes before its caller's other calls."""
        # What is sent ahead may be recalled, and what an iterator gave by then would be lost; or it outlives its
        # process, and what it was sent about that is no longer true.
        function = b"" if call.feeder is not None or call.function.needs else call.function.digest
        size = call.payload.travelling
        if call.trail is not None and not first:
            call.trail.queued = time.monotonic()
        self._scheduler.submit(call.id, function, caller=call.caller, node=call.node, size=size, first=first)

    def assign(self) -> None:
        """Send what can be sent now."""
        for made in self._scheduler.assign(self._engine.loop.time()):
            self._send(made)
        self._recalling.watch()

    def finished(self, number: int, node: int, seconds: float | None = None) -> None:
        """Free the slot of a call that ended on a node, and record that the one behind it begins."""
        ended = self._calls.get(number)
        if ended is not None and ended.trail is not None:
            ended.trail.vacate()
        follower = self._scheduler.finished(number, seconds, now=self._engine.loop.time())
        # A pool that is being closed may have answered it already.
        if follower is not None and self._observer is not None and (call := self._calls.get(follower)) is not None:
            self._begin(call, node)

    def _send(self, made: Assignment) -> None:
        call, member = self._calls[made.call], self._members[made.key.node]
        call.on, call.lane = made.key
        if call.trail is not None:
            call.trail.sent = time.monotonic()
        if not call.members:
            call.members, membership = self._membership(call.on)
            member.link.send_members(call.members, membership)
        try:
            member.link.send_task(call, held=self.kept.holds(call, member))
        except ProtocolError as error:
            self._unsent(member, call, str(error), "SerializationError")
            return
        if call.cancelled:
            member.link.send_cancel(call)
        if made.begins and self._observer is not None:
            self._begin(call, made.key.node)
        if call.feeder is not None:
            call.feeder.start(call, member.link.outflow)

    def _begin(self, call: Call, node: int) -> None:
        call.began = time.monotonic()
        if self._observer is not None:
            self._observer.started(call, node)
