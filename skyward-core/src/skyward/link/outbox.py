"""What one end of a link has still to send, or to send again: decides what goes next, and touches no socket."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from skyward.errors import ProtocolError
from skyward.link.cells import CELL, CHUNK, DATA, MOST_OPEN, OPENING, SIZE, CellType, cell
from skyward.link.line_rate import LineRate, Mark
from skyward.link.order import Keys
from skyward.link.packing import LEAST_FRAMES, Content, Packer

NO_KEYS = Keys()

LEAST_WINDOW = 128 << 10
"""Bytes that may always be under way and not acknowledged."""

MOST_WINDOW = 64 << 20
"""Bytes under way at most, however long and fast the line is."""

MOST_KEPT = MOST_WINDOW + (32 << 20)
"""Bytes that were sent and are not acknowledged, beyond which the other end does not acknowledge at all."""

_PACKET = 16 << 10
"""Bytes of small frames that travel in one cell."""

_LARGE = 32 << 10
"""Bytes of a cell from which it measures the line's rate; smaller ones measure how quick the other end is."""

_PATIENCE = 0.0002
"""Seconds that cells may wait behind others before fewer are sent ahead; small frames wait as long."""

_RECENT = 16
"""How many cells measure the line: the quickest of them, as any of the others may have waited for a processor."""

_SHRINK, _GROW = 4, 8
"""Which part of what is acknowledged the window loses where cells wait, and gains where few do. With a half and all of
it, it swung between too little and four times too much, and small frames waited twice to three times as long."""


Receipt = Callable[[], None]


class _Cell(NamedTuple):
    prefix: bytes
    body: bytes | memoryview
    data: bool
    at: float
    receipts: tuple[Receipt, ...] = ()
    mark: Mark | None = None

    @property
    def size(self) -> int:
        return len(self.prefix) + len(self.body)


class _Bulk:
    """A frame whose buffers travel in pieces."""

    __slots__ = ("at", "buffers", "content", "frame", "hold", "keys", "number", "receipts")

    def __init__(
        self, frame: bytes, buffers: Sequence[memoryview], keys: Keys, hold: object, receipt: Receipt | None
    ) -> None:
        self.frame = frame
        self.buffers = deque(buffers)
        self.keys = keys
        self.hold = hold
        self.receipts: tuple[Receipt, ...] = () if receipt is None else (receipt,)
        self.number = 0
        self.at = 0
        self.content = Content()


class _Held:
    """What frames that are not sent yet are about."""

    def __init__(self) -> None:
        self._changes: set[bytes] = set()
        self._needs: set[bytes] = set()

    def add(self, keys: Keys) -> None:
        """Count one more of them."""
        self._changes.update(keys.changes)
        self._needs.update(keys.needs)

    def stop(self, keys: Keys) -> bool:
        """Return whether a frame has to wait for one of them."""
        if not (self._changes or self._needs):
            return False
        changes = self._changes
        return not (
            changes.isdisjoint(keys.changes) and changes.isdisjoint(keys.needs) and self._needs.isdisjoint(keys.changes)
        )


