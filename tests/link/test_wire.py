"""Every frame arrives once and in order, however often and wherever the connection is cut."""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import pytest

from skyward.errors import ProtocolError, TransportError
from skyward.link.cells import CHUNK, COUNT, DATA, MOST_OPEN, OPENING, SIZE, CellType, cell
from skyward.link.channel import Batch
from skyward.link.frames import VERSION, Frame, Kind, encode
from skyward.link.messages import BLOB, CALL, FUNCTION, ITEM, RESULT, TASK
from skyward.link.outbox import MOST_KEPT
from skyward.link.packed import WIDTHS, pack as pack_bytes
from skyward.link.packing import MOST_FRAMES
from skyward.link.payload import decode, views
from skyward.link.payload_making import pack
from skyward.link.segment import aligned
from skyward.link.wire import Wire
from skyward.node.agent.fds import close_all
from tests.descriptors import memory_descriptors
from tests.seeds import seeds


class Clock:
    """A loop whose time is the test's."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._now = 1000.0
        self._timers: list[Timer] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    def time(self) -> float:
        return self._now

    def call_at(self, when: float, call: Callable[[], None]) -> Timer:
        self._timers.append(Timer(when, call))
        return self._timers[-1]

    def advance(self, seconds: float) -> None:
        """Let time go by, and what is due happen."""
        self._now += seconds
        due = [timer for timer in self._timers if timer.at <= self._now]
        self._timers = [timer for timer in self._timers if timer.at > self._now]
        for timer in sorted(due, key=Timer.when):
            timer.call()


class Timer:
    """What a clock has to do at a time."""

    def __init__(self, at: float, call: Callable[[], None]) -> None:
        self.at = at
        self.call = call

    def when(self) -> float:
        return self.at

    def cancel(self) -> None:
        self.call = lambda: None


class Line:
    """One connection between two wires: bytes wait on it until the test lets some through, or cuts it."""

    def __init__(self, one: End, other: End, room: int = 1 << 20, *, first: bool = False) -> None:
        self.halves = [Half(room), Half(room)]
        self.ends = (one, other)
        self.open = True
        one.wire.attach(self.halves[0], first=first)
        other.wire.attach(self.halves[1])

    def step(self, most: int = 1 << 30, seconds: float = 0.001) -> bool:
        """Let up to so many bytes through, each way, in so many seconds."""
        moved = False
        for end in self.ends:
            end.clock.advance(seconds)
        for half, there, to in zip(self.halves, reversed(self.halves), reversed(self.ends), strict=True):
            data = half.take(most)
            if data:
                moved = True
                to.wire.receive(there, data)
        for half, end in zip(self.halves, self.ends, strict=True):
            if half.room() > 0:
                end.wire.flush()
        return moved

    def cut(self) -> None:
        """Lose what is on the way."""
        for half, end in zip(self.halves, self.ends, strict=True):
            half.closed = True
            end.wire.lost(half, None)


class Half:
    """One end's view of a line."""

    def __init__(self, room: int) -> None:
        self._most = room
        self._data = bytearray()
        self.closed = False

    def write(self, data: bytes) -> None:
        if not self.closed:
            self._data += data

    def room(self) -> int:
        return self._most - len(self._data)

    def close(self) -> None:
        self.closed = True

    def take(self, most: int) -> bytes:
        data = bytes(self._data[:most])
        del self._data[:most]
        return data


