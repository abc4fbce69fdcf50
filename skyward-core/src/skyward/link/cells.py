"""
The bytes of a link that may be cut: a pure codec.

Over a connection that can be lost, frames travel in cells: a header of five bytes and a body.

    u32 length of the body   u8 type

Cells that carry frames are numbered by their place in the stream, which both ends count and no cell states.
The end that reconnects sends how many it has, and gets the rest.
`docs/protocol.md` says what the body of each type holds.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import NamedTuple

from skyward.errors import ProtocolError
from skyward.link.frames import MAX_BODY

CHUNK = 64 << 10
"""How much of a large buffer one cell carries, in bytes; small frames go between two of them."""

MOST_OPEN = 64
"""How many large frames are on the way at once; each takes a descriptor at the other end."""

CELL = Struct("<IB")
OPENING = Struct("<IB")
SIZE = Struct("<Q")
DATA = Struct("<I")
COUNT = Struct("<Q")

_MAX_CELL = MAX_BODY + 4096


class CellType(IntEnum):
    """What a cell is."""

    HELLO = 1
    """JSON: the sender's name, and how many numbered cells it has."""
    FRAME = 2
    """Numbered: one whole frame."""
    OPEN = 3
    """Numbered: u32 stream, u8 buffers, u64 size of each, and the frame that comes when they are there."""
    DATA = 4
    """Numbered: u32 stream, and the next bytes of its buffers."""
    ACK = 5
    """u64: how many numbered cells have arrived."""
    PING = 6
    """Nothing; it is answered by an ACK."""
    BYE = 7
    """Nothing more comes, and nothing is to be waited for; the body says why, if anything is wrong."""
    PACKED = 8
    """Numbered: u32 stream, and the next bytes of its buffers, compressed (`packed.py`); to an end that said it can."""
    PACKED_FRAMES = 9
    """Numbered: whole frames, compressed; to an end that said it can."""


NUMBERED = frozenset({CellType.FRAME, CellType.OPEN, CellType.DATA, CellType.PACKED, CellType.PACKED_FRAMES})


def cell(kind: CellType, body: bytes | memoryview = b"", prefix: bytes = b"") -> bytes:
    """
    Render one cell.

    >>> cell(CellType.PING).hex()
    '0000000006'
    """
    return b"".join((CELL.pack(len(prefix) + len(body), kind), prefix, body))


class Piece(NamedTuple):
    """A cell, or as much of a large one as has arrived: its bytes need not wait for each other."""

    kind: CellType
    body: bytes | memoryview
    first: bool = True
    last: bool = True


class CellParser:
    """
    Cut a stream of bytes into cells.

    >>> COUNT.unpack(CellParser().feed(cell(CellType.ACK, COUNT.pack(7)))[0].body)
    (7,)
    """

    __slots__ = ("_left", "_rest")

    def __init__(self) -> None:
        self._rest = b""
        self._left = 0

    def feed(self, data: bytes | memoryview) -> list[Piece]:
        """
        Take more bytes and return what can be used of them now.

        Args:
            data: The bytes; views of them are given out, and are not to be kept.

        Raises:
            ProtocolError: If the bytes are no cells.
        """
        view = memoryview(self._rest + bytes(data)) if self._rest else memoryview(data)
        self._rest = b""
        found: list[Piece] = []
        at, end = 0, len(view)
        if self._left:
            at = min(self._left, end)
            self._left -= at
            found.append(Piece(CellType.DATA, view[:at], first=False, last=not self._left))
        while end - at >= CELL.size:
            length, kind = CELL.unpack_from(view, at)
            if length > _MAX_CELL or not CellType.HELLO <= kind <= CellType.PACKED_FRAMES:
                raise ProtocolError(f"These bytes are no cell of Skyward's protocol: type {kind}, {length} bytes.")
            after = at + CELL.size + length
            if kind == CellType.DATA and end - at >= CELL.size + DATA.size and length > DATA.size:
                body = view[at + CELL.size : after]
                self._left = length - len(body)
                found.append(Piece(CellType.DATA, body, last=not self._left))
                at = min(after, end)
                continue
            if after > end:
                break
            found.append(Piece(CellType(kind), bytes(view[at + CELL.size : after])))
            at = after
        self._rest = bytes(view[at:])
        return found
