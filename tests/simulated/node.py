"""A node that is a few objects in the client's own loop, at the other end of a link that is a queue in memory."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from skyward.link.failure import dump_failure
from skyward.link.frames import VERSION, Frame, Kind, Parser, encode, encode_json
from skyward.link.messages import CALL, CREDIT, ITEM, RECALL, RESULT, TASK, Status, TaskFlag, decode_calls
from skyward.link.payload import Payload, decode, load
from skyward.link.payload_making import dump
from skyward.node.worker.streams import Window, opening
from tests.simulated.plan import FOREVER, Ending, Plan, plan_of

_ATTEMPT_BITS = 48


class Mail:
    """
    Carry messages one way, in order, each within some seconds; nothing arrives while the link is cut.

    Args:
        loop: The loop whose clock it goes by.
        latency: Seconds that a message takes.
        take: Takes each message.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, latency: float, take: Callable[..., None]) -> None:
        self._loop = loop
        self._latency = latency
        self._take = take
        self._waiting: deque[tuple[Any, ...]] = deque()
        self._due = 0
        self._cut = self._closed = False

    def post(self, *message: Any) -> None:
        """Send a message."""
        if not self._closed:
            self._waiting.append(message)
            self._loop.call_later(self._latency, self._arrive)

    def cut(self) -> None:
        """Let nothing through."""
        self._cut = True

    def mend(self) -> None:
        """Let through what has waited, and what comes."""
        self._cut = False
        self._deliver()

    def empty(self) -> None:
        """Deliver all that is on its way, at once."""
        while self._waiting:
            self._take(*self._waiting.popleft())

    def close(self) -> None:
        """Lose what is on its way, and what is sent from now on."""
        self._closed = True
        self._waiting.clear()

    def _arrive(self) -> None:
        # Counted, because timers of one moment come in any order.
        self._due += 1
        self._deliver()

    def _deliver(self) -> None:
        while self._due and self._waiting and not self._cut:
            self._due -= 1
            self._take(*self._waiting.popleft())


class Task:
    """
    Hold an attempt of a call as its node sees it.

    Args:
        frame: The TASK frame.
        payload: The arguments.
        node: The node's number.
    """

    def __init__(self, frame: Frame, payload: Payload, node: int) -> None:
        self.call, self.timeout, self.members, self.broadcast, flags, self.digest = TASK.unpack_from(frame.body)
        self.attempt = (self.call >> _ATTEMPT_BITS) + 1
        self.lane = frame.lane
        self.node = node
        self.streams = bool(flags & TaskFlag.STREAM)
        self.held = bool(flags & TaskFlag.HELD)
        # A streamed argument stands there as its number.
        streams = opening.set(lambda index: index)  # type: ignore[arg-type, return-value]
        self.arguments, self.keywords = load(payload)
        opening.reset(streams)
        self.began = 0.0
        self.plan = Plan()
        self.taken: list[Any] = []
        self.cancelled = False
        self.window = Window()
        self.timers: list[asyncio.TimerHandle] = []
        self.given = 0


Script = Callable[[Task], Plan]
"""Says what becomes of an attempt, when it begins."""


def by_arguments(task: Task) -> Plan:
    """Take the plan from the call's arguments, one for each attempt."""
    return plan_of(tuple(one for one in task.arguments if isinstance(one, Plan)), task.attempt)


