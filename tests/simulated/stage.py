"""A client's dispatch on virtual time, with scripted nodes, in one thread."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Self

from skyward.engine.calls.answer import Answer
from skyward.engine.calls.broadcast_calls import spread
from skyward.engine.calls.call import Call, CapturedFunction
from skyward.engine.calls.dispatch import Dispatch
from skyward.engine.nodes.member import Member
from skyward.engine.nodes.membership import Membership
from skyward.engine.nodes.node_link import NodeLink
from skyward.link.frames import Frame
from skyward.link.payload import Payload, load
from skyward.link.payload_making import dump
from skyward.model.instances.instance import InstanceInfo
from tests.simulated.loop import VirtualLoop
from tests.simulated.node import Script, ScriptedNode, by_arguments
from tests.simulated.plan import Plan

FUNCTION = CapturedFunction("act", b"act".ljust(16, b"."), b"act", Payload((), b""))
"""A function that only its calls' arguments tell anything of."""

LONG = 100.0
"""Seconds after which whatever is to happen has happened."""


class Here:
    """
    Be what the engine's loop is to the dispatch, without a thread.

    Args:
        loop: The loop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop

    def post(self, do: Callable[..., object], *args: Any) -> None:
        """Have something done in the loop soon."""
        self.loop.call_soon(do, *args)


class Heard:
    """
    Keep what a caller hears that waits for calls.

    Args:
        now: Tells the time.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.answers: list[Answer] = []
        self.ends: list[tuple[int, float]] = []
        self.items: list[Any] = []
        self.is_stalled = False

    def resolve(self, call: Call, answer: Answer) -> None:
        """Take an answer."""
        self.answers.append(answer)
        self.ends.append((call.index, self._now()))

    def item(self, call: Call, payload: Payload) -> None:
        """Take an item of a stream."""
        self.items.append(load(payload))

    def stalled(self) -> bool:
        """Tell whether items wait that no caller has taken."""
        return self.is_stalled

    @property
    def outcomes(self) -> list[Any]:
        """List what came of each call, in the order of their ends: a value, or the name of an error."""
        return [type(answer.error()).__name__ if answer.failed else answer.value() for answer in self.answers]

    @property
    def outcome(self) -> Any:
        """Give what came of the only call."""
        [outcome] = self.outcomes
        return outcome


class Attempts:
    """Keep when attempts began and ended, as events tell of them."""

    def __init__(self) -> None:
        self.begun: list[tuple[int, int]] = []
        self.over: list[tuple[int, bool]] = []
        self.delays: list[float] = []

    def started(self, call: Call, node: int) -> None:
        """Take note that an attempt began, and where."""
        self.begun.append((call.attempt, node))

    def ended(self, call: Call, answer: Answer, *, again: bool = False, delay: float = 0.0) -> None:
        """Take note that an attempt ended, whether another follows, and when."""
        self.over.append((call.attempt, again))
        if again:
            self.delays.append(delay)


class Stage:
    """
    Dispatch calls to scripted nodes.

    Args:
        nodes: For each node the slots of its lanes; the dispatch has them from the start.
        ranks: How many lanes are ranks of their own on each node; the others repeat the last one's.
        script: What becomes of each attempt.
        buffer: Calls that may always be sent ahead to a busy slot.
        twice: Whether results arrive twice.
    """

    def __init__(
        self,
        *nodes: Sequence[int],
        ranks: int = 1,
        script: Script = by_arguments,
        buffer: int = 0,
        twice: bool = False,
    ) -> None:
        self.loop = VirtualLoop(sockets=False)
        self.ranks = ranks
        self.observer = Attempts()
        self.membership = Membership("job")
        self.dispatch = Dispatch(
            Here(self.loop),  # type: ignore[arg-type]  # the loop is all it needs
            pool="train",
            buffer=buffer,
            observer=self.observer,
            membership=self.membership.of,
        )
        self.nodes: dict[int, ScriptedNode] = {}
        self._script = script
        self._twice = twice
        self._seats = itertools.count(-1, -1)
        self.errors: list[BaseException] = []
        self.loop.set_exception_handler(lambda loop, context: self.errors.append(context["exception"]))
        for slots in nodes:
            self.add(slots)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.close()
        assert [] == self.errors

    # Nodes.

    def add(self, slots: Sequence[int] = (1,), index: int | None = None) -> ScriptedNode:
        """Have another node, which is ready at once."""
        number = len(self.nodes) if index is None else index
        node = ScriptedNode(self.loop, number, slots=slots, script=self._script, twice=self._twice)
        lanes = tuple((lane, min(lane, self.ranks - 1), size) for lane, size in enumerate(slots))
        member = Member(number, NodeLink(node), f"node {number} (cloud i-{number})", lanes)

        def hear(frame: Frame, fds: tuple[int, ...]) -> None:
            self.dispatch.on_frame(member.index, frame, fds)

        node.on_frame = hear
        node.on_closed = lambda error: self._lost(member, str(error))
        self.nodes[number] = node
        self.membership.join(number, InstanceInfo(node=number))
        self.dispatch.add(member)
        return node

    def _lost(self, member: Member, why: str) -> None:
        if member.index == member.node:
            self.membership.drop(member.node)
        self.dispatch.remove(member.index, why)

    def leave(self, index: int) -> int:
        """Begin nothing new on a node; give the seat that it has from now on."""
        seat = next(self._seats)
        self.membership.drop(index)
        self.dispatch.set_aside(index, seat)
        return seat

    # Calls.

    def heard(self) -> Heard:
        """Make a caller that waits."""
        return Heard(self.loop.time)

    def call(self, *plans: Plan, sink: Any = None, **options: Any) -> Call:
        """Make a call whose attempts go as planned, one plan for each."""
        return Call(FUNCTION, dump((plans, {})), sink or self.heard(), **options)

    def send(self, *plans: Plan, **options: Any) -> Call:
        """Make a call and send it."""
        call = self.call(*plans, **options)
        self.dispatch.submit([call])
        return call

    def broadcast(self, *plans: Plan, sink: Any = None, **options: Any) -> list[Call]:
        """Send a call to every rank of the nodes that there are."""
        first = self.call(*plans, sink=sink, **options)
        members = [self.dispatch.members[index] for index in sorted(self.dispatch.members) if index >= 0]
        calls, places = spread(first, [first.sink], members, self.ranks, self.membership)
        self.dispatch.submit_group(calls, places)
        return calls

    # Time.

    def run(self, seconds: float = LONG) -> None:
        """Let so much time go by."""
        self.loop.run_until_complete(asyncio.sleep(seconds))

    def outcome(self, *plans: Plan, **options: Any) -> Any:
        """Send a call, and tell what came of it."""
        call = self.send(*plans, **options)
        self.run()
        return call.sink.outcome  # type: ignore[attr-defined]  # a `Heard`
