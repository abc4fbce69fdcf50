"""What is answered for the calls that a dead process leaves behind."""

from __future__ import annotations

import time
from typing import Any

from skyward.link.frames import Kind, encode, encode_json
from skyward.link.messages import CALL, RESULT, Status
from skyward.node.agent.child_process import ChildProcess

_ROOM = 64 << 10
"""Characters of a process's last lines that its failure holds."""


def last_answers(process: ChildProcess) -> list[bytes]:
    """
    Render an answer for every call that the process leaves behind.

    Calls that had not begun are returned, to be tried elsewhere.
    Those that ran are failures; if one of them is known to be to blame, the others name it.
    """
    frames = []
    began = {running.call for running in process.running}
    returned = [call for call in process.in_flight if call not in began]
    if returned:
        frames.append(encode(Kind.RECALLED, b"".join(map(CALL.pack, returned)), lane=process.lane))
    # The culprit last: the client names it in the others' errors as long as it knows it.
    for running in sorted(process.running, key=lambda running: running.call == process.culprit()):
        if running.call in process.in_flight:
            lines = _last([line.text for line in process.last_lines if line.call in (0, running.call)])
            facts = {**_blame(process, running.call), "output": lines, **process.cause()}
            facts["stack"] = process.stacks.pop(running.call, None) or []
            seconds = max(0.0, time.monotonic() - running.since)
            body = RESULT.pack(running.call, Status.FAILED, seconds, time.time() - seconds)
            frames.append(encode(Kind.RESULT, body + encode_json(0, facts)[8:], lane=process.lane))
    process.in_flight.clear()
    return frames


def failure(why: str, process: ChildProcess | None = None) -> bytes:
    """
    Render the frame that reports to the client that this node cannot continue.

    Args:
        why: The reason.
        process: The process that has ended, if one has.
    """
    facts: dict[str, Any] = {"message": why}
    if process is not None:
        facts |= {"output": [line.text for line in process.last_lines], **process.cause()}
    return encode_json(Kind.WORKER, facts)


def _last(lines: list[str]) -> list[str]:
    """Keep as many of the last lines as fit, and the end of a single line that is too long."""
    kept, room = [], _ROOM
    for line in reversed(lines):
        if room <= 0:
            break
        kept.append(line[-room:])
        room -= len(line) + 1
    return kept[::-1]


def _blame(process: ChildProcess, call: int) -> dict[str, Any]:
    """Return the outcome of a call, and which process answered."""
    facts: dict[str, Any] = {
        "error": "WorkerDiedError",
        "culprit": process.culprit(),
        "among": len(process.running),
    }
    why, _, ended = process.killed_for.partition(":")
    if why:
        facts["culprit"] = int(ended)
        if call == int(ended):
            facts["error"] = "TaskTimeoutError" if why == "timeout" else "CancelledError"
    return facts