class ScriptedNode:
    """
    Answer what a client sends as a node does whose calls go as a script says.

    It is the client's `Link`: what `NodeLink` sends are real frames, and what comes back are, too.

    Args:
        loop: The loop it lives in, whose clock it goes by.
        index: Its number.
        slots: How many calls each lane runs at once.
        script: What becomes of each attempt.
        latency: Seconds that a frame takes, each way.
        twice: Whether results arrive twice, as after a connection that was lost before they were acknowledged.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        index: int = 0,
        *,
        slots: Sequence[int] = (1,),
        script: Script = by_arguments,
        latency: float = 0.001,
        twice: bool = False,
    ) -> None:
        self.index = index
        # Whether its link confirms what arrives, and the receipts of what it did not.
        self.confirms = True
        self.unconfirmed: list[Callable[[], None]] = []
        self.slots = tuple(slots)
        self.closed = False
        self.on_drained: Callable[[], None] | None = None
        self.on_frame: Callable[[Frame, tuple[int, ...]], None] = lambda frame, fds: None
        self.on_closed: Callable[[Exception | None], None] = lambda error: None
        self.received: list[Frame] = []
        self.begun: list[Task] = []
        self.cancelled: list[int] = []
        self._loop = loop
        self._script = script
        self._twice = twice
        self._here = Mail(loop, latency, self._hear)
        self._back = Mail(loop, latency, self._tell)
        self._running: dict[int, dict[int, Task]] = {lane: {} for lane in range(len(slots))}
        self._waiting: dict[int, deque[Task]] = {lane: deque() for lane in range(len(slots))}

    # What a link is to the client.

    connected = True
    backlog = queued = 0

    def send(
        self, frame: bytes, fds: Sequence[int] = (), hold: object = None, receipt: Callable[[], None] | None = None
    ) -> None:
        """Take a frame."""
        if self.closed:
            return
        [parsed] = Parser().feed(frame)
        # The client may close its own descriptors before the frame arrives.
        self._here.post(parsed, tuple(os.dup(fd) for fd in fds), receipt)

    def flush(self) -> None:
        """Do nothing: each frame is on its way at once."""

    def end(self) -> None:
        """Take note that nothing more comes."""

    def close(self, error: Exception | None = None) -> None:
        """Be let go of."""
        self.closed = True
        self._here.close()
        self._back.close()

    # What may happen to it.

    @property
    def running(self) -> list[Task]:
        """List what runs."""
        return [task for lane in self._running.values() for task in lane.values()]

    def cut(self) -> None:
        """Lose the connection, so that nothing comes through."""
        self._here.cut()
        self._back.cut()

    def mend(self) -> None:
        """Have a connection again, over which all comes that waited."""
        self._here.mend()
        self._back.mend()

    def lose(self, why: str = "its machine is gone", *, rescued: bool = False) -> None:
        """
        Be gone.

        Args:
            why: The reason.
            rescued: Whether the client gets what was finished before it takes the node as lost.
        """
        if rescued:
            self._back.empty()
        for task in self.running:
            self._stop(task)
        self.close()
        self.on_closed(ConnectionError(why))

    # Frames.

    def _tell(self, frame: Frame) -> None:
        self.on_frame(frame, ())

    def _say(self, kind: Kind, body: bytes, lane: int = 0) -> None:
        [frame] = Parser().feed(encode(kind, body, lane=lane))
        self._back.post(frame)

    def _hear(self, frame: Frame, fds: tuple[int, ...], receipt: Callable[[], None] | None) -> None:
        self.received.append(frame)
        if receipt is not None:
            receipt() if self.confirms else self.unconfirmed.append(receipt)
        if frame.kind == Kind.TASK:
            self._queue(Task(frame, decode(frame.body, TASK.size, fds), self.index))
            return
        if frame.kind == Kind.ITEM:
            self._take(frame, decode(frame.body, ITEM.size, fds))
            return
        for fd in fds:
            os.close(fd)
        match frame.kind:
            case Kind.CANCEL:
                self._cancel(*decode_calls(frame.body[: CALL.size]))
            case Kind.RECALL:
                self._give_back(frame.lane, RECALL.unpack(frame.body)[0])
            case Kind.CREDIT:
                self._credit(frame)
            case Kind.END:
                self._fed(frame)
            case Kind.HELLO:
                facts = {"version": VERSION, "hostname": f"node-{self.index}", "port": 1, "now": time.time()}
                self._say(Kind.WELCOME, json.dumps(facts).encode())
            case Kind.START:
                self._say(Kind.READY, json.dumps({"lanes": len(self.slots)}).encode())
            case Kind.REFRESH:
                self._say(Kind.REFRESHED, b"")
            case Kind.STOP:
                self._say(Kind.STOPPED, b"")

    # Calls.

    def _queue(self, task: Task) -> None:
        self._waiting[task.lane].append(task)
        self._begin_next(task.lane)

    def _begin_next(self, lane: int) -> None:
        while self._waiting[lane] and len(self._running[lane]) < self.slots[lane]:
            self._begin(self._waiting[lane].popleft())

    def _begin(self, task: Task) -> None:
        self._running[task.lane][task.call] = task
        if task.cancelled:
            self._answer(task, Status.CANCELLED)
            return
        task.began = self._loop.time()
        task.plan = self._script(task)
        self.begun.append(task)
        if task.timeout:
            self._later(task, task.timeout, lambda: self._failed(task, "TaskTimeoutError"))
        self._go_on(task)

    def _go_on(self, task: Task) -> None:
        """Yield as far as the window lets it; run on when all was yielded."""
        items = task.plan.items if task.streams else ()
        while task.given < len(items) and task.window.open:
            payload = dump(items[task.given])
            task.window.sent(payload.size)
            task.given += 1
            self._say(Kind.ITEM, ITEM.pack(task.call, 0) + payload.encode(), task.lane)
        if task.given == len(items) and task.plan.takes is None:
            task.given += 1
            self._run_on(task)

    def _run_on(self, task: Task) -> None:
        if task.plan.seconds != FOREVER:
            self._later(task, task.plan.seconds, lambda: self._end(task))

    def _later(self, task: Task, seconds: float, do: Callable[[], None]) -> None:
        task.timers.append(self._loop.call_later(seconds, do))

    def _end(self, task: Task) -> None:
        match task.plan.ends:
            case Ending.RETURNS if task.streams:
                self._answer(task, Status.STREAMED)
            case Ending.RETURNS:
                value = task.taken if task.plan.takes is not None else task.plan.value
                self._answer(task, Status.OK, dump(value).encode())
            case Ending.RAISES:
                self._answer(task, Status.RAISED, dump_failure(task.plan.value))
            case Ending.SPENT:
                self._failed(task, "WorkerSpentError", message="The process is spent.")
            case Ending.DIES:
                self._die(task)

    def _failed(self, task: Task, error: str, **facts: Any) -> None:
        self._answer(task, Status.FAILED, encode_json(0, {"error": error, **facts})[8:])

    def _answer(self, task: Task, status: Status, body: bytes = b"") -> None:
        self._stop(task)
        seconds = self._loop.time() - task.began if task.began else 0.0
        for _ in range(1 + self._twice):
            self._say(Kind.RESULT, RESULT.pack(task.call, status, seconds, 0.0) + body, task.lane)
        self._begin_next(task.lane)

    def _stop(self, task: Task) -> None:
        self._running[task.lane].pop(task.call, None)
        for timer in task.timers:
            timer.cancel()

    def _die(self, culprit: Task) -> None:
        """Take the worker down: what waited is given back first, and the culprit is answered last."""
        lane = culprit.lane
        if self._waiting[lane]:
            self._give_back(lane, 0)
        victims = sorted(self._running[lane].values(), key=lambda task: task is culprit)
        facts = {"exit_code": 1, "culprit": culprit.call, "among": len(victims)}
        for task in victims:
            self._failed(task, "WorkerDiedError", **facts)

    def _give_back(self, lane: int, keep: int) -> None:
        waiting = self._waiting[lane]
        calls = [waiting.pop().call for _ in range(len(waiting) - keep)][::-1]
        self._say(Kind.RECALLED, b"".join(map(CALL.pack, calls)), lane)

    def _cancel(self, call: int) -> None:
        self.cancelled.append(call)
        task = self._find(call)
        if task is not None:
            task.cancelled = True
            if call in self._running[task.lane]:
                self._later(task, task.plan.unwinds, lambda: self._answer(task, Status.CANCELLED))

    def _find(self, call: int) -> Task | None:
        for lane in self._running:
            for task in (*self._running[lane].values(), *self._waiting[lane]):
                if task.call == call:
                    return task
        return None

    # Streams.

    def _credit(self, frame: Frame) -> None:
        call, _, items = CREDIT.unpack(frame.body)
        task = self._find(call)
        if task is not None:
            task.window.acknowledged(items)
            self._go_on(task)

    def _take(self, frame: Frame, item: Payload) -> None:
        call, stream = ITEM.unpack_from(frame.body)
        task = self._find(call)
        if task is None or task.plan.takes is None or len(task.taken) >= task.plan.takes:
            return
        task.taken.append(load(item))
        self._say(Kind.CREDIT, CREDIT.pack(call, stream, 1), task.lane)
        if len(task.taken) == task.plan.takes:
            self._run_on(task)

    def _fed(self, frame: Frame) -> None:
        call, _ = ITEM.unpack_from(frame.body)
        task = self._find(call)
        if task is None or task.plan.takes is None:
            return
        if failure := frame.body[ITEM.size :]:
            self._answer(task, Status.RAISED, failure)
        else:
            self._run_on(task)
