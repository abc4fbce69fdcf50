"""
One direction of a line of some length and width, and the bytes of one connection that are on the way in it.
"""

from __future__ import annotations

import contextlib
import socket
from collections import deque

import attrs

CHUNK = 256 << 10
ON_THE_WAY = 512 << 20
"""Bytes that may be on the way in one direction of one connection: half a second at a gigabyte a second."""
QUEUE_S = 0.02
"""Seconds of the bottleneck's time that may wait before it."""
SLICE_S = 0.002
"""Seconds of the bottleneck's time that one connection may take at a time, so that all get their share."""


@attrs.define
class Line:
    """
    One direction of the line.

    Args:
        delay_s: Half the round trip.
        bytes_per_s: The rate; None for as fast as it goes.

    >>> line = Line(delay_s=0.5, bytes_per_s=1000.0)
    >>> line.due(5.0, 250), line.due(5.0, 250)
    (5.75, 6.0)
    >>> line.room(5.0), line.free_at(5.0)
    (0, 5.48)
    """

    delay_s: float = 0.0
    bytes_per_s: float | None = None
    passed: int = 0
    busy_until: float = 0.0

    def due(self, now: float, size: int) -> float:
        """
        Let bytes pass the bottleneck, and tell when they arrive.
        """
        self.passed += size
        self.busy_until = max(self.busy_until, now) + (size / self.bytes_per_s if self.bytes_per_s else 0.0)
        return self.busy_until + self.delay_s

    def room(self, now: float) -> int:
        """
        Tell how many bytes may be read now; none while enough waits before the bottleneck.
        """
        if not self.bytes_per_s:
            return CHUNK
        if self.busy_until - now >= QUEUE_S:
            return 0
        return max(1460, min(CHUNK, int(self.bytes_per_s * SLICE_S)))

    def free_at(self, now: float) -> float:
        """
        Tell when more may be read.
        """
        return max(now, self.busy_until - QUEUE_S)

    def change(self, now: float, delay_s: float, bytes_per_s: float | None) -> None:
        """
        Be another line from now on; what waits before the bottleneck leaves it at the new rate.
        """
        waiting = max(0.0, self.busy_until - now) * (self.bytes_per_s or 0.0)
        self.busy_until = now + (waiting / bytes_per_s if bytes_per_s else 0.0)
        self.delay_s, self.bytes_per_s = delay_s, bytes_per_s


@attrs.define(eq=False)
class Flow:
    """
    One direction of one connection.

    Args:
        source: Where bytes come from.
        target: Where they go.
        line: What they pass.
        ahead_s: How much sooner than the line says the first of them arrive: they were sent before the flow began.
    """

    source: socket.socket
    target: socket.socket
    line: Line
    ahead_s: float = 0.0
    on_the_way: deque[tuple[float, memoryview | None]] = attrs.field(factory=deque)
    size: int = 0
    ended: bool = False
    stuck: bool = False
    due: float = 0.0

    @property
    def over(self) -> bool:
        """
        Tell whether nothing more comes and nothing is on the way.
        """
        return self.ended and not self.on_the_way

    def read(self, now: float) -> None:
        """
        Take some of what the source has.
        """
        try:
            data = self.source.recv(self.line.room(now))
        except BlockingIOError:
            return
        except OSError:
            data = b""
        # The new delay of a line may be shorter, and nothing overtakes what was sent before.
        self.due = max(self.due, self.line.due(now, len(data)) - self.ahead_s)
        self.ahead_s = 0.0
        self.on_the_way.append((self.due, memoryview(data) if data else None))
        self.size += len(data)
        self.ended = not data

    def write(self, now: float) -> None:
        """
        Give the target what has arrived.
        """
        self.stuck = False
        while self.on_the_way and self.on_the_way[0][0] <= now:
            due, data = self.on_the_way.popleft()
            try:
                if data is None:
                    self.target.shutdown(socket.SHUT_WR)
                    return
                sent = self.target.send(data)
            except BlockingIOError:
                sent = 0
            except OSError:
                self._break_off()
                return
            self.size -= sent
            if sent < len(data or b""):
                self.on_the_way.appendleft((due, data[sent:] if data else None))
                self.stuck = True
                return

    def _break_off(self) -> None:
        """Drop what the target would have got: it is gone."""
        self.on_the_way.clear()
        self.size, self.ended = 0, True
        with contextlib.suppress(OSError):
            self.source.shutdown(socket.SHUT_RD)
