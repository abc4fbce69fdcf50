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


def call_lines(call: CallTimes, since: float) -> str:
    """
    Return the lines of an attempt of a call: its way, at the client, and when it ran, at its node.

    Args:
        call: The attempt.
        since: When the recording began.
    """
    how, why = "ok", ""
    if call.failure is not None:
        how, why = outcome(call), f',"failure":{json.dumps(call.failure)}'
    # Whole microseconds, so that what follows each other has one time.
    submitted, answered = int((call.submitted - since) * 1e6), int((call.answered - since) * 1e6)
    # One text for all lines: putting them together one by one takes three times as long.
    name, ident, all_are = quoted(call.function), f"{call.attempt:x}", '"pid":1,"tid":0,"ts":'
    begins, ends = f'{{"ph":"b","cat":"call","id":"{ident}","name":', f'{{"ph":"e","cat":"call","id":"{ident}","name":'
    whole = f'{begins}{name},{all_are}{submitted},"args":{{"outcome":"{how}"{why}}}}},\n'
    over = f"{ends}{name},{all_are}{answered}}}"
    if call.began is None or call.ended is None or call.node is None:
        queued = min(answered, max(submitted, int((call.queued - since) * 1e6)))
        return (
            f'{whole}{begins}"submit",{all_are}{submitted}}},\n{ends}"submit",{all_are}{queued}}},\n'
            f'{begins}"queue",{all_are}{queued}}},\n{ends}"queue",{all_are}{answered}}},\n{over}'
        )
    began, ended = int((call.began - since) * 1e6), int((call.ended - since) * 1e6)
    queued = min(began, max(submitted, int((call.queued - since) * 1e6)))
    placed = began if call.placed is None else min(began, max(queued, int((call.placed - since) * 1e6)))
    pid, tid = of_node(call.node), row(call)
    category, colour, mark = "call", "", ""
    if how in ("failed", "retried"):
        category, colour = how, '"cname":"terrible",'
        mark = f",\n{instant(pid, tid, how, since + ended / 1e6, since, call.failure or '')}"
    return (
        f'{whole}{begins}"submit",{all_are}{submitted}}},\n{ends}"submit",{all_are}{queued}}},\n'
        f'{begins}"queue",{all_are}{queued}}},\n{ends}"queue",{all_are}{placed}}},\n'
        f'{begins}"transfer",{all_are}{placed}}},\n{ends}"transfer",{all_are}{began}}},\n'
        f'{begins}"run",{all_are}{began}}},\n{ends}"run",{all_are}{ended}}},\n'
        f'{begins}"result",{all_are}{ended}}},\n{ends}"result",{all_are}{answered}}},\n{over},\n'
        f'{{"ph":"X","cat":"{category}","name":{name},"pid":{pid},"tid":{tid},"ts":{began},'
        f'"dur":{ended - began},{colour}"args":{{"task":{call.task},"attempt":{call.attempt},'
        f'"outcome":"{how}"{why}}}}}{mark}'
    )
