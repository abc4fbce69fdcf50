"""
Lines of a timeline in the Trace Event Format, which Perfetto and Chrome open.

The client is a process, and so is each node; a node's threads are its machines and the slots of its workers.
Times are in microseconds since the recording began.
"""

from __future__ import annotations

import json
from functools import lru_cache

from skyward.model.events.follower import CallTimes

CLIENT = 1
"""Number of the client's process; a node's is its index and two."""

_ROWS = 1000
"""Numbers of threads that a worker process has; those below are machines."""

_RUN = (
    '{"ph":"X","cat":"%s","name":%s,"pid":%d,"tid":%d,"ts":%.1f,"dur":%.1f,%s"args":{"task":%d,"attempt":%d,'
    '"outcome":"%s"%s}}'
)
_WAY = '{"ph":"%s","cat":"call","id":"%x","name":%s,"pid":1,"tid":0,"ts":%.1f}'
_BEGIN = '{"ph":"b","cat":"call","id":"%x","name":%s,"pid":1,"tid":0,"ts":%.1f,"args":{"outcome":"%s"%s}}'


@lru_cache(maxsize=1024)
def quoted(text: str) -> str:
    """Return a text as JSON."""
    return json.dumps(text)


def outcome(call: CallTimes) -> str:
    """Return in one word how an attempt ended."""
    if call.failure is None:
        return "ok"
    if call.again:
        return "retried"
    return "cancelled" if call.stopped else "failed"


def process(pid: int, name: str) -> list[str]:
    """Return the lines that name a process, in the order of their numbers."""
    return [
        f'{{"ph":"M","name":"process_name","pid":{pid},"tid":0,"args":{{"name":{quoted(name)}}}}}',
        f'{{"ph":"M","name":"process_sort_index","pid":{pid},"tid":0,"args":{{"sort_index":{pid}}}}}',
    ]


def thread(pid: int, tid: int, name: str) -> list[str]:
    """Return the lines that name a thread, in the order of their numbers."""
    return [
        f'{{"ph":"M","name":"thread_name","pid":{pid},"tid":{tid},"args":{{"name":{quoted(name)}}}}}',
        f'{{"ph":"M","name":"thread_sort_index","pid":{pid},"tid":{tid},"args":{{"sort_index":{tid}}}}}',
    ]


def of_node(node: int) -> int:
    """Return the number of a node's process."""
    return node + 2


def row(call: CallTimes) -> int:
    """Return the number of the thread that a call ran in."""
    return (call.lane + 1) * _ROWS + call.slot


def phase(node: int, machine: int, name: str, began: float, ended: float, since: float) -> str:
    """
    Return the line of a phase of a machine.

    Args:
        node: The node.
        machine: Which of the node's machines it is, from 0.
        name: What the machine did.
        began: When, in seconds.
        ended: Until when.
        since: When the recording began.

    >>> phase(0, 0, "boot", 10.0, 12.5, 10.0)
    '{"ph":"X","cat":"machine","name":"boot","pid":2,"tid":0,"ts":0.0,"dur":2500000.0}'
    """
    return (
        f'{{"ph":"X","cat":"machine","name":{quoted(name)},"pid":{of_node(node)},"tid":{machine},'
        f'"ts":{(began - since) * 1e6:.1f},"dur":{max(0.0, ended - began) * 1e6:.1f}}}'
    )


def instant(pid: int, tid: int, name: str, at: float, since: float, reason: str = "") -> str:
    """
    Return the line of something that happened at a moment.

    Args:
        pid: The process.
        tid: The thread.
        name: What happened.
        at: When, in seconds.
        since: When the recording began.
        reason: Why.
    """
    args = f',"args":{{"reason":{json.dumps(reason)}}}' if reason else ""
    return (
        f'{{"ph":"i","cat":"event","s":"t","name":{quoted(name)},"pid":{pid},"tid":{tid},'
        f'"ts":{(at - since) * 1e6:.1f}{args}}}'
    )


def call_lines(call: CallTimes, since: float) -> list[str]:
    """
    Return the lines of an attempt of a call: its way, at the client, and when it ran, at its node.

    Args:
        call: The attempt.
        since: When the recording began.
    """
    how, name = outcome(call), quoted(call.function)
    why = "" if call.failure is None else f',"failure":{json.dumps(call.failure)}'
    # To a whole tenth of a microsecond: what follows each other has one time, and is nested however it is rounded.
    submitted = round((call.submitted - since) * 1e6, 1)
    answered = round((call.answered - since) * 1e6, 1)
    lines = [_BEGIN % (call.attempt, name, submitted, how, why)]
    ran = call.began is not None and call.ended is not None and call.node is not None
    began = round((call.began - since) * 1e6, 1) if call.began is not None and ran else answered
    queued = min(began, max(submitted, round((call.queued - since) * 1e6, 1)))
    placed = began if call.placed is None else min(began, max(queued, round((call.placed - since) * 1e6, 1)))
    ended = round((call.ended - since) * 1e6, 1) if call.ended is not None and ran else answered
    for part, start, end in (
        ("submit", submitted, queued),
        ("queue", queued, placed),
        ("transfer", placed, began),
        ("run", began, ended),
        ("result", ended, answered),
    ):
        if end > start:
            quoted_part = quoted(part)
            lines.append(_WAY % ("b", call.attempt, quoted_part, start))
            lines.append(_WAY % ("e", call.attempt, quoted_part, end))
    lines.append(_WAY % ("e", call.attempt, name, answered))
    if ran and call.node is not None:
        pid, tid = of_node(call.node), row(call)
        colour = '"cname":"terrible",' if how in ("failed", "retried") else ""
        about = (name, pid, tid, began, ended - began, colour, call.task, call.attempt, how, why)
        lines.append(_RUN % ("call" if how == "ok" else how, *about))
        if how in ("failed", "retried"):
            lines.append(instant(pid, tid, how, since + ended / 1e6, since, call.failure or ""))
    return lines
