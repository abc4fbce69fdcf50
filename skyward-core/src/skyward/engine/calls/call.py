"""A call on the client: what is sent, and what comes back."""

from __future__ import annotations

import itertools
import time
from math import inf
from typing import TYPE_CHECKING, Protocol

from skyward.engine.calls.answer import Answer
from skyward.engine.nodes.outflow import Outflow
from skyward.errors import ProtocolError
from skyward.link.messages import TASK_BITS, task_of
from skyward.link.payload import Payload
from skyward.model.spec.retries_setting import Retries, times
from skyward.model.spec.retry_setting import Retry
from skyward.node.worker.streams import WINDOW_BYTES, WINDOW_ITEMS, Window
from skyward.plan.pool.map_flow import Pace

if TYPE_CHECKING:
    from skyward.engine.calls.trail import Trail

_ids = itertools.count(1)


def number_after(task: int) -> None:
    """Set the ids of new calls beyond that of a task which an earlier client has numbered."""
    global _ids  # noqa: PLW0603  # one count for all pools of a process
    _ids = itertools.count(max(next(_ids), task + 1))


def new_id() -> int:
    """Return an id that no call has, as for a broadcast, whose attempts differ in the same bits as those of calls."""
    return next(_ids)


NO_WINDOW = Window()
"""Flow control of calls that are not streams: none."""


class CapturedFunction:
    """
    Hold a function as it travels.

    Args:
        name: What the user calls it.
        digest: Names its content.
        body: The FUNCTION frame's body.
        payload: Keeps its segments alive, and names its stored buffers.
        needs: Names what a worker has to have kept from calls before; empty if nothing.
    """

    __slots__ = ("body", "digest", "learnt", "name", "needs", "payload")

    def __init__(self, name: str, digest: bytes, body: bytes, payload: Payload, needs: str = "") -> None:
        self.name = name
        self.digest = digest
        self.body = body
        self.payload = payload
        self.needs = needs
        self.learnt = Learnt()


class Learnt:
    """Hold what maps learnt of a function's calls."""

    __slots__ = ("pace",)

    def __init__(self) -> None:
        self.pace = Pace()


class Sink(Protocol):
    """What waits for a call; called in the engine's loop, so it must be quick."""

    def resolve(self, call: Call, answer: Answer) -> None:
        """Take the answer; comes once."""

    def item(self, call: Call, payload: Payload) -> None:
        """Take one item of a stream."""

    def stalled(self) -> bool:
        """Return whether items wait that were not taken since this was last asked."""


class Observer(Protocol):
    """What records tasks; called in the engine's loop."""

    def started(self, call: Call, node: int) -> None:
        """Record that a call began."""

    def ended(self, call: Call, answer: Answer, *, again: bool = False, delay: float = 0.0) -> None:
        """Record that an attempt ended, whether another follows, and how many seconds later."""


class CallFeeder(Protocol):
    """What feeds a call's input streams; called in the engine's loop."""

    def start(self, call: Call, outflow: Outflow) -> None:
        """Begin to feed a call that was sent to a node, no further than its outflow lets it."""

    def acknowledged(self, stream: int, items: int) -> None:
        """Record that the node consumed items."""

    def stop(self) -> None:
        """Stop: the call is over."""


class Call:
    """
    Carry one unit of dispatch from the user's thread to a node and back.

    Args:
        function: What it runs.
        payload: Its arguments.
        sink: What waits for it.
        timeout: Seconds it may run; 0 for no limit.
        queue_timeout: Seconds within which it has to begin; 0 for no limit.
        deadline: Seconds within which it has to be answered; 0 for no limit.
        retries: How many more attempts there are after one that fails, and when.
        interruptions: How many more attempts there are after its node was lost.
        node: The only node it may run on.
        streams: Whether its items are wanted one by one.
        feeder: What feeds its input streams.
        index: Its place among the calls of its sink.
        broadcast: Number of its broadcast, which all ranks share; 0 for another call.
        caller: Which turns it takes among the calls that wait.
        cell: The cell of a notebook that sent it; empty elsewhere.
    """

    __slots__ = (
        "asked", "attempt", "began", "broadcast", "caller", "cancelled", "cell", "deadline", "feeder", "function",
        "gave", "id", "index", "interruptions", "lane", "members", "node", "on", "payload", "queue_timeout", "retries",
        "retry", "sent", "sink", "streams", "timeout", "trail", "until", "window",
    )  # fmt: skip

    def __init__(
        self,
        function: CapturedFunction,
        payload: Payload,
        sink: Sink,
        *,
        timeout: float = 0.0,
        queue_timeout: float = 0.0,
        deadline: float = 0.0,
        retries: Retries = 0,
        interruptions: int = 0,
        node: int | None = None,
        streams: bool = False,
        feeder: CallFeeder | None = None,
        index: int = 0,
        broadcast: int = 0,
        caller: int = 0,
        cell: str = "",
    ) -> None:
        self.id = next(_ids)
        self.function = function
        self.payload = payload
        self.sink = sink
        self.timeout = timeout
        self.queue_timeout = queue_timeout
        self.deadline = deadline
        self.until = inf
        self.retries = times(retries)
        self.retry = retries if isinstance(retries, Retry) else None
        self.interruptions = interruptions
        self.node = node
        self.streams = streams
        self.feeder = feeder
        self.index = index
        self.broadcast = broadcast
        self.caller = caller
        self.cell = cell
        self.attempt = 1
        self.on: int | None = None
        self.lane = 0
        self.members = 0
        self.asked = 0.0
        self.began = 0.0
        self.cancelled = False
        self.gave = False
        self.window = Window() if streams else NO_WINDOW
        self.sent = 0
        self.trail: Trail | None = None

    @property
    def ran(self) -> float:
        """Return for how many seconds it has run, as seen from here."""
        return time.monotonic() - self.began if self.began else 0.0

    def check_item(self) -> None:
        """
        Check that its node may send an item now.

        Raises:
            ProtocolError: If it gives none, or as many are on their way as may be.
        """
        if not self.streams:
            raise ProtocolError(f"A node sent an item of {self.function.name}(), which gives none.")
        if not self.window.open:
            raise ProtocolError(
                f"A node sent an item of {self.function.name}() beyond its window: {WINDOW_ITEMS} items or "
                f"{WINDOW_BYTES} bytes wait to be taken."
            )

    def take_item(self, payload: Payload) -> None:
        """
        Take an item of its stream.

        Raises:
            ProtocolError: If its node had no leave to send it.
        """
        self.check_item()
        self.window.sent(payload.size)
        self.gave = True
        self.sink.item(self, payload)

    def begin_again(self) -> None:
        """Begin the next attempt, which has an id of its own: what is still on its way for this one is dropped."""
        self.attempt += 1
        self.id = task_of(self.id) | (self.attempt - 1) << TASK_BITS
        self.on, self.members = None, 0
