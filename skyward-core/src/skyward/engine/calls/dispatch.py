"""The way of calls through the client: from the queue to nodes, and of answers back."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any

from skyward.console.call_cells import CallCells
from skyward.engine.calls.answer import Answer
from skyward.engine.calls.batches import in_parts
from skyward.engine.calls.call import Call, Observer
from skyward.engine.calls.call_deadlines import CallDeadlines
from skyward.engine.calls.call_failures import closed, completed, ending, failure
from skyward.engine.calls.call_frames import announced, answer_of, take_credit, take_item
from skyward.engine.calls.retrying import Retrying
from skyward.engine.calls.sending import Sending
from skyward.engine.calls.silent_nodes import SilentNodes
from skyward.engine.nodes.member import Member
from skyward.engine.nodes.node_link import NodeLink
from skyward.engine.pool.event_loop import EngineLoop
from skyward.link.frames import Frame, Kind
from skyward.link.messages import CALL, RESULT, Status, decode_calls, decode_result, task_of
from skyward.link.payload import decode
from skyward.node.agent.fds import close_all
from skyward.plan.pool.lanes import AHEAD_CALLS, LaneKey
from skyward.plan.pool.retry_policy import Decision, Failure
from skyward.plan.pool.scheduling import Scheduler
from skyward.plan.pool.workload import Workload, estimate


class Dispatch:
    """
    Send calls where the scheduler says, and give answers to what waits for them; lives in the engine's loop.

    Args:
        engine: The loop.
        pool: The pool's name, for messages.
        buffer: Calls that may always be sent ahead to each busy slot; None if no call may be.
        observer: Called at each start and end.
        membership: Renders for a node what its members are now: version, facts.
    """

    def __init__(
        self,
        engine: EngineLoop,
        *,
        pool: str,
        buffer: int | None,
        observer: Observer | None,
        membership: Callable[[int], tuple[int, dict[str, Any]]],
    ) -> None:
        self._engine = engine
        self.pool = pool
        self._failure = partial(failure, pool)
        self._scheduler, self._buffer = Scheduler(buffer), buffer
        self._observer = observer
        self._members: dict[int, Member] = {}
        self._calls: dict[int, Call] = {}
        self._sending = Sending(
            engine,
            self._scheduler,
            self._calls,
            self._members,
            observer=observer,
            membership=membership,
            unsent=self._unsent,
        )
        self._closed: Answer | None = None
        self.cells: CallCells | None = None
        self._interrupted: set[str] = set()
        self._retrying = Retrying(engine, end=self._end, renew=self._renew, queue=self._send_again)
        self.pause = self._retrying.pause
        self.silent = SilentNodes(
            self._scheduler,
            self._members,
            self._calls,
            renew=self._renew,
            queue=self._send_again,
            forget=self._retrying.forget,
            fail=self._attempt_failed,
            failure=self._failure,
        )
        self._deadlines = CallDeadlines(engine.loop, self._calls, self.silent.give_up, self._end, self._failure)
        self.on_progress: Callable[[], None] | None = None

    @property
    def queued(self) -> int:
        """Count what waits for a slot."""
        return self._scheduler.queued

    @property
    def waiting(self) -> int:
        """Count the calls that wait for the time of their next attempt."""
        return len(self._retrying.waiting)

    @property
    def refusal(self) -> BaseException | None:
        """Return what new calls are answered with; None while they are taken."""
        return None if self._closed is None else self._closed.error()

    @property
    def running(self) -> int:
        """Count what runs."""
        return self._scheduler.running

    @property
    def slots(self) -> int:
        """Count the slots of all ready nodes."""
        return self._scheduler.slots

    @property
    def calls(self) -> Collection[Call]:
        """Return the calls that are open."""
        return self._calls.values()

    def workload(self) -> Workload:
        """Estimate what there is to do."""
        return estimate(self._scheduler, self._engine.loop.time())

    @property
    def members(self) -> dict[int, Member]:
        """Return the ready nodes by their index."""
        return self._members

    def on_node(self, node: int, number: int) -> Call | None:
        """Return the call of this id if it is on a node, which may report on it then."""
        call = self._calls.get(number)
        return call if call is not None and call.on == node else None

    @property
    def unsent(self) -> int:
        """Count the calls that no node has, and the lanes that were asked for some back."""
        waiting = sum(call.on is not None and self._members[call.on].link.unsent(call) for call in self._calls.values())
        recalled = sum(lane.recalled_at is not None for lane in self._scheduler.lanes.values())
        return self.queued + self.waiting + waiting + recalled

    def send_all(self, *, wanted: bool) -> None:
        """Send all calls to nodes ahead of time, where they wait for each other; or as few again as before."""
        self._scheduler.send_ahead(AHEAD_CALLS if wanted else self._buffer, recall=not wanted)
        self._sending.assign()

    def idle(self, node: int) -> bool:
        """Return whether nothing runs on a node."""
        return not self._scheduler.busy(node)

    def submit(self, calls: Sequence[Call]) -> None:
        """Queue calls."""
        now = time.monotonic()
        for call in calls:
            call.asked = now
            if self._closed is not None:
                call.sink.resolve(call, self._closed)
                continue
            self._calls[call.id] = call
            self._deadlines.add(call)
            self._sending.queue(call)
        self._note_cells(calls)
        self._sending.assign()

    def submit_group(self, calls: list[Call], places: list[tuple[int, int]]) -> None:
        """Queue calls that are placed together, each on its node and rank."""
        if self._closed is not None or any(node not in self._members for node, _ in places):
            lost = self._closed or self._failure("NodeLostError", "a node of the broadcast went away before it began")
            for call in calls:
                call.sink.resolve(call, lost)
            return
        now = time.monotonic()
        for call in calls:
            call.asked = now
            self._calls[call.id] = call
            self._deadlines.add(call)
        members = [(call.id, node, rank) for call, (node, rank) in zip(calls, places, strict=True)]
        self._scheduler.submit_group(members, caller=calls[0].caller)
        self._note_cells(calls)
        self._sending.assign()

    def cancel(self, calls: Iterable[Call]) -> None:
        """Stop calls, wherever they are."""
        wanted = dict.fromkeys(call for call in calls if call.id in self._calls and not call.cancelled)
        if not wanted:
            return
        for call in wanted:
            call.cancelled = True
            if call.on is not None:
                self._members[call.on].link.send_cancel(call)
        queued = (call.id for call in wanted if call.on is None)
        for number in self._scheduler.give_up(queued, lambda number: self._calls[number].cancelled):
            self._end_cancelled(self._calls[number])
        for call in filter(self._retrying.forget, wanted):
            self._end_cancelled(call)
        self._sending.assign()

    def cancel_cell(self, cell: str) -> None:
        """Stop every call that a cell of a notebook has sent, and those of its that are still to come."""
        self._interrupted.add(cell)
        self.cancel([call for call in self._calls.values() if call.cell == cell])

    def _note_cells(self, calls: Sequence[Call]) -> None:
        """Record the cells of calls that have come, and stop those of interrupted ones."""
        if self.cells is not None:
            for call in calls:
                self.cells.sent(str(task_of(call.id)), call.cell)
            if self._interrupted:
                self.cancel([call for call in calls if call.cell in self._interrupted])

    def cancel_all(self) -> None:
        """Stop every call."""
        in_parts(self._engine.post, self.cancel, list(self._calls.values()))

    def close(self, why: str | Answer) -> None:
        """Answer everything that is still open, and refuse what comes; the first reason holds."""
        if self._closed is None:
            self._closed = self._failure("PoolClosedError", why) if isinstance(why, str) else why
        self._scheduler.clear()
        self._retrying.close()
        self._deadlines.close()
        in_parts(self._engine.post, self._end_closed, list(self._calls.values()))

    async def leave(self, why: str) -> None:
        """Close, and wait until every open call has its answer."""
        self.close(why)
        await self._engine.caught_up()

    def credit(self, call: Call, items: int) -> None:
        """Allow a streaming call to send more items."""
        if call.on is not None and call.id in self._calls:
            call.window.acknowledged(items)
            self._members[call.on].link.send_credit(call, items)

    def send_input(self, call: Call, send: Callable[[NodeLink], None]) -> bool:
        """Send something to a running call's input; False when it no longer runs."""
        if call.on is None or call.id not in self._calls:
            return False
        send(self._members[call.on].link)
        return True

    def add(self, member: Member) -> None:
        """Open a node for calls."""
        self._members[member.index] = member
        member.begin(self._engine, lambda call, why: self._unsent(member, call, why))
        self._scheduler.add_node(member.index, member.lanes)
        self._sending.assign()

    def remove(self, node: int, why: str) -> None:
        """Close a node that is gone; its calls are tried elsewhere or fail."""
        member = self._members.pop(node, None)
        if member is None:
            return
        member.end()
        self.silent.removed(member)
        for lost in self._scheduler.remove_node(node):
            call = self._calls.get(lost)
            if call is None:
                continue
            answer = self._failure("NodeLostError", why, call=call, where=member.where)
            self._attempt_failed(call, answer, Failure.NODE_LOST)
        self._drop_groups(node, "a node of the broadcast went away before it began")
        self._sending.assign()

    def evacuate(self, node: int, why: str) -> None:
        """Begin what a silent node was sent elsewhere, as far as it may be."""
        self.silent.evacuate(node, why)
        self._drop_groups(node, why)

    def trust(self, node: int) -> None:
        """Use a node again that is heard."""
        for call in self.silent.trust(node):
            if self._observer is not None:
                self._observer.started(call, node)
        self._sending.assign()

    def set_aside(self, node: int, seat: int) -> None:
        """
        Begin nothing new on a node that is drained; what runs there continues.

        Args:
            node: Its index, which another machine is to take.
            seat: What the node is called here from now on.
        """
        member = self._members.pop(node)
        member.index = seat
        self._members[seat] = member
        for number in self._scheduler.set_aside(node, seat):
            # A closed pool has answered calls that are still on the node.
            if (call := self._calls.get(number)) is not None:
                call.on = seat
        for lane, _, _ in member.lanes:
            member.link.recall(lane, 0)
        self._drop_groups(node, "a node of the broadcast is going away")
        self._sending.assign()

    def forsake(self, node: int, why: str) -> None:
        """Fail the calls that wait for a node which will not come back."""
        waiting = self._scheduler.pinned_to(node)
        in_parts(self._engine.post, lambda part: self._drop(self._scheduler.withdraw(*part), why), waiting)
        self._drop([call.id for call in self._retrying.waiting if call.node == node], why)
        self._sending.assign()

    # Frames from nodes.

    def on_announced(self, node: int, frame: Frame) -> bool:
        """Return whether buffers are wanted that a node is about to send for a call, as `announced` does."""
        member = self._members.get(node)
        if frame.kind == Kind.BLOB:
            return member is not None and member.announced(frame)
        (number,) = CALL.unpack_from(frame.body)
        if number in self.silent.attempts:
            return frame.kind != Kind.ITEM
        return announced(self._calls.get(number), member, frame, over=self._closed is not None)

    def on_frame(self, node: int, frame: Frame, fds: tuple[int, ...]) -> None:
        """Take a frame about a call, from a node that may be leaving."""
        member = self.members.get(node)
        if member is None:
            close_all(fds)
            return
        match frame.kind:
            case Kind.RESULT:
                self.on_result(member, frame, fds)
            case Kind.RECALLED:
                self.on_recalled(member, frame)
            case Kind.ITEM:
                take_item(self._calls.get(*CALL.unpack_from(frame.body)), member, frame, fds)
            case Kind.CREDIT:
                take_credit(self._calls.get(*CALL.unpack_from(frame.body)), member, frame)
            case Kind.BLOB:
                member.came(frame, fds)

    def on_result(self, member: Member, frame: Frame, fds: tuple[int, ...]) -> None:
        """Take a RESULT frame."""
        body = frame.body
        number, status, seconds, began = decode_result(body)
        call = self._calls.get(number)
        # All that may be wrong with the frame is found before the call is touched: it is still to be answered then.
        payload = decode(body, RESULT.size, fds, member.trust, member.there) if status == Status.OK else None
        text = b"" if payload else ending(status, body[RESULT.size :], fds)
        if call is not None and call.on == member.index:
            member.link.answered(call)
        elif (attempt := self.silent.answered(member, number)) is not None:
            call = self.silent.won(attempt, status)
        else:
            return
        self._sending.finished(number, member.node, seconds)
        if call is not None:
            self._settle(call, member, answer_of(call, member, status, payload, text, seconds, self.pool, began))
        if self._scheduler.queued:
            self._sending.assign()

    def on_recalled(self, member: Member, frame: Frame) -> None:
        """Requeue calls that had not begun."""
        self._scheduler.recalled(LaneKey(member.index, frame.lane))
        for number in reversed(decode_calls(frame.body)):
            call = self._calls.get(number)
            if call is None or call.on != member.index:
                if self.silent.answered(member, number) is not None:
                    self._scheduler.finished(number, now=self._engine.loop.time())
                continue
            member.link.answered(call)
            self._scheduler.finished(number, now=self._engine.loop.time())
            call.on = None
            if self._closed is not None:
                continue
            if call.cancelled:
                self._end_cancelled(call)
            elif not call.broadcast:
                self._sending.queue(call, first=True)
            elif member.index != member.node:
                self._end(call, self._failure("NodeLostError", "a node of the broadcast is going away", call=call))
            else:
                rank = next(rank for lane, rank, _ in member.lanes if lane == call.lane)
                self._scheduler.submit_group([(number, member.node, rank)], caller=call.caller)
        self._sending.assign()

    # Inside.

    def _settle(self, call: Call, member: Member, answer: Answer) -> None:
        if answer.status in (Status.OK, Status.STREAMED, Status.RAISED):
            self._sending.kept.note(call, member)
        if answer.status in (Status.OK, Status.STREAMED, Status.CANCELLED):
            self._end(call, answer)
        else:
            failure = Failure.FAILED
            if answer.status == Status.FAILED:
                answer.text = completed(call, answer.text, self._calls.get)
                failure = Failure.WORKER_SPENT if answer.not_begun else failure
            self._attempt_failed(call, answer, failure)

    def _unsent(self, member: Member, call: Call, why: str, kind: str = "RefError") -> None:
        """End a call that cannot be sent, such as one that needs what was lost with another node."""
        if call.on == member.index and call.id in self._calls:
            self._sending.finished(call.id, member.index)
            self._end(call, self._failure(kind, why, call=call, where=member.where))
            # Its slot is free again, and what waits for one was passed over.
            self._engine.loop.call_soon(self._sending.assign)

    def _drop_groups(self, node: int, why: str) -> None:
        # A broadcast is to the nodes that it found: none that comes later takes a place in it.
        waiting = self._scheduler.withdraw(*self._scheduler.groups_for(node))
        in_parts(self._engine.post, lambda part: self._drop(part, why), sorted(waiting))

    def _drop(self, waiting: Iterable[int], why: str) -> None:
        for call in filter(None, map(self._calls.get, sorted(waiting))):
            self._end(call, self._failure("NodeLostError", why, call=call))

    def _attempt_failed(self, call: Call, answer: Answer, failure: Failure) -> None:
        if self._closed is not None and failure is Failure.NODE_LOST:
            self._end_closed([call])
            return
        # A stream begun again would give its first items twice, or lose what it was fed; a broadcast begins as a whole.
        over = call.cancelled or call.gave or bool(call.broadcast) or call.feeder is not None
        self._retrying.failed(call, answer, failure, over=over or self._closed is not None)

    def _renew(self, call: Call, answer: Answer, decision: Decision) -> None:
        if self._observer is not None:
            self._observer.ended(call, answer, again=True, delay=decision.delay)
        call.retries, call.interruptions = decision.retries, decision.interruptions
        del self._calls[call.id]
        call.begin_again()
        self._calls[call.id] = call

    def _send_again(self, call: Call) -> None:
        self._sending.queue(call, first=True)
        # It may be a timer that sends it.
        self._engine.loop.call_soon(self._sending.assign)

    def _end(self, call: Call, answer: Answer) -> None:
        self._retrying.forget(call)
        del self._calls[call.id]
        call.on = None
        if self.silent.attempts:
            self.silent.ended(call)
        if call.feeder is not None:
            call.feeder.stop()
        if self._observer is not None:
            self._observer.ended(call, answer)
        call.sink.resolve(call, answer)
        if self.on_progress is not None:
            self.on_progress()

    def _end_closed(self, calls: Iterable[Call]) -> None:
        for call in calls:
            if call.id in self._calls and self._closed is not None:
                self._end(call, closed(call, self._closed, self.pool))

    def _end_cancelled(self, call: Call) -> None:
        self._end(call, Answer(Status.CANCELLED, None, b"", function=call.function.name))
