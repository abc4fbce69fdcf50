"""
The bytes between client, agent and worker: a pure codec.

A frame is a header of eight bytes and a body.

    u32 length of the body   u8 kind   u8 descriptors that travel with it   u16 lane

Every number is little-endian.
`docs/protocol.md` says what the body of each kind holds.
"""

from __future__ import annotations

import json
from enum import IntEnum
from struct import Struct
from typing import Any, NamedTuple

from skyward.errors import ProtocolError

VERSION = 3
"""The version of the protocol; both ends refuse another one."""

MAX_BODY = 2 << 20
"""The largest body of a frame, in bytes; whatever is larger travels as a segment."""

MAX_FDS = 64
"""The most descriptors that travel with one frame."""

HEADER = Struct("<IBBH")


class Kind(IntEnum):
    """What a frame says; the comment names sender and receiver."""

    HELLO = 1  # client -> agent: JSON
    WELCOME = 2  # agent -> client: JSON
    START = 3  # client -> agent: JSON and the plugins' pickle
    READY = 4  # agent -> client, worker -> agent: JSON
    FAILED = 5  # agent -> client, worker -> agent: JSON, the node cannot continue
    MEMBERS = 6  # client -> agent -> worker: JSON, what a node knows of a version of the members
    FUNCTION = 7  # client -> agent -> worker
    BLOB = 8  # client -> agent, worker -> agent: one buffer to keep under its name; agent -> client: as asked for
    DROP = 9  # both ways: a name to drop, or that was dropped for lack of memory
    FILES = 10  # client -> agent: local modules
    TASK = 11  # client -> agent -> worker
    RESULT = 12  # worker -> agent -> client
    ITEM = 13  # both ways: one item of a stream
    END = 14  # client -> worker: the end of an input stream
    CREDIT = 15  # both ways: so many items more may be sent
    CANCEL = 16  # client -> agent -> worker
    RECALL = 17  # client -> agent -> worker: return what has not begun
    RECALLED = 18  # worker -> agent -> client
    LOG = 19  # agent -> client
    LOG_READ = 20  # client -> agent: so many bytes of log were read
    EMIT = 21  # worker -> agent -> client: an event from a task
    METRIC = 22  # agent -> client: JSON
    WORKER = 23  # agent -> client: JSON, a worker died or was replaced
    STOP = 24  # client -> agent -> worker: leave in good order
    STOPPED = 25  # agent -> client: everything is flushed
    REFRESH = 26  # client -> agent: restart the workers
    REFRESHED = 27  # agent -> client
    SHARE = 28  # agent -> worker: whether more than one call is under way, so that another thread is to read
    NOTICE = 29  # agent -> client, agent -> worker: JSON, the machine is reclaimed
    RETIRE = 30  # worker -> agent: to be replaced once its call is answered
    ASK = 31  # client -> agent: JSON, a question with a number
    ANSWER = 32  # agent -> client: JSON, the answer to the question of that number
    PEERS = 33  # worker -> agent -> client and back: JSON, the members of a version
    SERVE = 34  # client -> agent: JSON, let other nodes of the pool fetch stored buffers from here
    SERVING = 35  # agent -> client: JSON, the port where they can, or why not
    FETCH = 36  # client -> agent: get a stored buffer from another node
    FETCHED = 37  # agent -> client: how that ended
    GIVE = 38  # client -> agent: send a buffer that a task put
    KEEP = 39  # worker -> agent -> client and back: a file that the client keeps for tasks
    STORE = 40  # worker -> agent -> client and back: JSON, where the store of the collections is, and what became of it
    BEAT = 41  # agent -> client: nothing but that the agent is there
    STACKS = 45  # agent -> worker: tell of your event loops; worker -> agent: JSON, their tasks


_KINDS = {int(kind): kind for kind in Kind}
_WITH_FDS = frozenset({Kind.FUNCTION, Kind.BLOB, Kind.FILES, Kind.TASK, Kind.RESULT, Kind.ITEM, Kind.EMIT, Kind.KEEP})


class Frame(NamedTuple):
    """One frame, with the number of descriptors that came along."""

    kind: int
    lane: int
    fds: int
    body: bytes


def encode(kind: int, body: bytes = b"", *, lane: int = 0, fds: int = 0) -> bytes:
    """
    Render one frame.

    Args:
        kind: What it says.
        body: At most `MAX_BODY` bytes.
        lane: The worker it is for, or comes from.
        fds: How many descriptors travel with it.

    Raises:
        ProtocolError: If the body is too large.

    >>> encode(Kind.STOP).hex()
    '0000000018000000'
    """
    if len(body) > MAX_BODY:
        raise ProtocolError(f"A {Kind(kind).name} frame of {len(body)} bytes is over the limit of {MAX_BODY}.")
    return HEADER.pack(len(body), kind, fds, lane) + body


def encode_json(kind: int, value: Any) -> bytes:
    """
    Render a frame whose body is JSON.

    >>> encode_json(Kind.READY, {"pid": 1})[8:]
    b'{"pid": 1}'
    """
    return encode(kind, json.dumps(value).encode())


def decode_json(body: bytes) -> dict[str, Any]:
    """
    Read a JSON body that must hold an object.

    Raises:
        ProtocolError: If it holds anything else.
    """
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"A frame's body is no JSON: {error}.") from error
    if not isinstance(value, dict):
        raise ProtocolError(f"A frame's body is a {type(value).__name__}, not an object.")
    return value


class Parser:
    """
    Cut a stream of bytes into frames.

    >>> parser = Parser()
    >>> parser.feed(encode(Kind.STOP)[:5])
    []
    >>> [frame.kind for frame in parser.feed(encode(Kind.STOP)[5:])] == [Kind.STOP]
    True
    """

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[Frame]:
        """
        Take more bytes and return the frames that are complete now.

        Raises:
            ProtocolError: If the bytes are no frames of ours.
        """
        if self._rest:
            data = self._rest + data
        frames = []
        at, end = 0, len(data)
        unpack = HEADER.unpack_from
        while end - at >= 8:
            length, kind, fds, lane = unpack(data, at)
            if length > MAX_BODY or kind not in _KINDS or (fds and (fds > MAX_FDS or kind not in _WITH_FDS)):
                raise ProtocolError(
                    f"These bytes are no frame of Skyward's protocol {VERSION}: "
                    f"kind {kind}, {length} bytes, {fds} descriptors."
                )
            after = at + 8 + length
            if after > end:
                break
            frames.append(Frame(kind, lane, fds, data[at + 8 : after]))
            at = after
        self._rest = data[at:]
        return frames

    @property
    def pending(self) -> int:
        """Return how many bytes wait for the rest of their frame."""
        return len(self._rest)
