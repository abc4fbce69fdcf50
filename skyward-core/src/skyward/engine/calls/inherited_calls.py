"""Calls that a pool's nodes have from an earlier client: their answers, each once."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from attrs import evolve, frozen

from skyward.blocking import in_thread
from skyward.engine.calls.answer import Answer
from skyward.engine.calls.call_failures import ending, failure
from skyward.engine.calls.waiters import Future
from skyward.engine.instances.detached_records import FED, STREAM, KeptAnswer, LeftCall, forget_detached
from skyward.errors import PoolClosedError, ProtocolError
from skyward.link.descriptors import handed_out
from skyward.link.frames import Frame, Kind, encode
from skyward.link.messages import CALL, RESULT, Status, decode_calls, decode_result, task_of
from skyward.link.payload import decode
from skyward.link.segment import in_memory
from skyward.node.agent.fds import close_all

if TYPE_CHECKING:
    from skyward.engine.instances.adopted import Adopted
    from skyward.engine.nodes.node_shell import NodeShell
    from skyward.engine.pool.event_loop import EngineLoop
    from skyward.model.spec.worker_layout import Worker

__all__ = ["AttachedCall", "InheritedCalls"]

_log = logging.getLogger(__name__)


@frozen(kw_only=True, eq=False)
class AttachedCall:
    """
    A call that was under way when its pool was detached.

    Args:
        id: Its id, by which calls are in the order in which they were made.
        function: The function's name.
        node: The node that it was left on; None where that is lost.
        future: Promises its result, as those of `call > pool` do.
    """

    id: int
    function: str
    node: int | None
    future: Future[Any]

    @property
    def done(self) -> bool:
        """Return whether it has ended."""
        return self.future.done()

    @property
    def used(self) -> bool:
        """Return whether the program has asked for its result, or cancelled it."""
        return self.future.used

    def result(self, timeout: float | None = None) -> Any:
        """
        Wait for the result.

        Args:
            timeout: Seconds to wait; None waits as long as it takes.

        Raises:
            TimeoutError: If it has not come by then; the call runs on.
            NodeLostError: If its node is lost, or has nothing of it.
            Exception: What the function raised.
        """
        return self.future.result(timeout)


_NOWHERE = "its node has neither the call nor its result"

UNNAMED = "(unnamed)"
"""The function of a call that its client, which died, had not written down yet."""


class Unused(NamedTuple):
    """A result that has arrived, and was not used by the program."""

    call: LeftCall
    answer: KeptAnswer


class InheritedCalls:
    """
    Take the answers of these calls; lives in the engine's loop.

    Args:
        engine: The loop.
        pool: The pool's name.
        adopted: The machines that the pool begins with; None where there are none.
        node: Finds a node by its index.
        caught_up: Waits until what calls printed is where it is shown.
    """

    def __init__(
        self,
        engine: EngineLoop,
        pool: str,
        adopted: Adopted | None,
        node: Callable[[int], NodeShell | None],
        caught_up: Callable[[], None],
    ) -> None:
        self._engine = engine
        self._pool = pool
        self._node = node
        self._open: dict[int, dict[int, tuple[LeftCall, AttachedCall]]] = {}
        inheritance = adopted.inheritance if adopted is not None else None
        self._answers = dict(inheritance.answers) if inheritance is not None else {}
        self._arrived: list[tuple[Unused, AttachedCall]] = []
        self._withheld: list[Unused] | None = None
        self._inherits = self.waits = inheritance is not None
        self._owned = inheritance is not None and inheritance.owned
        # Whether another record of the pool takes the place of the one that it was attached by.
        self.recorded = False
        self._pool_id = adopted.pool_id if adopted is not None else ""
        self.ends_at = adopted.ends_at if adopted is not None else 0.0
        self.lost_before = inheritance.lost if inheritance is not None else ()
        self.places: tuple[int, ...] = adopted.places if adopted is not None else ()
        self.members = adopted.members if adopted is not None else 0
        self._last = inheritance.last_call if inheritance is not None else 0
        self._progress = asyncio.Event()
        # Those of a client that died end later: a node may have been sent them since that was written down.
        self._lost: dict[int, tuple[LeftCall, AttachedCall]] = {}
        made: list[AttachedCall] = []
        for index, calls in inheritance.nodes.items() if inheritance is not None else ():
            for call in calls:
                attached = self._promised(call, index, caught_up)
                self._open.setdefault(index, {})[call.id] = call, attached
                made.append(attached)
        for call in inheritance.lost if inheritance is not None else ():
            attached = self._promised(call, None, caught_up)
            made.append(attached)
            self._lost[call.id] = call, attached
        if not self._owned:
            self._end_lost()
        self._caught_up = caught_up
        self.all = _in_order(made)

    def buffer(self, workers: Worker) -> int | None:
        """Return how many calls may be sent ahead; None where none may be recalled, as these might be with them."""
        return workers.buffer if workers.reuse_processes and not self._inherits else None

    async def resume(self, shells: Sequence[NodeShell]) -> None:
        """Ask the nodes for what they have kept, once: until then they can be returned as they were."""
        if not self.waits:
            return
        # Late, because few pools are attached.
        from skyward.engine.instances.kept_answers import forget_answers

        self.waits = False
        self._end_lost()
        if not self.recorded:
            await in_thread(forget_detached, self._pool_id)
        await in_thread(forget_answers, self._pool_id)
        asked = [shell.ask({"resume": True}) for shell in shells if shell.rented.resumed is not None]
        for failed in await asyncio.gather(*asked, return_exceptions=True):
            if isinstance(failed, Exception):
                # Its link says what becomes of it.
                _log.warning("inherited.not_resumed pool=%s reason=%s", self._pool_id, failed)

    def open_on(self, node: int) -> tuple[LeftCall, ...]:
        """List the calls that a node has not answered yet, oldest first."""
        return tuple(call for call, _ in self._open.get(node, {}).values())

    def idle(self, node: int) -> bool:
        """Return whether a node has answered all of them."""
        return not self._open.get(node)

    async def settled(self) -> None:
        """Wait until all of them have ended."""
        while any(self._open.values()):
            self._progress.clear()
            await self._progress.wait()

    def announced(self, node: int, frame: Frame) -> bool | None:
        """Return whether buffers are wanted that a node is about to send for one of them; None if for none of them."""
        (number,) = CALL.unpack_from(frame.body)
        if not self._is_old(number):
            return None
        return frame.kind == Kind.RESULT and number in self._open.get(node, {})

    def takes(self, shell: NodeShell, frame: Frame, fds: tuple[int, ...]) -> bool:
        """
        Take a frame about a call, if it is one of them.

        Raises:
            ProtocolError: If it makes no sense.
        """
        if not self._last or frame.kind not in (Kind.RESULT, Kind.RECALLED, Kind.ITEM, Kind.CREDIT):
            return False
        if frame.kind == Kind.RECALLED:
            # None was sent ahead by this client, so a node returns them only when it is drained.
            self._lose(shell.index, decode_calls(frame.body), "its node is going away, and had not begun it")
            return False
        if not self._is_old(*CALL.unpack_from(frame.body)):
            return False
        if frame.kind != Kind.RESULT:
            close_all(fds)
            return True
        number, status, seconds, _ = decode_result(frame.body)
        found = self._open.get(shell.index, {}).get(number)
        if found is None:
            # The client before had it, or it is sent once more.
            close_all(fds)
            return True
        payload = decode(frame.body, RESULT.size, fds, shell.trust, None) if status == Status.OK else None
        text = b"" if payload else ending(status, frame.body[RESULT.size :], fds)
        if status == Status.FAILED:
            text = json.dumps({**json.loads(text), "timeout": found[0].timeout}).encode()
        del self._open[shell.index][number]
        answer = Answer(
            status,
            payload,
            text,
            where=shell.where,
            function=found[0].function,
            seconds=seconds,
            node=shell.index,
            pool=self._pool,
            trust=shell.trust,
        )
        kept = KeptAnswer(number, encode(Kind.RESULT, frame.body, lane=frame.lane, fds=len(fds)), payload)
        self._arrived.append((Unused(found[0], kept), found[1]))
        self._end(found[1], answer)
        return True

    def unused(self) -> list[Unused]:
        """List the results that have arrived, and were not used: another client is to have them."""
        if self._withheld is not None:
            return self._withheld
        return [unused for unused, attached in self._arrived if not attached.used]

    def withhold(self, why: str) -> None:
        """Raise an error in place of results that were not used, from now on: they are another client's."""
        error = PoolClosedError(why, pool=self._pool)
        self._withheld = [unused for unused, attached in self._arrived if attached.future.withhold(error)]

    def came_back(self, shell: NodeShell, known: Mapping[str, Any]) -> None:
        """
        Take what a node says of its calls, after what is here of them: those that it has nothing of are lost.

        Args:
            shell: The node.
            known: Its answer.

        Raises:
            ProtocolError: If it makes no sense.
        """
        running, ended = known.get("running"), known.get("ended")
        if not isinstance(running, list) or not isinstance(ended, list):
            raise ProtocolError("A node did not say which calls it has.")
        for number in [number for number in self._open.get(shell.index, {}) if number in self._answers]:
            frame, buffers = self._answers.pop(number)
            fds = tuple(map(in_memory, buffers))
            with handed_out(fds):
                self.takes(shell, frame, fds)
        there = {number for number in (*running, *ended) if isinstance(number, int)}
        if self._owned:
            self._correct(shell, there, known)
            return
        missing = [number for number in self._open.get(shell.index, {}) if number not in there]
        self._lose(shell.index, missing, _NOWHERE)

    def _known(self, number: int) -> LeftCall | None:
        """Take a call out of those that were written down, whichever node it was on then."""
        for calls in (self._lost, *self._open.values()):
            if (found := calls.pop(number, None)) is not None:
                return found[0]
        return None

    def _end_lost(self) -> None:
        for call, attached in self._lost.values():
            self._end(attached, failure(self._pool, "NodeLostError", call.lost))
        self._lost.clear()

    def _correct(self, shell: NodeShell, there: set[int], known: Mapping[str, Any]) -> None:
        """Update what a client wrote down that died a moment later: calls came and went since then."""
        mine = self._open.setdefault(shell.index, {})
        lanes = dict(zip(known["running"], known.get("lanes") or (), strict=False))
        # Its client had the results of these.
        had = {number for number in known.get("delivered") or () if number not in there}
        gone = {number for number in had if self._known(number) is not None}
        made = []
        for number in sorted(there - mine.keys(), key=task_of):
            if self._is_old(number):
                # Nodes return calls that they have not begun, which are sent to others then.
                before = self._known(number) or LeftCall(id=number, function=UNNAMED)
                gone.add(number)
                call = evolve(
                    before, lane=int(lanes.get(number, 0)), lost=before.lost if before.lost in (STREAM, FED) else ""
                )
                attached = self._promised(call, shell.index, self._caught_up)
                mine[number] = call, attached
                made.append(attached)
        self.all = _in_order((*(one for one in self.all if one.id not in gone), *made))
        # Until the other nodes have said what they have.
        for number in [number for number in mine if number not in there]:
            call, attached = mine.pop(number)
            self._lost[number] = evolve(call, lost=call.lost or _NOWHERE), attached
        self.lost_before = tuple(call for call, _ in self._lost.values())
        for number, (call, attached) in list(mine.items()):
            if call.lost:
                del mine[number]
                if shell.link is not None:
                    shell.link.send_cancel(call)
                self._end(attached, failure(self._pool, "NodeLostError", call.lost))
        _log.info("inherited.corrected node=%s delivered=%d unwritten=%d", shell.index, len(gone), len(made))

    def lost(self, node: int, why: str) -> None:
        """Answer what a node has not answered, because it is lost."""
        self._lose(node, list(self._open.get(node, {})), why)

    def close(self, why: str) -> None:
        """Answer all that is still open, because the pool is left."""
        self._end_lost()
        for calls in self._open.values():
            for _, attached in list(calls.values()):
                self._end(attached, failure(self._pool, "PoolClosedError", why))
            calls.clear()

    def _promised(self, call: LeftCall, node: int | None, caught_up: Callable[[], None]) -> AttachedCall:
        def cancel(_: object) -> None:
            self._engine.post(self._cancel, node, call)

        future: Future[Any] = Future(cancel, caught_up)
        # Anything, as long as it is open: what is cancelled is known.
        future._call = call  # type: ignore[assignment]
        return AttachedCall(id=call.id, function=call.function, node=node, future=future)

    def _cancel(self, node: int | None, call: LeftCall) -> None:
        shell = None if node is None else self._node(node)
        if shell is not None and shell.link is not None:
            shell.link.send_cancel(call)

    def _is_old(self, number: int) -> bool:
        return 0 < task_of(number) <= self._last

    def _lose(self, node: int, numbers: Iterable[int], why: str) -> None:
        for number in numbers:
            found = self._open.get(node, {}).pop(number, None)
            if found is not None:
                answer = failure(self._pool, "NodeLostError", why, where=f"node {node}")
                answer.function = found[0].function
                self._end(found[1], answer)

    def _end(self, attached: AttachedCall, answer: Answer) -> None:
        answer.function = answer.function or attached.function
        future = attached.future
        future._call = None
        if not future.cancelled():
            future.set_result(answer)
        self._progress.set()


def _in_order(calls: Iterable[AttachedCall]) -> tuple[AttachedCall, ...]:
    return tuple(sorted(calls, key=lambda one: task_of(one.id)))
