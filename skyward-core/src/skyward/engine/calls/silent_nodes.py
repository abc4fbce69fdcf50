"""Calls on nodes that are silent: begun elsewhere, claimed again if the node comes back, answered once in any case."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from skyward.engine.calls.answer import Answer
from skyward.engine.calls.call import Call
from skyward.link.messages import Status
from skyward.plan.pool.retry_policy import Decision, Failure
from skyward.plan.pool.scheduling import Scheduler

if TYPE_CHECKING:
    from skyward.engine.calls.call import CapturedFunction
    from skyward.engine.nodes.member import Member


class Attempt:
    """
    Hold an attempt that its node may still answer, although its call no longer waits for that alone.

    Args:
        call: The call, as long as the attempt runs on its node.
        member: The node.
        open: Whether its result may be the call's.
    """

    __slots__ = ("began", "call", "function", "id", "interruptions", "lane", "member", "members", "open", "sent")

    def __init__(self, call: Call, member: Member, *, open: bool) -> None:  # noqa: A002  # it is the field
        self.call = call
        self.member = member
        self.open = open
        self.id: int = call.id
        self.lane: int = call.lane
        self.function: CapturedFunction = call.function
        self.members: int = call.members
        self.interruptions: int = call.interruptions
        self.began: float = call.began
        self.sent: int = call.sent


class SilentNodes:
    """
    Know which nodes are suspected, and the attempts that others have overtaken; lives in the engine's loop.

    Args:
        scheduler: Knows which calls are on which node.
        members: The ready nodes by their index.
        calls: The open calls by the ids of their latest attempts.
        renew: Makes a call its next attempt, after an answer.
        queue: Sends a call again, before those that wait.
        forget: Takes a call out that waits for the time of its next attempt; returns whether it did.
        fail: Records that an attempt failed.
        failure: Makes the answer of an attempt that failed: kind of error, message, call, place.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        members: Mapping[int, Member],
        calls: dict[int, Call],
        *,
        renew: Callable[[Call, Answer, Decision], None],
        queue: Callable[[Call], None],
        forget: Callable[[Call], bool],
        fail: Callable[[Call, Answer, Failure], None],
        failure: Callable[..., Answer],
    ) -> None:
        self._scheduler = scheduler
        self._members = members
        self._calls = calls
        self._renew = renew
        self._queue = queue
        self._forget = forget
        self._fail = fail
        self._failure = failure
        self._suspected: set[Member] = set()
        self.attempts: dict[int, Attempt] = {}

    def suspected(self, member: Member) -> bool:
        """Return whether a node is silent, so that nothing new begins there."""
        return member in self._suspected

    def suspect(self, node: int) -> None:
        """Begin nothing new on a node, until it is heard or lost."""
        if (member := self._members.get(node)) is not None:
            self._suspected.add(member)
            self._scheduler.suspend(node)

    def evacuate(self, node: int, why: str) -> None:
        """
        Begin the calls of a silent node elsewhere, those that may: what the node answers later may still count.

        Args:
            node: The node.
            why: What its calls' attempts are said to have come to.
        """
        member = self._members.get(node)
        if member is None:
            return
        for number in sorted(self._scheduler.on(node), reverse=True):
            call = self._calls.get(number)
            if call is None or not _may_move(call) or member.link.unsent(call):
                continue
            self.attempts[number] = Attempt(call, member, open=True)
            answer = self._failure("NodeLostError", why, call=call, where=member.where)
            self._renew(call, answer, Decision(True, call.retries, call.interruptions - 1))
            self._queue(call)

    def trust(self, node: int) -> list[Call]:
        """
        Use a node again that is heard; its calls which have not begun elsewhere are its own again.

        Returns:
            The calls that run there as before.
        """
        member = self._members.get(node)
        if member is None or member not in self._suspected:
            return []
        self._suspected.discard(member)
        begun = self._scheduler.on(node)
        claimed = []
        for attempt in [one for one in self.attempts.values() if one.member is member and one.open]:
            call = attempt.call
            if call.on is None and (self._forget(call) or self._scheduler.withdraw(call.id)):
                self._claim(attempt)
                claimed += [call] if begun.get(attempt.id) else []
        if member.index == member.node:
            self._scheduler.resume(node)
        return claimed

    def overdue(self) -> None:
        """End attempts on silent nodes that have run for longer than their timeout, by the client's clock."""
        for member in self._suspected:
            for number, begun in self._scheduler.on(member.index).items():
                call = self._calls.get(number)
                if call is None or not begun or member.link.unsent(call):
                    continue
                if 0.0 < call.timeout <= call.ran:
                    self.abandon(call, member)
                    facts = {"error": "TaskTimeoutError", "timeout": call.timeout, "silent": True}
                    answer = self._failure("TaskTimeoutError", "", call=call, where=member.where)
                    answer.text, answer.node = json.dumps(facts).encode(), member.node
                    call.on = None
                    self._fail(call, answer, Failure.FAILED)

    def answered(self, member: Member, number: int) -> Attempt | None:
        """
        Take an attempt of a node that answers it, or returns it.

        Raises:
            ProtocolError: If the node cannot have read what it answers.
        """
        attempt = self.attempts.get(number)
        if attempt is None or attempt.member is not member:
            return None
        del self.attempts[number]
        member.link.answered(attempt)
        return attempt

    def won(self, attempt: Attempt, status: int) -> Call | None:
        """
        Return the call that an attempt's result is the answer of, and stop what was begun in its place.

        Args:
            attempt: The attempt, which its node has answered.
            status: How it ended; a failure is not the call's, as another attempt is on its way.
        """
        call = attempt.call
        if not attempt.open or status != Status.OK or self._calls.get(call.id) is not call:
            return None
        if call.on is not None:
            self.abandon(call, self._members[call.on])
        elif not self._forget(call):
            self._scheduler.withdraw(call.id)
        return call

    def ended(self, call: Call) -> None:
        """Stop the other attempts of a call that has its answer."""
        for attempt in self.attempts.values():
            if attempt.call is call and attempt.open:
                attempt.open = False
                attempt.member.link.send_cancel(attempt)

    def removed(self, member: Member) -> None:
        """Drop the attempts of a node that is gone."""
        self._suspected.discard(member)
        for number in [number for number, one in self.attempts.items() if one.member is member]:
            del self.attempts[number]

    def _claim(self, attempt: Attempt) -> None:
        """Make an attempt the one that its call waits for, as if none had been begun after it."""
        call = attempt.call
        del self.attempts[attempt.id], self._calls[call.id]
        # Its attempts go on being counted, so that none gets the id of another one.
        call.id, call.interruptions = attempt.id, attempt.interruptions
        call.on, call.lane, call.members, call.sent = attempt.member.index, attempt.lane, attempt.members, attempt.sent
        call.began = attempt.began
        self._calls[call.id] = call

    def give_up(self, call: Call) -> list[Call]:
        """Stop a call wherever it is; return which are over with it: those of a broadcast that waits are together."""
        if call.on is not None:
            self.abandon(call, self._members[call.on])
        elif not self._forget(call):
            return [self._calls[number] for number in sorted(self._scheduler.withdraw(call.id))]
        return [call]

    def abandon(self, call: Call, member: Member) -> None:
        """Stop the attempt of a call that is on a node, whose answer is not waited for."""
        self.attempts[call.id] = Attempt(call, member, open=False)
        member.link.send_cancel(call)


def _may_move(call: Call) -> bool:
    """Return whether a call may be begun elsewhere while its node may still run it."""
    once = call.gave or call.streams or call.feeder is not None or bool(call.function.needs)
    return call.interruptions > 0 and call.node is None and not (call.cancelled or call.broadcast or once)