class Outbox:
    """
    Order what is to be sent, keep it until the other end has it, and send it again where it was lost.

    Small frames overtake the pieces of large ones, except those that share a key with them.
    How much is under way follows the line: more while acknowledgements come promptly, less when they are late.
    What is compressed is kept so, and counts so for what is under way; `backlog` and `queued` count it as it was.

    Args:
        clock: Returns seconds, by which compressing is timed.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._again: deque[_Cell] = deque()
        self._small: deque[tuple[bytes, Receipt | None]] = deque()
        self._bulk: deque[_Bulk] = deque()
        self._open: deque[_Bulk] = deque()
        self._waiting: deque[_Bulk] = deque()
        self._held = _Held()
        self._sent: deque[_Cell] = deque()
        self._acknowledged = 0
        self._under_way = 0
        self._streams = 0
        self._window = LEAST_WINDOW
        self._quickest = float("inf")
        self._recent: deque[float] = deque(maxlen=_RECENT)
        self._line = LineRate()
        self.packer = Packer(self._line, clock)
        self.paused = False
        self.backlog = 0
        self.queued = 0

    @property
    def kept(self) -> int:
        """Count the bytes that were sent and are kept until they are acknowledged."""
        return self._under_way

    @property
    def idle(self) -> bool:
        """Return whether everything was sent and acknowledged."""
        return not (self._sent or self.pending)

    @property
    def holds(self) -> bool:
        """Return whether a frame may have to wait for one that is not sent yet."""
        return bool(self._bulk or self._open or self._waiting)

    @property
    def pending(self) -> bool:
        """Return whether anything was not sent yet, on this connection."""
        return bool(self._again or self._small or self._bulk or self._open or self._waiting)

    def add(
        self,
        frame: bytes,
        buffers: Sequence[memoryview] = (),
        keys: Keys = NO_KEYS,
        hold: object = None,
        receipt: Receipt | None = None,
    ) -> None:
        """
        Queue a frame.

        Args:
            frame: Header and body.
            buffers: What travels with it, in place of descriptors.
            keys: Which other frames it must not overtake.
            hold: Kept until the frame was sent.
            receipt: Called once, when the other end has all of it.
        """
        size = len(frame) + sum(map(len, buffers))
        self.backlog += size
        self.queued += size
        blocked = self._held.stop(keys)
        if not buffers and not blocked:
            self._small.append((frame, receipt))
            return
        self._held.add(keys)
        (self._waiting if blocked else self._bulk).append(_Bulk(frame, buffers, keys, hold, receipt))

    def replace(self, receipt: Receipt, buffers: Sequence[memoryview]) -> None:
        """
        Take what is left of a frame from another place, and release the one where it was.

        Args:
            receipt: That of the frame; nothing is done if the frame was sent or has no buffers.
            buffers: The same bytes as those it has.
        """
        for bulk in (*self._open, *self._bulk, *self._waiting):
            if receipt in bulk.receipts and bulk.buffers:
                bulk.buffers = deque(buffers[-len(bulk.buffers) :])
                bulk.hold = None

    def next(self, room: int, now: float) -> list[bytes]:
        """
        Return the cells to write now.

        Compressing a piece takes up to a millisecond: after one, `paused` says that others may have their turn.

        Args:
            room: Bytes that the connection takes without delay; the last cell may go beyond.
            now: Seconds on a monotonic clock.
        """
        out: list[bytes] = []
        self.paused = False
        while room > 0 and not self.paused:
            made = self._next(now)
            if made is None:
                if not self.pending:
                    self._line.starve(self._under_way)
                break
            self._sent.append(made)
            self._under_way += made.size
            out += (made.prefix, made.body) if made.body else (made.prefix,)  # type: ignore[arg-type]
            room -= made.size
        return out

    def acknowledged(self, count: int, now: float) -> None:
        """
        Release what the other end has.

        Args:
            count: How many numbered cells it has, of all that ever were.
            now: Seconds on a monotonic clock.

        Raises:
            ProtocolError: If it claims more than it was sent, or less than before.
        """
        fresh = count - self._acknowledged
        if not 0 <= fresh <= len(self._sent):
            raise ProtocolError(
                f"The other end says it has {count} cells; it was sent {self._acknowledged + len(self._sent)}."
            )
        receipts: list[Receipt] = []
        mark = None
        for _ in range(fresh):
            gone = self._sent.popleft()
            size = gone.size
            self._under_way -= size
            if gone.mark is not None:
                mark = gone.mark
            self._line.delivered(size, size if gone.mark is None else gone.mark.content)
            if gone.data:
                self._adapt(now - gone.at, size)
            receipts += gone.receipts
        if mark is not None:
            self._line.measure(mark, now, self._under_way)
        self._acknowledged = count
        for receipt in receipts:
            receipt()

    def resume(self, count: int) -> None:
        """
        Begin on a new connection.

        Args:
            count: How many numbered cells the other end has.

        Raises:
            ProtocolError: If it claims more than it was sent, or less than it has acknowledged.
        """
        self.acknowledged(count, 0.0)
        self._again.extendleft(reversed(self._sent))
        self._sent.clear()
        self._under_way = 0
        self._window = LEAST_WINDOW
        self._quickest = float("inf")
        self._recent.clear()
        self._line.restart()

    def _next(self, now: float) -> _Cell | None:
        if self._again:
            return self._again.popleft()._replace(at=now, mark=None)
        if self._small:
            frames, receipts = self._some_frames()
            if len(frames) < LEAST_FRAMES:
                return _Cell(CELL.pack(len(frames), CellType.FRAME) + frames, b"", False, now, receipts)
            return self._frames_cell(frames, now, receipts)
        if self._under_way >= self._window:
            return None
        if not self._open:
            self._admit()
        return self._next_piece(now) if self._open else None

    def _frames_cell(self, frames: bytes, now: float, receipts: tuple[Receipt, ...]) -> _Cell:
        """Render a cell of frames that are worth a look."""
        mark = self._line.mark(len(frames), self._under_way) if len(frames) >= _LARGE else None
        packed = self.packer.frames(frames)
        if packed is None:
            return _Cell(CELL.pack(len(frames), CellType.FRAME) + frames, b"", False, now, receipts, mark)
        self.paused = True
        return _Cell(CELL.pack(len(packed), CellType.PACKED_FRAMES) + packed, b"", False, now, receipts, mark)

    def _some_frames(self) -> tuple[bytes, tuple[Receipt, ...]]:
        """Take small frames for one cell, and their receipts: one at least, and as many as make a packet."""
        frames: list[bytes] = []
        receipts: list[Receipt] = []
        size = 0
        while self._small and (not frames or size + len(self._small[0][0]) <= _PACKET):
            frame, receipt = self._small.popleft()
            frames.append(frame)
            size += len(frame)
            if receipt is not None:
                receipts.append(receipt)
        self.backlog -= size
        return b"".join(frames), tuple(receipts)

    def _admit(self) -> None:
        """Start sending the next large frame, unless as many as may be are on the way."""
        if self._bulk and len(self._open) < MOST_OPEN:
            self._open.appendleft(self._bulk.popleft())

    def _next_piece(self, now: float) -> _Cell:
        bulk = self._open[0]
        if not bulk.number:
            return self._begin(bulk, now)
        piece = bulk.buffers[0][bulk.at : bulk.at + CHUNK]
        mark = self._line.mark(len(piece), self._under_way)
        packed = self.packer.piece(bulk.content, piece)
        bulk.at += len(piece)
        if bulk.at == len(bulk.buffers[0]):
            bulk.buffers.popleft()
            bulk.at = 0
            bulk.content = Content()
        self.backlog -= len(piece)
        number = bulk.number
        receipts: tuple[Receipt, ...] = ()
        if bulk.buffers:
            self._open.rotate(-1)
        else:
            receipts = bulk.receipts
            self._open.popleft()
            self._finished(bulk)
        self._admit()
        kind, body = CellType.DATA, piece
        if packed is not None:
            self.paused = True
            kind, body = CellType.PACKED, memoryview(packed)
        return _Cell(CELL.pack(DATA.size + len(body), kind) + DATA.pack(number), body, True, now, receipts, mark)

    def _begin(self, bulk: _Bulk, now: float) -> _Cell:
        self.backlog -= len(bulk.frame)
        if not bulk.buffers:
            # It only had to wait for others.
            self._open.popleft()
            self._finished(bulk)
            return self._frames_cell(bulk.frame, now, bulk.receipts)
        self._streams = bulk.number = self._streams % 0xFFFFFFFF + 1
        sizes = b"".join(SIZE.pack(len(buffer)) for buffer in bulk.buffers)
        prefix = OPENING.pack(bulk.number, len(bulk.buffers)) + sizes
        return _Cell(cell(CellType.OPEN, bulk.frame, prefix), b"", False, now)

    def _finished(self, bulk: _Bulk) -> None:
        """Release what waited for a frame that is sent."""
        self._held = _Held()
        for other in (*self._open, *self._bulk):
            self._held.add(other.keys)
        waiting, self._waiting = self._waiting, deque()
        for other in waiting:
            (self._waiting if self._held.stop(other.keys) else self._bulk).append(other)
            self._held.add(other.keys)

    def _adapt(self, took: float, size: int) -> None:
        self._quickest = min(self._quickest, took)
        self._recent.append(took)
        if min(self._recent) > 1.5 * self._quickest + _PATIENCE:
            self._window = max(LEAST_WINDOW, self._window - size // _SHRINK)
        elif took <= 1.25 * self._quickest + _PATIENCE / 2:
            self._window = min(MOST_WINDOW, self._window + size)
        else:
            # Some cells wait already: what is added now is what a small frame waits behind.
            self._window = min(MOST_WINDOW, self._window + size // _GROW)
