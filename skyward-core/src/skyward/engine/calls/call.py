"""A call on the client: what is sent, and what comes back."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from math import inf
from typing import Any, Protocol

from skyward.engine.calls.unopened import unopened
from skyward.engine.nodes.outflow import Outflow
from skyward.errors import (
    AllProvidersFailedError,
    BudgetExceededError,
    CallDeadlineError,
    CapacityError,
    ConfigError,
    CredentialsError,
    NodeLostError,
    PluginError,
    PoolClosedError,
    PoolDeadlineError,
    PoolEndedError,
    ProtocolError,
    ProvisionError,
    QueueTimeoutError,
    QuotaError,
    RefError,
    ResultError,
    SerializationError,
    SkywardError,
    StateLostError,
    TaskTimeoutError,
    WorkerDiedError,
    WorkerSpentError,
)
from skyward.link.absent import AGAIN
from skyward.link.messages import TASK_BITS, Status, task_of
from skyward.link.payload import Payload, load
from skyward.link.stack_dump import frames_of
from skyward.model.spec.retry_setting import Retries, Retry, times
from skyward.model.spec.trust_setting import Data
from skyward.node.worker.streams import WINDOW_BYTES, WINDOW_ITEMS, Window
from skyward.plan.offers import memory_advice
from skyward.plan.pool.map_flow import Pace

_ids = itertools.count(1)


def number_after(task: int) -> None:
    """Give new calls ids beyond that of a task which an earlier client has numbered."""
    global _ids  # noqa: PLW0603  # one count for all pools of a process
    _ids = itertools.count(max(next(_ids), task + 1))


def new_id() -> int:
    """Return an id that no call has, as for a broadcast, whose attempts differ in the same bits as those of calls."""
    return next(_ids)


NO_WINDOW = Window()
"""Flow control of calls that are not streams: none."""

# Frames of a crash's traceback that say nothing to the user.
_OURS = ("skyward/node/", "<frozen runpy>")


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
    """

    __slots__ = (
        "attempt", "began", "broadcast", "caller", "cancelled", "deadline", "feeder", "function", "gave", "id", "index",
        "interruptions", "lane", "members", "node", "on", "payload", "queue_timeout", "retries", "retry", "sent",
        "sink", "streams", "timeout", "until", "window",
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
        self.attempt = 1
        self.on: int | None = None
        self.lane = 0
        self.members = 0
        self.began = 0.0
        self.cancelled = False
        self.gave = False
        self.window = Window() if streams else NO_WINDOW
        self.sent = 0

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


_STARTS: dict[str, type[SkywardError]] = {
    kind.__name__: kind
    for kind in (AllProvidersFailedError, CapacityError, ConfigError, CredentialsError, ProvisionError, QuotaError)
}
"""Why a pool that starts with its first call has no node for it."""


class Answer:
    """
    Hold how a call ended, not yet unpickled.

    Args:
        status: In one word.
        payload: The result, if it is one.
        text: The failure's bytes or JSON.
        where: The node and instance, in words.
        function: The function's name.
        seconds: How long it ran.
        node: The node's index.
        on_delivered: Called when its failure is delivered to a caller.
        trust: What of its failure is opened as data; None opens anything.
    """

    __slots__ = (
        "function",
        "instead",
        "node",
        "on_delivered",
        "payload",
        "pool",
        "seconds",
        "status",
        "text",
        "trust",
        "where",
    )  # fmt: skip

    def __init__(
        self,
        status: int,
        payload: Payload | None,
        text: bytes,
        *,
        where: str = "",
        function: str = "",
        seconds: float = 0.0,
        node: int | None = None,
        pool: str = "",
        on_delivered: Callable[[], None] | None = None,
        trust: Data | None = None,
    ) -> None:
        self.status = status
        self.payload = payload
        self.text = text
        self.where = where
        self.function = function
        self.seconds = seconds
        self.node = node
        self.pool = pool
        self.on_delivered = on_delivered
        self.trust = trust
        self.instead: BaseException | None = None
        """What is raised in place of the failure, because the user's own code failed at judging that."""

    @property
    def failed(self) -> bool:
        """Return whether it has no result."""
        return self.status not in (Status.OK, Status.STREAMED)

    @property
    def stopped(self) -> bool:
        """Return whether it has no result because none was wanted any more: it was cancelled, or its pool was left."""
        if self.status != Status.FAILED:
            return self.status == Status.CANCELLED
        return json.loads(self.text)["error"] in ("CancelledError", "PoolClosedError")

    @property
    def not_begun(self) -> bool:
        """Return whether the worker that was to run it had to be replaced before."""
        return self.status == Status.FAILED and json.loads(self.text)["error"] == "WorkerSpentError"

    def value(self) -> Any:
        """
        Return the result.

        Raises:
            Exception: What the function raised, or the error that says what happened instead.
        """
        if self.status == Status.OK and self.payload is not None:
            try:
                return load(self.payload)
            except Exception as error:
                raise ResultError(
                    unopened(f"The result of {self.function}() on {self.where}", error),
                    function=self.function,
                    node=self.node,
                    pool=self.pool,
                ) from error
        if self.status == Status.STREAMED:
            return None
        if self.status == Status.RAISED:
            from skyward.link.failure import raise_failure

            raise_failure(self.error())
        raise self.error()

    def headline(self) -> str:
        """Return in one line why there is no result, without unpickling anything of the user's."""
        if self.instead is not None:
            return str(self.instead).partition("\n")[0]
        if self.status == Status.RAISED:
            from skyward.link.envelope import headline_of

            return headline_of(self.text)
        if self.status == Status.CANCELLED:
            return "cancelled"
        return str(self._failure()).partition("\n")[0]

    def error(self) -> BaseException:
        """Return the exception that stands for a call that did not end well."""
        if self.instead is not None:
            return self.instead
        if self.status == Status.RAISED:
            from skyward.link.failure import load_failure

            note = f"raised by {self.function}() on {self.where}"
            return load_failure(self.text, note=note, trust=self.trust)
        if self.status == Status.CANCELLED:
            return CancelledError(f"{self.function}() was cancelled.")
        if self.on_delivered is not None:
            self.on_delivered()
        return self._failure()

    def _failure(self) -> BaseException:
        facts: dict[str, Any] = json.loads(self.text)
        kind, message = facts["error"], facts.get("message", "")
        about: dict[str, Any] = {"function": self.function, "node": self.node, "pool": self.pool}
        what = f"{self.function}() on {self.where}"
        if kind == "CancelledError":
            return CancelledError(f"{self.function}() was cancelled.")
        if kind == "TaskTimeoutError":
            limit, stack = facts.get("timeout", 0.0), frames_of(facts.get("stack", ()))
            at = "\n  | ".join(["\nIt was at:", *stack]) if stack else ""
            how = f"was stopped after {self.seconds:.1f} s"
            if facts.get("silent"):
                how = f"was given up after {self.seconds:.1f} s by the client's clock, as its node is silent"
            return TaskTimeoutError(
                f"{what} ran longer than its timeout of {limit:g} s and {how}. "
                f"Raise timeout= on the function or with .with_timeout(seconds).{at}",
                timeout=limit,
                stack=stack,
                output=tuple(facts.get("output", ())),
                **about,
            )
        if kind == "WorkerDiedError":
            return self._worker_died(facts, what, about)
        if kind == "WorkerSpentError":
            return WorkerSpentError(f"{what} could not begin: {message}", **about)
        if kind == "StateLostError":
            return StateLostError(f"{what} failed: {message}", **about)
        if kind == "NodeLostError":
            return NodeLostError(f"{what} was lost: {message}", node=self.node, pool=self.pool)
        if kind == "SerializationError":
            return SerializationError(f"{what} could not start: {message}", node=self.node, pool=self.pool)
        if kind == "RefError":
            return RefError(f"{what} could not start: {message}", hint=AGAIN, node=self.node, pool=self.pool)
        if kind == "ResultError":
            return ResultError(f"{what} ended, but {message}. Return something that can be pickled.", **about)
        if kind == "PoolClosedError":
            return PoolClosedError(message, pool=self.pool)
        if kind == "BudgetExceededError":
            return BudgetExceededError(message, pool=self.pool, budget=facts["budget"], cost=facts["cost"])
        if kind == "QueueTimeoutError":
            return QueueTimeoutError(f"{self.function}() did not begin: {message}.", **about)
        if kind == "CallDeadlineError":
            return CallDeadlineError(f"{self.function}() was given up: {message}.", **about)
        if kind == "PoolDeadlineError":
            return PoolDeadlineError(message, pool=self.pool)
        if kind == "PoolEndedError":
            return PoolEndedError(message, pool=self.pool)
        if kind == "PluginError":
            return PluginError(f"{what} could not start: {message}", node=self.node, pool=self.pool)
        if (start := _STARTS.get(kind)) is not None:
            return start(message, pool=self.pool)
        return SkywardError(f"{what} failed: {message or kind}", node=self.node, pool=self.pool)

    def _worker_died(self, facts: dict[str, Any], what: str, about: dict[str, Any]) -> WorkerDiedError:
        output = tuple(facts.get("output", ()))
        theirs = [line for line in output if not any(ours in line for ours in _OURS)]
        tail = "".join(f"\n  | {line}" for line in theirs[-10:])
        how = f"was killed by {facts['signal']}" if facts.get("signal") else f"exited with code {facts['exit_code']}"
        how += memory_advice.described(facts.get("memory") or {})
        blame, advice = facts.get("blame", ""), memory_advice.advice(facts.get("memory") or {})
        return WorkerDiedError(
            f"The worker process that ran {what} {how}{blame}.{advice}{' Its last output:' + tail if tail else ''}",
            exit_code=facts.get("exit_code"),
            signal=facts.get("signal"),
            output=output,
            **about,
        )
