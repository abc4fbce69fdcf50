"""What arrives at one end of a link: cells counted, buffers put together, frames given out once."""

from __future__ import annotations

from collections.abc import Callable

from skyward.errors import ProtocolError
from skyward.link.cells import CHUNK, DATA, MOST_OPEN, OPENING, SIZE, CellType, Piece
from skyward.link.descriptors import handed_out
from skyward.link.frames import MAX_FDS, Frame, Kind, Parser
from skyward.link.order import keys_of, sizes_of
from skyward.link.packed import unpack
from skyward.link.packing import MOST_FRAMES
from skyward.link.segment import Arriving

_LARGEST = 1 << 40


class _Filling:
    """A frame that waits for its buffers; without any, their bytes are dropped."""

    __slots__ = ("at", "buffers", "frame", "keys", "sizes")

    def __init__(self, frame: Frame, sizes: list[int]) -> None:
        self.frame = frame
        self.keys = keys_of(frame).changes
        self.sizes = sizes
        self.buffers: list[Arriving] = []
        self.at = 0

    def close(self) -> None:
        """Discard what has arrived."""
        for buffer in self.buffers:
            buffer.close()


class Inbox:
    """
    Put frames together.

    Args:
        on_frame: Called with each frame that is complete, and the descriptors of its buffers, which it takes over.
        on_announced: Called with each frame whose buffers are about to come; says whether it is wanted, and raises
            what ends the link if it should not have been sent.
    """

    def __init__(
        self, on_frame: Callable[[Frame, tuple[int, ...]], None], on_announced: Callable[[Frame], bool]
    ) -> None:
        self._on_frame = on_frame
        self._on_announced = on_announced
        self._open: dict[int, _Filling] = {}
        self._stream = 0
        self._torn = 0
        self._closed = False
        self.received = 0

    def take(self, piece: Piece) -> None:
        """
        Take a numbered cell, or a piece of one.

        Raises:
            ProtocolError: If it does not go with what came before.
        """
        self.received += piece.last
        if piece.kind is CellType.FRAME or piece.kind is CellType.PACKED_FRAMES:
            packed = piece.kind is CellType.PACKED_FRAMES
            for frame in _frames(unpack(piece.body, MOST_FRAMES) if packed else bytes(piece.body)):
                if self._closed:
                    return
                self._on_frame(frame, ())
        elif piece.kind is CellType.OPEN:
            self._begin(bytes(piece.body))
        else:
            self._fill(piece)

    def restart(self) -> None:
        """Discard the cell that a connection broke off in: it comes again, whole."""
        self._torn = 0

    def close(self) -> None:
        """Discard frames that are not complete; none is given out any more."""
        self._closed = True
        for filling in self._open.values():
            filling.close()
        self._open.clear()

    def _begin(self, body: bytes) -> None:
        if len(body) < OPENING.size:
            raise ProtocolError("A link's cell is cut off.")
        stream, count = OPENING.unpack_from(body)
        end = OPENING.size + count * SIZE.size
        if not 0 < count <= MAX_FDS or len(body) < end or stream in self._open or len(self._open) >= MOST_OPEN:
            raise ProtocolError(f"A link opened stream {stream} with {count} buffers, which cannot be.")
        sizes = [SIZE.unpack_from(body, OPENING.size + at * SIZE.size)[0] for at in range(count)]
        frame, *more = _frames(body[end:], fds=count)
        if more or sizes != sizes_of(frame) or not all(0 < size <= _LARGEST for size in sizes):
            raise ProtocolError(f"A link announced buffers of {sizes} bytes, which are not those of the frame.")
        filling = _Filling(frame, sizes)
        if any(not set(filling.keys).isdisjoint(other.keys) for other in self._open.values()):
            raise ProtocolError(f"A link announced two {Kind(frame.kind).name} frames of one call at once.")
        wanted = self._on_announced(frame)
        self._open[stream] = filling
        for size in sizes if wanted else ():
            filling.buffers.append(Arriving(size))

    def _fill(self, piece: Piece) -> None:
        body = memoryview(piece.body)
        if piece.first:
            self._stream = DATA.unpack_from(body)[0] if len(body) >= DATA.size else 0
            body = body[DATA.size :]
        filling = self._open.get(self._stream)
        if filling is None:
            raise ProtocolError(f"A link sent bytes of stream {self._stream}, which is not open.")
        if piece.kind is CellType.PACKED:
            body = memoryview(unpack(body, CHUNK))
        size = filling.sizes[0]
        if filling.at + self._torn + len(body) > size:
            raise ProtocolError(f"A link sent more bytes of stream {self._stream} than it announced.")
        if filling.buffers:
            filling.buffers[-len(filling.sizes)].write(filling.at + self._torn, body)
        self._torn += len(body)
        if not piece.last:
            return
        filling.at += self._torn
        self._torn = 0
        if filling.at == size:
            filling.sizes.pop(0)
            filling.at = 0
            if not filling.sizes:
                del self._open[self._stream]
                if not filling.buffers:
                    return
                fds = tuple(buffer.finish() for buffer in filling.buffers)
                with handed_out(fds):
                    self._on_frame(filling.frame, fds)


def _frames(data: bytes, *, fds: int = 0) -> list[Frame]:
    parser = Parser()
    frames = parser.feed(data)
    if not frames or parser.pending or any(frame.fds != fds for frame in frames):
        raise ProtocolError("A link's cell does not hold whole frames.")
    return frames
