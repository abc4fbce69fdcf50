"""Lines of a stored log, as `sky logs` prints them: as text for people, or as one JSON object each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from time import localtime, strftime
from typing import Any

from skyward.plan.logs.log_choice import LogChoice
from skyward.plan.logs.log_format import CallRow, Record, calls_of

__all__ = ["as_json", "as_text"]


def as_text(found: Record, choice: LogChoice) -> Iterator[str]:
    """
    Return the lines that people read of a line of the log; calls that ended well have some only where one is asked for.

    Args:
        found: The line.
        choice: What is wanted of the log.

    >>> [line] = as_text({"n": 3, "t": 0.0, "k": "line", "node": 1, "text": "epoch 1"}, LogChoice())
    >>> line.partition(" ")[2].partition(" ")[2]
    'node-1 | epoch 1'
    """
    kind, node = found["k"], found.get("node")
    where = "skyward" if node is None or node < 0 else f"node-{node}"
    if kind == "line":
        yield f"{_clock(found['t'])} {where} | {found.get('text', '')}"
    elif kind == "event" and found.get("say"):
        yield f"{_clock(found['t'])} {where} · {found['say']}"
    elif kind == "failed" or (kind == "calls" and choice.task is not None):
        for call in _wanted(found, choice):
            of = "skyward" if call.node is None else f"node-{call.node}"
            yield f"{_clock(call.ended)} {of} · {_outcome(call)}"
    elif kind == "running" and choice.task is not None:
        yield f"{_clock(found['t'])} {where} · {found['fn']} (call {found['task']}) began"
    elif kind == "counted" and found.get("failed"):
        yield f"{_clock(found['t'])} {where} · {found['failed']:,} more calls of {found['fn']} failed"
    elif kind == "lost":
        yield f"{_clock(found['t'])} skyward · not stored, as the disk was too slow: {_several(found)}"
    elif kind == "dropped":
        what = {"output": "lines", "calls": "calls", "events": "events"}.get(found.get("stream", ""), "")
        yield f"{_clock(found['t'])} skyward · the log was full: its oldest {what} are dropped"


def as_json(found: Record, choice: LogChoice) -> Iterator[str]:
    """
    Return the JSON objects for a line of the log: one for each call, and one for any other line.

    Args:
        found: The line.
        choice: What is wanted of the log.

    >>> list(as_json({"n": 3, "t": 0.5, "k": "line", "node": 1, "text": "epoch 1"}, LogChoice()))
    ['{"at": 0.5, "kind": "line", "node": 1, "task": null, "stream": "stdout", "text": "epoch 1"}']
    """
    kind = found["k"]
    if kind in ("calls", "failed"):
        for call in _wanted(found, choice):
            yield json.dumps({"at": call.ended, "kind": "call", **_facts(call)})
        return
    facts: dict[str, Any] = {name: value for name, value in found.items() if name not in ("n", "t", "k", "kind")}
    if kind == "line":
        stream = "stderr" if facts.pop("err", 0) else "stdout"
        text = facts.pop("text", "")
        facts = {"node": facts.get("node"), "task": facts.get("task"), "stream": stream, "text": text}
    elif kind == "event":
        facts["text"] = facts.pop("say", None)
    if "fn" in facts:
        facts["function"] = facts.pop("fn")
    yield json.dumps({"at": found["t"], "kind": kind, **facts})


def _wanted(found: Record, choice: LogChoice) -> Iterator[CallRow]:
    for call in calls_of(found):
        if choice.node in (None, call.node) and choice.task in (None, call.task):
            yield call


def _facts(call: CallRow) -> dict[str, Any]:
    return {
        "node": call.node,
        "task": call.task,
        "attempt": call.attempt,
        "function": call.function,
        "outcome": call.outcome,
        "sent": round(call.sent, 6),
        "began": round(call.began, 6),
        "ended": round(call.ended, 6),
        "error": call.error,
    }


def _outcome(call: CallRow) -> str:
    name = f"{call.function} (call {call.task})"
    if call.outcome in ("failed", "again"):
        again = ", and is tried again" if call.outcome == "again" else ""
        return f"{name} failed{again}: {call.error}"
    if call.outcome == "cancelled":
        return f"{name} was cancelled"
    return f"{name} returned after {call.ended - call.began:.3g} s"


def _several(found: Record) -> str:
    return ", ".join(f"{found[what]:,} {what}" for what in ("lines", "calls", "events") if found.get(what))


def _clock(at: float) -> str:
    return strftime("%Y-%m-%d %H:%M:%S", localtime(at))
