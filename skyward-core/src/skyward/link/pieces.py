"""A file that is read, and whose bytes lie in several places."""

from __future__ import annotations

from collections.abc import Sequence

Bytes = bytes | bytearray | memoryview


class Pieces:
    """
    Be the least of a file that an unpickler asks for, over buffers that lie one behind the other only in thought.

    Args:
        pieces: The buffers.

    >>> pieces = Pieces([b"ab\\nc", memoryview(b"d"), b"ef"])
    >>> pieces.readline(), pieces.read(2), pieces.tell()
    (b'ab\\n', b'cd', 5)
    >>> target = bytearray(3)
    >>> pieces.readinto(target), target
    (2, bytearray(b'ef\\x00'))
    """

    __slots__ = ("_at", "_index", "_pieces", "_read")

    def __init__(self, pieces: Sequence[Bytes]) -> None:
        self._pieces = [memoryview(piece) for piece in pieces]
        self._index = self._at = self._read = 0

    def tell(self) -> int:
        """Count the bytes that were read."""
        return self._read

    def read(self, size: int) -> bytes:
        """Return so many bytes, or as many as are left."""
        first = self._next(size)
        if len(first) == size:
            return bytes(first)
        found = [first]
        size -= len(first)
        while size and (piece := self._next(size)):
            found.append(piece)
            size -= len(piece)
        return b"".join(found)

    def readinto(self, target: bytearray | memoryview) -> int:
        """Fill a buffer, as far as there are bytes, and count them."""
        with memoryview(target) as view:
            flat = view.cast("B")
            filled = 0
            while filled < len(flat) and (piece := self._next(len(flat) - filled)):
                flat[filled : filled + len(piece)] = piece
                filled += len(piece)
            flat.release()
        return filled

    def readline(self) -> bytes:
        """Return the bytes up to the end of a line; the opcodes of today's pickles need none."""
        line = bytearray()
        while not line.endswith(b"\n") and (byte := self._next(1)):
            line += byte
        return bytes(line)

    def _next(self, most: int) -> memoryview:
        """Return the next bytes that lie together."""
        while self._index < len(self._pieces) and self._at == len(self._pieces[self._index]):
            self._index += 1
            self._at = 0
        if self._index == len(self._pieces):
            return memoryview(b"")
        piece = self._pieces[self._index][self._at : self._at + most]
        self._at += len(piece)
        self._read += len(piece)
        return piece
