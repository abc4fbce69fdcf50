"""
The messages of a data channel of Session Manager, as its plugin and its agent exchange them.

A message is a head of 120 bytes and a payload; numbers are big-endian, and the halves of its id stand the other way
round. Each end numbers what it sends, and the other one acknowledges it; what is not acknowledged is sent once more.
"""

from __future__ import annotations

import hashlib
import json
import struct
import time
import uuid
from typing import Any

from attrs import field, frozen

from tests.clouds.aws.web_socket import WebSocket

__all__ = [
    "ACK",
    "CLOSED",
    "COMPLETE",
    "DATA",
    "FLAG",
    "INPUT",
    "OUTPUT",
    "PATIENCE",
    "REQUEST",
    "RESPONSE",
    "End",
    "Message",
]

INPUT, OUTPUT, ACK, CLOSED = "input_stream_data", "output_stream_data", "acknowledge", "channel_closed"
DATA, REQUEST, RESPONSE, COMPLETE, FLAG = 1, 5, 6, 7, 10
"""Kinds of payload: what is typed or shown, the three steps of the handshake, and the end of the session."""

MOST = 1024
"""Bytes of a payload that the plugin sends at most."""

PATIENCE = 0.5
"""Seconds after which what was not acknowledged is sent once more."""

_HEAD = struct.Struct("!I32sIQqQ16s32sII")
_COUNTED = _HEAD.size - 4
"""The head's length, as it is written in it: without the length of the payload."""


@frozen(kw_only=True)
class Message:
    """One message."""

    kind: str
    number: int = 0
    payload_kind: int = 0
    payload: bytes = b""
    id: uuid.UUID = field(factory=uuid.uuid4)
    flags: int = 0

    def written(self) -> bytes:
        """Write it."""
        digest = hashlib.sha256(self.payload).digest()
        turned = self.id.bytes[8:] + self.id.bytes[:8]
        words = (self.kind.ljust(32).encode(), 1, int(time.time() * 1000), self.number, self.flags, turned, digest)
        return _HEAD.pack(_COUNTED, *words, self.payload_kind, len(self.payload)) + self.payload

    @classmethod
    def read(cls, data: bytes) -> Message:
        """Read one; what is not as it has to be is an error."""
        counted, kind, schema, _, number, flags, turned, digest, payload_kind, size = _HEAD.unpack(data[: _HEAD.size])
        payload = data[_HEAD.size :]
        assert (_COUNTED, 1, size) == (counted, schema, len(payload)), "the head is wrong"
        assert hashlib.sha256(payload).digest() == digest, "the digest is wrong"
        name = kind.decode().strip(" \0")
        found = uuid.UUID(bytes=turned[8:] + turned[:8])
        return cls(kind=name, number=number, payload_kind=payload_kind, payload=payload, id=found, flags=flags)


class End:
    """
    Hold one end of a channel: number what is sent, acknowledge what comes.

    Args:
        channel: What the messages go over.
        kind: What this end sends, `INPUT` or `OUTPUT`.
        lost: Number of a message that is overlooked when it comes first.
    """

    def __init__(self, channel: WebSocket, kind: str, lost: int | None = None) -> None:
        self.channel = channel
        self.kind = kind
        self.unacknowledged: dict[int, tuple[float, Message]] = {}
        self.again = 0
        """Messages that were sent more than once."""
        self._lost = lost
        self._next, self._expected = 0, 0
        self._early: dict[int, Message] = {}

    def send(self, payload: bytes, payload_kind: int = DATA) -> None:
        """Send a payload as the next of this end's messages; the first says that it is that."""
        first = 1 if self._next == 0 else 0
        message = Message(kind=self.kind, number=self._next, payload_kind=payload_kind, payload=payload, flags=first)
        self.unacknowledged[self._next] = (time.monotonic(), message)
        self._next += 1
        self.channel.send(message.written())

    def remind(self) -> None:
        """Send once more what was not acknowledged in time."""
        for number, (at, message) in list(self.unacknowledged.items()):
            if time.monotonic() - at > PATIENCE and number in self.unacknowledged:
                self.unacknowledged[number] = (time.monotonic(), message)
                self.again += 1
                self.channel.send(message.written())

    def receive(self) -> Message | None:
        """Return the next of the other end's messages, acknowledged; None when the channel is closed."""
        while self._expected not in self._early:
            data = self.channel.receive()
            if not data:
                return None
            message = Message.read(data)
            if message.kind == ACK:
                said: dict[str, Any] = json.loads(message.payload)
                assert said["AcknowledgedMessageType"] == self.kind, said
                self.unacknowledged.pop(said["AcknowledgedMessageSequenceNumber"], None)
                continue
            if message.kind == CLOSED or message.payload_kind == FLAG:
                return None
            if message.number == self._lost:
                self._lost = None
                continue
            self.channel.send(Message(kind=ACK, payload=json.dumps(_acknowledgement(message)).encode()).written())
            # What is acknowledged too late comes once more.
            if message.number >= self._expected:
                self._early[message.number] = message
        self._expected += 1
        return self._early.pop(self._expected - 1)


def _acknowledgement(message: Message) -> dict[str, Any]:
    return {
        "AcknowledgedMessageType": message.kind,
        "AcknowledgedMessageId": str(message.id),
        "AcknowledgedMessageSequenceNumber": message.number,
        "IsSequentialMessage": True,
    }
