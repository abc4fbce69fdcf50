"""Errors of calls that no node answered, and the client's additions to a node's failure."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from skyward.engine.calls.answer import Answer
from skyward.engine.calls.call import Call
from skyward.errors import ProtocolError
from skyward.link.messages import Status, decode_facts


def failure(pool: str, kind: str, message: str, *, call: Call | None = None, where: str = "the pool") -> Answer:
    """
    Answer a call on the client's own account.

    Args:
        pool: The pool's name.
        kind: Name of the error's class.
        message: What it says.
        call: The call; None for an answer to many.
        where: What the message calls the place.
    """
    return Answer(
        Status.FAILED,
        None,
        json.dumps({"error": kind, "message": message}).encode(),
        where=where,
        function=call.function.name if call else "",
        seconds=call.ran if call else 0.0,
        pool=pool,
    )


def closed(call: Call, why: Answer, pool: str) -> Answer:
    """
    Answer a call of a pool that is closed.

    Args:
        call: The call.
        why: What all of them are answered with.
        pool: The pool's name.
    """
    return Answer(
        why.status,
        None,
        why.text,
        where=why.where,
        function=call.function.name,
        seconds=call.ran,
        pool=pool,
        on_delivered=why.on_delivered,
    )


def ending(status: int, text: bytes, fds: tuple[int, ...]) -> bytes:
    """
    Check what a RESULT frame says of a call that has no result.

    Raises:
        ProtocolError: If it makes no sense.
    """
    if fds:
        raise ProtocolError(f"A RESULT frame has status {status} and {len(fds)} descriptors.")
    return json.dumps(decode_facts(text)).encode() if status == Status.FAILED else text


def completed(call: Call, text: bytes, find: Callable[[int], Call | None]) -> bytes:
    """
    Add to a failure that a node reports what only the client knows: names and limits.

    Args:
        call: The call that failed.
        text: What the node says, as JSON.
        find: Finds another call by its number.
    """
    facts: dict[str, Any] = json.loads(text)
    facts["timeout"] = call.timeout
    culprit = find(facts.get("culprit", 0))
    if facts["error"] == "WorkerDiedError" and facts.get("among", 1) > 1:
        if culprit is call:
            facts["blame"] = f"; this call crashed it, among {facts['among']} that ran in it"
        elif culprit is not None:
            facts["blame"] = f"; {culprit.function.name}(), which ran in the same process, crashed it"
        else:
            facts["blame"] = f"; {facts['among']} calls ran in it, and which one ended it is not known"
    return json.dumps(facts).encode()
