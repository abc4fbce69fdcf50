"""Both ends of a real link over a slow line: bytes on it are counted, and what arrives is what was sent."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from skyward.errors import ProtocolError
from skyward.link.cells import CHUNK, DATA, NUMBERED, OPENING, SIZE, CellParser, CellType, cell
from skyward.link.frames import VERSION, Kind, encode
from skyward.link.messages import CALL, RESULT
from skyward.link.packed import pack as pack_bytes
from skyward.link.payload_making import pack
from skyward.link.segment import aligned
from tests.link.test_wire import End, Half, Line, _result, _run
from tests.seeds import seeds

SLOW = 2500
"""Bytes in a millisecond: 20 Mbit/s."""

MIB = 1 << 20


def _text(size: int, seed: int = 1) -> bytes:
    random_ = random.Random(seed)
    rows = [json.dumps({"id": random_.getrandbits(40), "name": f"user {i}", "ok": True}) for i in range(size // 40)]
    return "\n".join(rows).encode()[:size]


class Counted(Half):
    """A half of a line that counts what goes over it, and which cells."""

    def __init__(self, room: int) -> None:
        super().__init__(room)
        self.bytes = 0
        self.kinds: list[CellType] = []
        self._parser = CellParser()

    def write(self, data: bytes) -> None:
        super().write(data)
        self.bytes += len(data)
        self.kinds += [piece.kind for piece in self._parser.feed(data) if piece.last and piece.kind in NUMBERED]


def _slow(one: End, other: End) -> tuple[Line, list[Counted]]:
    """Join two ends by a line that is counted."""
    line = Line(one, other)
    halves = [Counted(64 << 10), Counted(64 << 10)]
    for half, end in zip(halves, (one, other), strict=True):
        end.wire.attach(half)
    line.halves = list(halves)
    return line, halves


def _carry(line: Line, done: Callable[[], bool], most: int = SLOW) -> None:
    for _ in range(100_000):
        line.step(most)
        if done():
            return
    raise AssertionError("what was sent did not arrive")


def _send(end: End, call: int, content: bytes, receipt: Callable[[], None] | None = None) -> None:
    end.wire.send(*_result(call, content), receipt)
    end.wire.flush()


def test_text_takes_a_third_of_a_slow_line_both_ways() -> None:
    """Arguments and results alike, in bytes on the line."""

    def test(one: End, other: End) -> None:
        line, halves = _slow(one, other)
        there, back = _text(4 * MIB), _text(4 * MIB, 2)
        _send(one, 1, there)
        _send(other, 2, back)
        _carry(line, lambda: len(one.frames) == len(other.frames) == 1)
        assert there == other.frames[0][1][0][: len(there)]
        assert back == one.frames[0][1][0][: len(back)]
        for half in halves:
            assert half.bytes <= 0.35 * 4 * MIB
            assert half.kinds.count(CellType.PACKED) > half.kinds.count(CellType.DATA)

    _run(test)


def test_noise_goes_as_it_is() -> None:
    """No byte more than without."""

    def test(one: End, other: End) -> None:
        line, halves = _slow(one, other)
        content = random.Random(1).randbytes(2 * MIB)
        _send(one, 1, content)
        _carry(line, lambda: len(other.frames) == 1)
        assert content == other.frames[0][1][0][: len(content)]
        assert halves[0].bytes <= 2 * MIB + 2000
        assert CellType.PACKED not in halves[0].kinds

    _run(test)


@pytest.mark.parametrize("unpacks", [None, [], ["another"], "deflate", 7, {"deflate": 1}])
def test_an_end_that_does_not_say_it_can_gets_nothing_compressed(unpacks: Any) -> None:
    """Nor one that says something else."""

    def test(one: End, other: End) -> None:
        half = Counted(1 << 20)
        one.wire.attach(half)
        hello = {"version": VERSION, "session": "s", "received": 0, **({} if unpacks is None else {"unpacks": unpacks})}
        one.wire.receive(half, cell(CellType.HELLO, json.dumps(hello).encode()))
        one.wire._outbox._line.rate = 1e6
        _send(one, 1, _text(400_000))
        one.wire.send(encode(Kind.LOG, _text(8000)))
        one.wire.flush()
        assert {CellType.FRAME, CellType.OPEN, CellType.DATA} == set(half.kinds)

    _run(test)


def test_small_frames_are_compressed_on_a_slow_line() -> None:
    """As many together as make a packet; and they come back as they were."""

    def test(one: End, other: End) -> None:
        line, halves = _slow(one, other)
        _carry(line, lambda: one.wire.connected)
        one.wire._outbox._line.rate = 1e6
        bodies = [_text(800, seed) for seed in range(200)]
        before = halves[0].bytes
        for body in bodies:
            one.wire.send(encode(Kind.LOG, body))
        one.wire.flush()
        _carry(line, lambda: len(other.frames) == len(bodies))
        assert bodies == other.bodies()
        assert halves[0].bytes - before <= 0.5 * sum(map(len, bodies))

    _run(test)


def test_small_frames_go_between_pieces_that_are_compressed() -> None:
    """A call does not wait for all that is large."""

    def test(one: End, other: End) -> None:
        line, _ = _slow(one, other)
        _carry(line, lambda: one.wire.connected)
        one.wire._outbox._line.rate = 2.5e6
        _send(one, 1, _text(8 * MIB))
        for _ in range(100):
            line.step(SLOW)
        one.wire.send(encode(Kind.LOG, b"early"))
        one.wire.flush()
        _carry(line, lambda: bool(other.frames))
        assert Kind.LOG == other.frames[0][0].kind

    _run(test)


def test_the_loop_has_its_turn_after_each_piece() -> None:
    """However much there is room for: compressing goes on when the loop comes back to it."""

    def test(one: End, other: End) -> None:
        line, halves = _slow(one, other)
        _carry(line, lambda: one.wire.connected)
        one.wire._outbox._line.rate = 2.5e6
        before = len(halves[0].kinds)
        _send(one, 1, _text(2 * MIB))
        assert [CellType.OPEN, CellType.PACKED] == halves[0].kinds[before:]
        one.wire._rested()
        assert [CellType.OPEN, CellType.PACKED, CellType.PACKED] == halves[0].kinds[before:]

    _run(test)


@pytest.mark.parametrize("seed", seeds("cut compressed connections", 3))
def test_nothing_is_lost_or_doubled_when_connections_are_cut(seed: int) -> None:
    """What was compressed is sent again as it was."""
    random_ = random.Random(seed)

    def test(one: End, other: End) -> None:
        line, halves = _slow(one, other)
        one.wire._outbox._line.rate = 2.5e6
        sent: dict[int, bytes] = {}
        received: list[int] = []
        for call in range(30):
            content = _text(random_.choice([300, 5000, 300_000, 700_000]), call)
            if random_.random() < 0.2:
                content = random_.randbytes(300_000)
            sent[call] = content
            _send(one, call, content, partial(received.append, call))
        packed = waited = 0
        while len(other.frames) < len(sent):
            one.wire.flush()
            line.step(random_.choice([100, 2500, 10_000]))
            waited += 1
            assert waited < 1_000_000
            if random_.random() < 0.02:
                line.cut()
                assert other.closed == one.closed == []
                packed += halves[0].kinds.count(CellType.PACKED)
                line, halves = _slow(one, other)
        packed += halves[0].kinds.count(CellType.PACKED)
        for frame, buffers in other.frames:
            content = sent.pop(CALL.unpack_from(frame.body)[0])
            assert content in (buffers[0][: len(content)] if buffers else frame.body)
        assert not sent
        assert packed
        line.step(seconds=1.0)
        line.step()
        assert sorted(received) == list(range(30))

    _run(test)


def _opened(other: End, size: int) -> Half:
    """Begin as a hostile end: a buffer is announced."""
    half = Half(1 << 20)
    other.wire.attach(half)
    other.wire.receive(half, cell(CellType.HELLO, b'{"version": %d, "session": "s", "received": 0}' % VERSION))
    payload = pack([bytes(size)])
    frame = encode(Kind.RESULT, RESULT.pack(7, 0, 0.0, 0.0) + payload.encode(), fds=1)
    other.wire.receive(half, cell(CellType.OPEN, frame, OPENING.pack(1, 1) + SIZE.pack(aligned(size))))
    return half


def test_pieces_that_are_more_than_was_announced_close_the_link() -> None:
    """Small as they are on the line."""

    def test(one: End, other: End) -> None:
        half = _opened(other, 300_000)
        for _ in range(300_000 // CHUNK + 1):
            assert other.closed == []
            other.wire.receive(half, cell(CellType.PACKED, pack_bytes(bytes(CHUNK), 1), DATA.pack(1)))
        assert isinstance(other.closed[0], ProtocolError)
        assert "more bytes of stream 1 than it announced" in str(other.closed[0])

    _run(test)


def test_a_piece_larger_than_any_closes_the_link() -> None:
    """No end of ours compresses more at once."""

    def test(one: End, other: End) -> None:
        half = _opened(other, 300_000)
        other.wire.receive(half, cell(CellType.PACKED, pack_bytes(bytes(CHUNK + 1), 1), DATA.pack(1)))
        assert "cannot be" in str(other.closed[0])

    _run(test)


def test_compressed_pieces_and_others_fill_one_buffer() -> None:
    """In the order in which they come."""

    def test(one: End, other: End) -> None:
        half = _opened(other, 300_000)
        content = _text(aligned(300_000)).ljust(aligned(300_000), b" ")
        for at in range(0, len(content), CHUNK):
            piece = content[at : at + CHUNK]
            packed = at // CHUNK % 2
            kind, body = (CellType.PACKED, pack_bytes(piece, 1, 8)) if packed else (CellType.DATA, piece)
            other.wire.receive(half, cell(kind, body, DATA.pack(1)))
        assert [content] == [buffers[0] for _, buffers in other.frames]

    _run(test)
