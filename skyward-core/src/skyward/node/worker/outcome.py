"""How a call in a worker ended, as the bytes that the client is sent."""

from __future__ import annotations

import json

from skyward.link.described import shortened
from skyward.link.messages import RESULT, Status
from skyward.link.payload import Payload

_MESSAGE_LIMIT = 16 << 10


class Outcome:
    """
    Say how a call ended.

    Args:
        status: In one word.
        seconds: How long user code ran.
        payload: The result.
        text: The failure's bytes, or JSON.
    """

    __slots__ = ("payload", "seconds", "status", "text")

    def __init__(self, status: Status, seconds: float, payload: Payload | None = None, text: bytes = b"") -> None:
        self.status = status
        self.seconds = seconds
        self.payload = payload
        self.text = text

    def body(self, call: int, began: float) -> bytes:
        """Render it as a RESULT body, of a call that began at a time of this machine's clock."""
        head = RESULT.pack(call, self.status, self.seconds, began)
        return head + (self.payload.encode() if self.payload is not None else self.text)


def failed(kind: str, message: str, seconds: float) -> Outcome:
    """
    Return the outcome of a call that ended otherwise than by raising.

    Args:
        kind: Name of the error that stands for it.
        message: What happened.
        seconds: How long it ran.
    """
    reported = {"error": kind, "message": shortened(message, _MESSAGE_LIMIT)}
    return Outcome(Status.FAILED, seconds, text=json.dumps(reported).encode())
