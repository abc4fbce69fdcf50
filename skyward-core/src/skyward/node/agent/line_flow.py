"""The way of what processes print and emit to the client: never more on it than the client has room for."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from struct import Struct

from skyward.link.frames import Frame, Kind, encode
from skyward.link.messages import LogLine, encode_lines
from skyward.link.windows import OUTPUT_WINDOW, cost
from skyward.link.wire import Wire
from skyward.node.agent.child_process import ChildProcess
from skyward.node.agent.fds import HeldFds, close_all
from skyward.node.agent.spool import Spool

WINDOW = OUTPUT_WINDOW
"""Bytes that may be sent before the client has read them, and one frame more."""

SILENT = 15.0
"""Seconds of silence after which a client counts as away; its heartbeats come far more often."""

_PIECE = 256 << 10
_LOOK = 1.0
_LANE = Struct("<H")


class Lines:
    """
    Send lines and events, and stop reading what processes print while the client reads none.

    Args:
        tell: Sends a frame to the client.
        processes: Returns those that run.
    """

    def __init__(self, tell: Callable[..., None], processes: Callable[[], Iterable[ChildProcess]]) -> None:
        self._tell = tell
        self._processes = processes
        self._unread = 0
        self._reading = True
        self._held: deque[tuple[int, Callable[[], None]]] = deque()
        self._sent: Callable[[], None] | None = None

    @property
    def reading(self) -> bool:
        """Return whether what processes print is read now."""
        return self._reading

    @property
    def holding(self) -> bool:
        """Return whether something waits here until the client has read more, so that processes should send nothing."""
        return bool(self._held)

    def say(self, process: ChildProcess, stream: int, lines: list[LogLine]) -> None:
        """Pass lines on."""
        self._send(process.lane, encode_lines(stream, lines))
        self._pace()

    def note(self, text: str) -> None:
        """Pass on what the node itself says, as a line that the first worker wrote to its standard error."""
        self._send(0, encode_lines(2, [LogLine(0, f"skyward: {text}")]))
        self._pace()

    def emit(self, lane: int, frame: Frame, fds: tuple[int, ...]) -> None:
        """Pass an event on, with its descriptors, which are taken over."""
        self._pass(encode(frame.kind, frame.body, lane=lane, fds=len(fds)), cost(frame), fds)
        self._pace()

    def after(self, do: Callable[[tuple[int, ...]], None], fds: tuple[int, ...]) -> None:
        """Call something with descriptors, which are taken over, after the lines and events that wait here."""
        hold = HeldFds(fds)
        self._held.append((0, lambda: do(hold.hand_over())))
        self._go_on()

    def read(self, size: int) -> None:
        """Record that the client has read so many bytes."""
        self._unread -= size
        self._go_on()
        self._pace()

    def when_sent(self, do: Callable[[], None]) -> None:
        """Call something after the last line is sent."""
        self._sent = do
        self._look_whether_sent()

    def close(self) -> None:
        """Keep nothing."""
        self._held.clear()

    @property
    def _all_sent(self) -> bool:
        return not self._held

    def _look_whether_sent(self) -> None:
        if self._sent is not None and self._all_sent:
            done, self._sent = self._sent, None
            done()

    def _wants_more(self) -> bool:
        """Return whether there is room for what processes print."""
        return self._unread <= WINDOW

    def _pace(self) -> None:
        """Read what processes print, or let them wait."""
        wanted = self._wants_more()
        if not wanted:
            for each in self._processes():
                each.deafen()
        elif not self._reading:
            for each in self._processes():
                each.listen()
        self._reading = wanted

    def _send(self, lane: int, body: bytes) -> None:
        self._pass(encode(Kind.LOG, body, lane=lane), cost(Frame(Kind.LOG, lane, 0, body)))

    def _pass(self, frame: bytes, size: int, fds: tuple[int, ...] = ()) -> None:
        self._held.append((size, partial(self._tell, frame, fds, HeldFds(fds))))
        self._go_on()

    def _go_on(self) -> None:
        while self._held and (self._unread <= WINDOW or not self._held[0][0]):
            size, do = self._held.popleft()
            self._unread += size
            do()
        self._look_whether_sent()


class SpooledLines(Lines):
    """
    Send lines to a client that may be away for a while: no print waits for it.

    What is printed meanwhile goes to disk, the oldest of it is lost when that is too much, and a note says so.

    Args:
        tell: Sends a frame to the client.
        processes: Returns those that run.
        loop: The agent's loop.
        link: The way to the client.
        spool: Where lines wait.
    """

    def __init__(
        self,
        tell: Callable[..., None],
        processes: Callable[[], Iterable[ChildProcess]],
        *,
        loop: asyncio.AbstractEventLoop,
        link: Wire,
        spool: Spool,
    ) -> None:
        super().__init__(tell, processes)
        self._loop = loop
        self._link = link
        self._spool = spool
        self._looking: asyncio.TimerHandle | None = None
        # Whether the client counts as dead, and another one may come.
        self.alone = False

    def park(self) -> None:
        """Keep lines until another client is there; events are for one that is."""
        self._unread = 0
        self._go_on()

    def succeeded(self) -> None:
        """Send another client what was kept; it has read nothing yet."""
        self._unread = 0
        self.read(0)

    def emit(self, lane: int, frame: Frame, fds: tuple[int, ...]) -> None:
        """Pass an event on, unless no client is there."""
        if self._link.parked or self.alone:
            close_all(fds)
        else:
            super().emit(lane, frame, fds)

    def say(self, process: ChildProcess, stream: int, lines: list[LogLine]) -> None:
        """Pass lines on, now or when those before them are sent."""
        body = encode_lines(stream, lines)
        # A client that is behind is checked only while away: what is printed as it returns is kept, too.
        if (
            self._spool.waiting
            or self._link.parked
            or (self._unread > WINDOW and (self._reading or self._link.away(SILENT)))
        ):
            self._spool.append(_LANE.pack(process.lane) + body, len(lines))
        else:
            self._send(process.lane, body)
        self._pace()

    def read(self, size: int) -> None:
        """Record that the client has read so many bytes, and send it more."""
        self._unread -= size
        self._go_on()
        while self._spool.waiting and self._unread <= WINDOW:
            lost, records = self._spool.take(_PIECE)
            if lost:
                self._send(0, encode_lines(2, [LogLine(0, _dropped(lost))]))
            for record in records:
                self._send(_LANE.unpack_from(record)[0], record[_LANE.size :])
        self._look_whether_sent()
        self._pace()

    def close(self) -> None:
        """Keep nothing."""
        super().close()
        if self._looking is not None:
            self._looking.cancel()
        self._spool.close()

    @property
    def _all_sent(self) -> bool:
        return not self._held and not self._spool.waiting

    def _wants_more(self) -> bool:
        """Return whether to read what processes print: unless a client that is there is behind."""
        behind = self._spool.full if self._spool.waiting else self._unread > WINDOW
        wanted = not behind or self._link.away(SILENT)
        if not wanted and self._looking is None:
            self._looking = self._loop.call_later(_LOOK, self._look)
        return wanted

    def _look(self) -> None:
        """Check whether the client that is waited for is still there."""
        self._looking = None
        self._pace()


def _dropped(lost: int) -> str:
    lines = "1 line" if lost == 1 else f"{lost} lines"
    return f"[skyward] {lines} of output were lost here: more was printed than is kept while the client is away."
