"""
The bytes of a link that may be cut: a pure codec.

Over a connection that can be lost, frames travel in cells: a header of five bytes and a body.

    u32 length of the body   u8 type

Cells that carry frames are numbered by their place in the stream, which both ends count and no cell states.
Whoever connects again tells how many it has, and gets the rest.
`docs/protocol.md` says what the body of each type holds.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct

from skyward.errors import ProtocolError
from skyward.link.frames import MAX_BODY

CHUNK = 64 << 10
"""How much of a large buffer one cell carries, in bytes; small frames go between two of them."""

CELL = Struct("<IB")
OPENING = Struct("<IB")
SIZE = Struct("<Q")
DATA = Struct("<I")
COUNT = Struct("<Q")

_MAX_CELL = MAX_BODY + 4096


class CellType(IntEnum):
    """What a cell is."""

    HELLO = 1
    """JSON: who speaks, and how many numbered cells it has."""
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
    """Nothing more comes, and nothing is to be waited for."""


NUMBERED = frozenset({CellType.FRAME, CellType.OPEN, CellType.DATA})


def cell(kind: CellType, body: bytes | memoryview = b"", prefix: bytes = b"") -> bytes:
    """
    Render one cell.

    >>> cell(CellType.PING).hex()
    '0000000006'
    """
    return b"".join((CELL.pack(len(prefix) + len(body), kind), prefix, body))


class CellParser:
    """
    Cut a stream of bytes into cells.

    >>> CellParser().feed(cell(CellType.ACK, COUNT.pack(7)))
    [(<CellType.ACK: 5>, b'\\x07\\x00\\x00\\x00\\x00\\x00\\x00\\x00')]
    """

    __slots__ = ("_pieces", "_size", "_wanted")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        self._wanted = CELL.size

    def feed(self, data: bytes) -> list[tuple[CellType, bytes]]:
        """
        Take more bytes and give the cells that are complete now.

        Raises:
            ProtocolError: If the bytes are no cells.
        """
        self._pieces.append(data)
        self._size += len(data)
        if self._size < self._wanted:
            return []
        data = b"".join(self._pieces) if len(self._pieces) > 1 else data
        found, at = [], 0
        while len(data) - at >= CELL.size:
            length, kind = CELL.unpack_from(data, at)
            if length > _MAX_CELL or not CellType.HELLO <= kind <= CellType.BYE:
                raise ProtocolError(f"These bytes are no cell of Skyward's protocol: type {kind}, {length} bytes.")
            after = at + CELL.size + length
            if after > len(data):
                self._wanted = after - at
                break
            found.append((CellType(kind), data[at + CELL.size : after]))
            at = after
        else:
            self._wanted = CELL.size
        rest = data[at:]
        self._pieces = [rest] if rest else []
        self._size = len(rest)
        return found