class End:
    """One end of a link, and what arrived there."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.frames: deque[tuple[Frame, list[bytes]]] = deque()
        self.closed: list[Exception | None] = []
        self.lost = 0
        self.heard = 0
        self.clock = Clock(loop)
        timed = cast("asyncio.AbstractEventLoop", self.clock)
        self.wire = Wire(
            timed,
            Batch(loop),
            "s",
            on_frame=self._frame,
            on_closed=self.closed.append,
            on_lost=self._on_lost,
            on_received=self._on_heard,
        )

    def _frame(self, frame: Frame, fds: tuple[int, ...]) -> None:
        contents = [os.pread(fd, 1 << 30, 0) for fd in fds]
        close_all(fds)
        self.frames.append((frame, contents))

    def _on_lost(self, error: Exception | None) -> None:
        self.lost += 1

    def _on_heard(self) -> None:
        self.heard += 1

    def bodies(self) -> list[bytes]:
        return [frame.body for frame, _ in self.frames]


def _run(test: Callable[[End, End], None]) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        one, other = End(loop), End(loop)
        try:
            test(one, other)
        finally:
            one.wire.close()
            other.wire.close()

    asyncio.run(main())


def _result(call: int, *parts: bytes) -> tuple[bytes, list[int], object]:
    """Render a RESULT frame whose large parts travel beside it."""
    payload = pack(parts)
    body = RESULT.pack(call, 0, 0.0, 0.0) + payload.encode()
    return encode(Kind.RESULT, body, fds=len(payload.fds)), payload.fds, payload


def test_frames_arrive_in_order_both_ways() -> None:
    """Small ones, at once."""

    def test(one: End, other: End) -> None:
        line = Line(one, other)
        for number in range(300):
            one.wire.send(encode(Kind.LOG, bytes([number % 256])))
            other.wire.send(encode(Kind.LOG, bytes([1, number % 256])))
        one.wire.flush()
        other.wire.flush()
        while line.step():
            pass
        assert other.bodies() == [bytes([number % 256]) for number in range(300)]
        assert one.bodies() == [bytes([1, number % 256]) for number in range(300)]

    _run(test)


def test_the_first_connection_carries_frames_before_the_other_end_has_said_hello() -> None:
    """There is nothing that it could have; they are there with our own hello, and are not sent once more."""

    def test(one: End, other: End) -> None:
        one.wire.send(encode(Kind.LOG, b"early"))
        line = Line(one, other, first=True)
        one.wire.send(encode(Kind.LOG, b"as well"))
        one.wire.flush()
        other.wire.receive(line.halves[1], line.halves[0].take(1 << 20))
        assert [b"early", b"as well"] == other.bodies()
        while line.step():
            pass
        one.wire.send(encode(Kind.LOG, b"later"))
        one.wire.flush()
        while line.step():
            pass
        assert [b"early", b"as well", b"later"] == other.bodies()

    _run(test)


def test_frames_that_went_ahead_and_were_lost_are_sent_again() -> None:
    """The next connection begins as any other."""

    def test(one: End, other: End) -> None:
        line = Line(one, other, first=True)
        one.wire.send(encode(Kind.LOG, b"early"))
        one.wire.flush()
        line.cut()
        line = Line(one, other)
        while line.step():
            pass
        assert [b"early"] == other.bodies()

    _run(test)


def test_an_end_that_has_heard_something_before_the_first_connection_is_refused() -> None:
    """It is none that was just made."""

    def test(one: End, other: End) -> None:
        other.wire.attach(Half(1 << 20))
        line = Line(one, other, first=True)
        one.wire.send(encode(Kind.LOG, b"early"))
        one.wire.flush()
        hello = json.dumps({"version": VERSION, "session": "s", "received": 1}).encode()
        one.wire.receive(line.halves[0], cell(CellType.HELLO, hello))
        assert [ProtocolError] == [type(error) for error in one.closed]

    _run(test)


@pytest.mark.parametrize("seed", seeds("cut connections", 12))
def test_nothing_is_lost_or_doubled_when_connections_are_cut(seed: int) -> None:
    """At any byte, many times, wherever buffers are taken from meanwhile."""
    random_ = random.Random(seed)

    def test(one: End, other: End) -> None:
        line = Line(one, other, room=random_.choice([1000, 200_000]), first=random_.random() < 0.5)
        sent: dict[bytes, list[bytes]] = {}
        received: list[int] = []
        elsewhere: list[tuple[Callable[[], None], list[memoryview]]] = []
        for call in range(120):
            size = random_.choice([1, 50, 3000, 300_000, 700_000])
            content = random_.randbytes(size)
            frame, fds, hold = _result(call, content)
            receipt = partial(received.append, call)
            one.wire.send(frame, fds, hold, receipt)
            elsewhere.append((receipt, [memoryview(os.pread(fd, 1 << 30, 0)) for fd in fds]))
            sent[CALL.pack(call)] = [content]
        waited = 0
        while len(other.frames) < len(sent):
            one.wire.flush()
            line.step(random_.choice([1, 100, 5000, 400_000]))
            waited += 1
            assert waited < 1_000_000
            one.wire.replace(*random_.choice(elsewhere))
            if random_.random() < 0.02:
                line.cut()
                assert other.closed == one.closed == []
                line = Line(one, other, room=random_.choice([1000, 200_000]))
        arrived = {}
        for frame, buffers in other.frames:
            call = frame.body[: CALL.size]
            assert call not in arrived
            memory = [os.memfd_create("x") for _ in buffers]
            for fd, content in zip(memory, buffers, strict=True):
                os.write(fd, content)
            arrived[call] = [bytes(view) for view in views(decode(frame.body, RESULT.size, memory))]
        assert arrived == sent
        line.step(seconds=1.0)
        line.step()
        assert sorted(received) == list(range(120))

    _run(test)


def test_small_frames_overtake_large_ones_of_other_calls_only() -> None:
    """What belongs to one call stays in order."""

    def test(one: End, other: End) -> None:
        line = Line(one, other, room=CHUNK)
        for frame, fds, hold in (_result(1, bytes(1 << 20)), _result(2, b"x")):
            one.wire.send(frame, fds, hold)
        one.wire.send(encode(Kind.ITEM, ITEM.pack(1, 0) + b"\0\0late"))
        one.wire.send(encode(Kind.LOG, b"early"))
        one.wire.flush()
        while line.step(CHUNK):
            pass
        order = [(frame.kind, frame.body[:8]) for frame, _ in other.frames]
        assert order == [
            (Kind.RESULT, CALL.pack(2)),
            (Kind.LOG, b"early"),
            (Kind.RESULT, CALL.pack(1)),
            (Kind.ITEM, CALL.pack(1)),
        ]

    _run(test)


def test_task_comes_after_all_that_it_needs() -> None:
    """Its function, its files, and what it left to arrive by digest."""

    def test(one: End, other: End) -> None:
        line = Line(one, other, room=CHUNK)
        function, kept, files = bytes(range(16)), bytes(32), pack([b"[]", bytes(1 << 20)])
        blob = pack([bytes(1 << 20)])
        one.wire.send(encode(Kind.FILES, files.encode(), fds=1), files.fds, files)
        one.wire.send(encode(Kind.BLOB, BLOB.pack(kept, 1 << 20), fds=1), blob.fds, blob)
        one.wire.send(encode(Kind.FUNCTION, FUNCTION.pack(function, 0) + b"\0\0f"))
        one.wire.send(encode(Kind.TASK, TASK.pack(1, 0.0, 0, 0, 0, function) + b"\0\0"))
        one.wire.send(encode(Kind.TASK, TASK.pack(2, 0.0, 0, 0, 0, bytes(16)) + b"\0\0"))
        one.wire.send(encode(Kind.MEMBERS, b"{}"))
        one.wire.flush()
        while line.step(CHUNK):
            pass
        kinds = [frame.kind for frame, _ in other.frames]
        assert kinds[0] == Kind.MEMBERS
        assert kinds.index(Kind.FILES) < kinds.index(Kind.FUNCTION) < kinds.index(Kind.TASK)
        assert sorted(kinds) == [Kind.MEMBERS, Kind.FUNCTION, Kind.BLOB, Kind.FILES, Kind.TASK, Kind.TASK]

    _run(test)


def test_small_task_overtakes_a_large_one_of_the_same_function() -> None:
    """They only need what both need; dropping that waits for both."""

    def test(one: End, other: End) -> None:
        line = Line(one, other, room=CHUNK)
        function, large = bytes(range(16)), pack([bytes(1 << 20)])
        one.wire.send(encode(Kind.FUNCTION, FUNCTION.pack(function, 0) + b"\0\0f"))
        one.wire.send(encode(Kind.TASK, TASK.pack(1, 0.0, 0, 0, 0, function) + large.encode(), fds=1), large.fds, large)
        one.wire.send(encode(Kind.TASK, TASK.pack(2, 0.0, 0, 0, 0, function) + b"\0\0"))
        one.wire.send(encode(Kind.DROP, function))
        one.wire.flush()
        while line.step(CHUNK):
            pass
        order = [(frame.kind, frame.body[:8]) for frame, _ in other.frames]
        assert [kind for kind, _ in order] == [Kind.FUNCTION, Kind.TASK, Kind.TASK, Kind.DROP]
        assert order[1][1] == CALL.pack(2)

    _run(test)


def test_thousands_of_large_frames_take_few_descriptors_at_the_other_end() -> None:
    """However many wait, a bounded number is on the way at once."""

    def test(one: End, other: End) -> None:
        line = Line(one, other, room=1 << 20)
        frame, fds, hold = _result(0, bytes(257 << 10))
        for call in range(1100):
            one.wire.send(encode(Kind.RESULT, CALL.pack(call) + frame[8 + CALL.size :], fds=len(fds)), fds, hold)
        one.wire.flush()
        most = 0
        while len(other.frames) < 1100 and line.step():
            most = max(most, len(other.wire._inbox._open))
        assert (one.closed, other.closed) == ([], [])
        assert sorted(body[:8] for body in other.bodies()) == sorted(map(CALL.pack, range(1100)))
        assert most <= MOST_OPEN

    _run(test)


@pytest.mark.parametrize(("apart", "fewest", "most"), [(0.00002, 16, 40), (0.0002, 60, 90), (0.001, 125, 140)])
def test_bytes_that_arrive_quickly_are_acknowledged_together(apart: float, fewest: int, most: int) -> None:
    """Not more often than every half a millisecond, nor later than every 512 KiB."""

    def test(one: End, other: End) -> None:
        line = Line(one, other, room=1 << 30)
        line.step()
        # All of it is under way at once, however promptly it is acknowledged.
        one.wire._outbox._window = 1 << 30
        frame, fds, hold = _result(1, bytes(256 * CHUNK))
        one.wire.send(frame, fds, hold)
        one.wire.flush()
        answers = one.heard = 0
        while not other.frames:
            line.step(CHUNK, apart)
            answers += one.heard
            one.heard = 0
        assert fewest <= answers <= most

    _run(test)


def test_all_bytes_are_acknowledged_soon_after_the_last() -> None:
    """Also those for which an acknowledgement was put off."""

    def test(one: End, other: End) -> None:
        line = Line(one, other, room=1 << 30)
        received: list[int] = []
        frame, fds, hold = _result(1, bytes(3 * CHUNK - 1000))
        one.wire.send(frame, fds, hold, lambda: received.append(1))
        line.step()
        while not other.frames:
            line.step(CHUNK, 0.00001)
        for _ in range(25):
            line.step()
        assert received == [1]

    _run(test)


def test_end_that_asks_and_never_reads_fills_no_memory() -> None:
    """It is answered when there is room again, and once."""

    def test(one: End, other: End) -> None:
        half = Half(1000)
        one.wire.attach(half)
        one.wire.receive(half, cell(CellType.HELLO, b'{"version": %d, "session": "s", "received": 0}' % VERSION))
        for _ in range(10_000):
            one.wire.receive(half, cell(CellType.PING) * 10)
        assert len(half.take(1 << 30)) < 1100
        one.wire.flush()
        assert half.take(1 << 30) == cell(CellType.ACK, COUNT.pack(0))

    _run(test)


def _while(line: Line) -> None:
    while line.step():
        pass


def test_buffers_that_are_not_wanted_are_dropped() -> None:
    """They take no memory, and what comes behind them is whole."""
    wanted: list[int] = []

    def test(one: End, other: End) -> None:
        def announced(frame: Frame) -> bool:
            wanted.append(CALL.unpack_from(frame.body)[0])
            return wanted[-1] == 2

        other.wire.on_announced = announced
        line = Line(one, other)
        for call in (1, 2, 3):
            one.wire.send(*_result(call, bytes([call]) * 300_000))
        one.wire.send(encode(Kind.LOG, b"after"))
        one.wire.flush()
        descriptors = memory_descriptors()
        line.step(70_000)
        assert memory_descriptors() <= descriptors + 1
        _while(line)
        assert [1, 2, 3] == wanted
        arrived = [(frame.kind, contents) for frame, contents in other.frames if frame.kind == Kind.RESULT]
        assert [bytes([2]) * 300_000] == [contents[0][:300_000] for _, contents in arrived]
        assert b"after" in other.bodies()
        assert not other.closed

    _run(test)


def test_buffers_that_should_not_come_close_the_link() -> None:
    """With the error that says so, at both ends."""

    def test(one: End, other: End) -> None:
        def announced(frame: Frame) -> bool:
            raise ProtocolError("not asked for")

        other.wire.on_announced = announced
        line = Line(one, other)
        one.wire.send(*_result(1, bytes(300_000)))
        one.wire.flush()
        _while(line)
        assert "not asked for" == str(other.closed[0])
        assert "not asked for" in str(one.closed[0])
        assert not other.frames

    _run(test)


def test_two_large_frames_of_one_call_do_not_come_at_once() -> None:
    """An honest end keeps them in order; what is announced is bounded by the calls that there are."""

    def test(one: End, other: End) -> None:
        line = Line(one, other)
        line.step()
        payload = pack([bytes(300_000)])
        frame = encode(Kind.RESULT, RESULT.pack(7, 0, 0.0, 0.0) + payload.encode(), fds=1)
        for stream in (1, 2):
            prefix = OPENING.pack(stream, 1) + SIZE.pack(aligned(300_000))
            other.wire.receive(line.halves[1], cell(CellType.OPEN, frame, prefix))
        assert "announced two RESULT frames of one call at once" in str(other.closed[0])

    _run(test)


def test_an_end_that_acknowledges_nothing_is_given_up() -> None:
    """All that it was sent is kept for it, and that has an end."""

    def test(one: End, other: End) -> None:
        line = Line(one, other)
        line.step()
        body = bytes(1 << 20)
        for _ in range(MOST_KEPT // len(body) + 2):
            one.wire.send(encode(Kind.LOG, body))
            one.wire.flush()
            line.halves[0].take(1 << 30)
        assert "has not acknowledged" in str(one.closed[0])

    _run(test)


def test_goodbye_closes_the_other_end() -> None:
    """It does not wait for another connection."""

    def test(one: End, other: End) -> None:
        line = Line(one, other)
        line.step()
        line.step()
        one.wire.close()
        line.step()
        assert (one.closed, other.closed, other.lost) == ([None], [None], 0)

    _run(test)


def test_end_that_gives_up_says_why() -> None:
    """A full disk is no bug, and the other end hears of it."""

    def test(one: End, other: End) -> None:
        line = Line(one, other)
        line.step()
        line.step()

        def full(frame: Frame, fds: tuple[int, ...]) -> None:
            raise OSError(28, "No space left on device")

        other.wire._inbox._on_frame = full
        one.wire.send(encode(Kind.LOG, b"x"))
        one.wire.flush()
        line.step()
        line.step()
        assert isinstance(other.closed[0], TransportError)
        assert isinstance(one.closed[0], TransportError)
        assert "No space left on device" in str(one.closed[0])

    _run(test)


def test_another_session_is_refused() -> None:
    """The error says whose the node is."""

    def test(one: End, other: End) -> None:
        one.wire._session = "another"
        line = Line(one, other)
        line.step()
        assert isinstance(other.closed[0], ProtocolError)
        assert "belongs to another client" in str(other.closed[0])

    _run(test)


@pytest.mark.parametrize(
    "data",
    [
        b"\xff" * 20,
        cell(CellType.FRAME, encode(Kind.LOG)),
        cell(CellType.HELLO, b"[]"),
        cell(CellType.HELLO, b'{"version": %d, "session": "s", "received": 99}' % VERSION),
        cell(CellType.HELLO, b'{"version": %d, "session": "s", "received": 0}' % VERSION)
        + cell(CellType.ACK, COUNT.pack(5)),
        cell(CellType.HELLO, b'{"version": %d, "session": "s", "received": 0}' % VERSION) + cell(CellType.ACK, b"1"),
        cell(CellType.HELLO, b'{"version": %d, "session": "s", "received": 0}' % VERSION)
        + cell(CellType.DATA, bytes(9)),
        cell(CellType.HELLO, b'{"version": %d, "session": "s", "received": 0}' % VERSION)
        + cell(CellType.OPEN, bytes(40)),
        cell(CellType.HELLO, b'{"version": %d, "session": "s", "received": 0}' % VERSION) + cell(CellType.FRAME, b"12"),
        cell(CellType.HELLO, b'{"version": %d, "session": "s", "received": 0}' % VERSION) * 2,
        cell(CellType.PACKED, DATA.pack(1) + pack_bytes(b"x" * 99, 1)),
        *(
            cell(CellType.HELLO, b'{"version": %d, "session": "s", "received": 0}' % VERSION) + cell(kind, body)
            for kind, body in [
                (CellType.PACKED, b""),
                (CellType.PACKED, DATA.pack(1)),
                (CellType.PACKED, DATA.pack(1) + pack_bytes(b"x" * 99, 1)),
                (CellType.PACKED_FRAMES, b""),
                (CellType.PACKED_FRAMES, b"\1\x08\0\0\0" + b"\xff" * 20),
                (CellType.PACKED_FRAMES, pack_bytes(b"no frames at all", 1)),
                (CellType.PACKED_FRAMES, pack_bytes(encode(Kind.LOG, bytes(MOST_FRAMES)), 1)),
            ]
        ),
    ],
)
def test_hostile_bytes_close_the_link(data: bytes) -> None:
    """With one clear error."""

    def test(one: End, other: End) -> None:
        half = Half(1 << 20)
        one.wire.attach(half)
        one.wire.receive(half, data)
        assert isinstance(one.closed[0], ProtocolError)

    _run(test)


@pytest.mark.parametrize("seed", seeds("random cells", 12))
def test_random_cells_close_the_link_or_are_taken(seed: int) -> None:
    """Nothing else is raised."""
    random_ = random.Random(seed)

    def test(one: End, other: End) -> None:
        half = Half(1 << 20)
        one.wire.attach(half)
        one.wire.receive(half, cell(CellType.HELLO, b'{"version": %d, "session": "s", "received": 0}' % VERSION))
        for _ in range(200):
            kind = random_.choice(list(CellType))
            body = random_.randbytes(random_.choice([0, 4, 5, 8, 20, 60]))
            if random_.random() < 0.5:
                body = encode(random_.choice(list(Kind)), body)
            if body and random_.random() < 0.3:
                body = random_.choice([b"", DATA.pack(1)]) + pack_bytes(body, 1, random_.choice(WIDTHS))
            one.wire.receive(half, cell(kind, body))
        assert one.closed == [] or isinstance(one.closed[0], (ProtocolError, TransportError, type(None)))

    _run(test)
