"""What the spans of a call are: pure values, made of when it was where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from skyward.hookspecs import CallTimes
from skyward_otel.trace_text import CallSpan, span_of_rank, span_of_run

Attribute: TypeAlias = "str | bool | int | float"

TASK_BITS = 48
"""Bits of an attempt's number that are its task's."""


class Span(NamedTuple):
    """
    Describe a span.

    Args:
        name: What happened.
        trace: Id of its trace.
        span: Its own id.
        parent: Id of the span around it; 0 for none.
        start: When, in seconds since 1970.
        end: Until when.
        failure: Why it failed; None if it did not.
        node: Index of the node that it was on; None for the client.
        attributes: What else is known.
        kind: `"client"`, `"server"` or `"internal"`.
    """

    name: str
    trace: int
    span: int
    parent: int
    start: float
    end: float
    failure: str | None
    node: int | None
    attributes: Mapping[str, Attribute]
    kind: str = "internal"


def outcome(call: CallTimes) -> str:
    """Return in one word how an attempt ended."""
    if call.failure is None:
        return "ok"
    if call.again:
        return "retried"
    return "cancelled" if call.stopped else "failed"


def spans_of(call: CallTimes, carried: CallSpan, pool: str, first: float, *, phases: bool) -> list[Span]:
    """
    Return the spans of an attempt of a call; that of the call itself with the last one.

    Args:
        call: The attempt.
        carried: What it carried.
        pool: The pool's name.
        first: When the call was submitted: its first attempt.
        phases: Whether each phase has a span, and not only the call and its run.
    """
    around = span_of_rank(carried, call.task, call.broadcast)
    about: dict[str, Attribute] = {
        "skyward.pool": pool,
        "skyward.task": call.task,
        "skyward.attempt": (call.attempt >> TASK_BITS) + 1,
        "skyward.outcome": outcome(call),
        "code.function.name": call.function,
    }
    if call.broadcast:
        about["skyward.broadcast"] = call.broadcast
    if call.node is not None:
        about["skyward.node"] = call.node
    failure = None if call.failure is None or call.stopped else call.failure
    made: list[Span] = []
    ran = call.began is not None and call.ended is not None
    began = call.began if call.began is not None else call.answered
    ended = call.ended if call.ended is not None else call.answered
    placed = began if call.placed is None else min(call.placed, began)
    parts = (
        ("submit", call.submitted, call.queued),
        ("queue", call.queued, max(call.queued, placed)),
        ("transfer", placed, began),
        ("result", ended, call.answered),
    )
    for number, (name, start, end) in enumerate(parts):
        if not phases or (not ran and name in ("transfer", "result")):
            continue
        span = span_of_run(around, call.attempt + (number + 1 << 60))
        made.append(Span(name, carried.trace, span, around, start, max(start, end), None, None, about))
    if ran:
        span = span_of_run(around, call.attempt)
        made.append(
            Span(f"run {call.function}", carried.trace, span, around, began, ended, failure, call.node, about, "server")
        )
    if not call.again:
        parent = carried.parent
        made.append(
            Span(call.function, carried.trace, around, parent, first, call.answered, failure, None, about, "client")
        )
    return made
