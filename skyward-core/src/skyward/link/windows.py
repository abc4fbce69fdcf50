"""
How much of each kind of frame a node may send before the client has dealt with it.

| frames | window |
|---|---|
| RESULT | one for each call that the node was given |
| ITEM | 16 items and 8 MiB of a stream, one item may be larger; more as they are taken |
| LOG, EMIT | 4 MiB, and one frame beyond; more as handlers take them |
| BLOB | one for each GIVE |
| KEEP | 16 requests of each worker, 2 MiB each, and 7.5 MiB of answers that it has not read |
| ANSWER, FETCHED, REFRESHED, RECALLED, CREDIT | what they are about is there, or they are ignored |
| METRIC | none: what is measured is dropped while handlers are behind |
| BEAT | none: it is empty, and nothing is kept of it |
| PEERS | one for each version of the members that the node was sent, and some more |
| the others | a number for the node's whole life |

A node that keeps no window loses its link, with the error that names the frame.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from skyward.errors import ProtocolError
from skyward.link.frames import Frame, Kind
from skyward.link.messages import count_lines
from skyward.link.order import sizes_of

OUTPUT_WINDOW: Final = 4 << 20
"""Bytes of lines and events that a node may send before handlers have taken them."""

OVERHEAD: Final = 256
"""Bytes that a frame counts for beyond those that travel: what it takes to hold it."""

LINE_OVERHEAD: Final = 64
"""Bytes that a line counts for beyond its own: 4 MiB of empty lines are 20 MB of events then, and not 140."""

LARGEST_EVENT: Final = 16 << 20
"""Bytes of one event that a task emits."""

_KIB: Final = 1 << 10
_LARGEST: Final[Mapping[int, int]] = {
    Kind.WELCOME: 64 * _KIB,
    Kind.READY: 64 * _KIB,
    Kind.NOTICE: 8 * _KIB,
    Kind.METRIC: 256 * _KIB,
    Kind.DROP: 32,
    Kind.STOPPED: 0,
    Kind.BEAT: 0,
    Kind.REFRESHED: 0,
    Kind.SERVING: 4 * _KIB,
    Kind.FETCHED: 4 * _KIB,
    Kind.STORE: 4 * _KIB,
}
_IN_ALL: Final[Mapping[int, int]] = {
    Kind.WELCOME: 16,
    Kind.READY: 16,
    Kind.STOPPED: 16,
    Kind.NOTICE: 4096,
    Kind.SERVING: 16,
    # Each process that fails to start says so; the first one counts.
    Kind.FAILED: 4096,
    Kind.WORKER: 4096,
    # An agent asks once for each store, and says once that one has ended.
    Kind.STORE: 65536,
    # One for each buffer that it had no memory for.
    Kind.DROP: 65536,
}
_NAMES: Final = {int(kind): kind.name for kind in Kind}


def cost(frame: Frame) -> int:
    """
    Return how many bytes a frame counts for in the window of lines and events, at both ends alike.

    >>> cost(Frame(Kind.LOG, 0, 0, bytes(100)))
    356
    """
    lines = count_lines(frame.body) if frame.kind == Kind.LOG else 0
    return OVERHEAD + len(frame.body) + LINE_OVERHEAD * lines + (sum(sizes_of(frame)) if frame.fds else 0)


class OutputWindow:
    """
    Bound the lines and events that a node has sent and handlers have not taken, as the client sees it.

    >>> window = OutputWindow()
    >>> window.arrived(Frame(Kind.LOG, 0, 0, bytes(OUTPUT_WINDOW)))
    4194560
    >>> window.arrived(Frame(Kind.LOG, 0, 0, b"more"))
    Traceback (most recent call last):
        ...
    skyward.errors.ProtocolError: The node sent a LOG frame beyond its window: 4194560 bytes of lines and events wait...
    """

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        self.waiting = 0

    def arrived(self, frame: Frame) -> int:
        """
        Count a frame that arrived, or is about to, and return what it counts for.

        Raises:
            ProtocolError: If the node had no leave to send it.
        """
        name, size = _NAMES[frame.kind], cost(frame)
        if self.waiting > OUTPUT_WINDOW:
            raise ProtocolError(
                f"The node sent a {name} frame beyond its window: {self.waiting} bytes of lines and events wait to be "
                f"taken, and it may send {OUTPUT_WINDOW}."
            )
        if size > 2 * LARGEST_EVENT:
            raise ProtocolError(f"The node sent a {name} frame of {size} bytes; {LARGEST_EVENT} are allowed.")
        self.waiting += size
        return size


class Life:
    """
    Bound the frames that a node sends a few times in its life, and the bytes in each.

    >>> life = Life()
    >>> for _ in range(17):
    ...     life.arrived(Frame(Kind.SERVING, 0, 0, b"{}"))
    Traceback (most recent call last):
        ...
    skyward.errors.ProtocolError: The node sent more than 16 SERVING frames in its life.
    """

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen: Counter[int] = Counter()

    def arrived(self, frame: Frame) -> None:
        """
        Count a frame that arrived.

        Raises:
            ProtocolError: If it is one too many, or too large for its kind.
        """
        largest, most = _LARGEST.get(frame.kind), _IN_ALL.get(frame.kind)
        if largest is not None and len(frame.body) > largest:
            raise ProtocolError(
                f"The node sent a {_NAMES[frame.kind]} frame of {len(frame.body)} bytes; {largest} are allowed."
            )
        if most is None:
            return
        self._seen[frame.kind] += 1
        if self._seen[frame.kind] > most:
            raise ProtocolError(f"The node sent more than {most} {_NAMES[frame.kind]} frames in its life.")
