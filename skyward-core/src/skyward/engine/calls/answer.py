"""How a call ended: its result or its failure, opened where it is asked for."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any

from skyward.engine.calls.unopened import unopened
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
from skyward.link.messages import Status
from skyward.link.payload import Payload, load
from skyward.link.stack_dump import frames_of
from skyward.model.spec.trust_setting import Data
from skyward.plan.offers import memory_advice

# Frames of a crash's traceback that say nothing to the user.
_OURS = ("skyward/node/", "<frozen runpy>")

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
        began: When it began, by the node's clock; 0 where that is not known.
    """

    __slots__ = (
        "began",
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
        began: float = 0.0,
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
        self.began = began
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
