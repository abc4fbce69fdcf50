"""
Bytes of a link that are compressed: a pure codec.

    u8 width   u32 size   deflate (RFC 1951)

Each piece is compressed by itself: it can be sent again on another connection, between those of other frames.
Memory of what came before would leave 2 to 4 % less of text (`benchmarks/compression.py`).
Numbers of some width are shuffled first: the first bytes of all of them, then the second ones, and so on.
"""

from __future__ import annotations

import zlib
from struct import Struct

from skyward.errors import ProtocolError

HUFFMAN = 0
"""A level at which no repetitions are looked for: the quickest, and as good for weights."""

LEVELS = (HUFFMAN, 1, 5)
"""Each level takes about 1 ms at most for 64 KiB of text; 6 takes 1.5 times as long as 5 and leaves 1 to 4 % less."""

WIDTHS = (1, 2, 4, 8)
"""Bytes of one number; 1 for text."""

NAME = "deflate"
"""What the two ends of a link call it."""

_HEAD = Struct("<BI")
_RAW = -15
_MOST_MEMORY = 9
_LEAST = 7
"""A piece is sent as at least a 128th of its size, so that few bytes cannot keep the other end busy for long."""


def pack(data: bytes | memoryview, level: int, width: int = 1) -> bytes:
    """
    Compress a piece.

    Args:
        data: The piece, in bytes.
        level: One of `LEVELS`.
        width: Bytes of one number.

    >>> unpack(pack(b"skyward " * 100, 1), 800) == b"skyward " * 100
    True
    """
    packed = deflate(shuffled(data, width) if width > 1 else data, level)
    return b"".join((_HEAD.pack(width, len(data)), packed, bytes(max(0, (len(data) >> _LEAST) - len(packed)))))


def unpack(body: bytes | memoryview, most: int) -> bytes:
    """
    Take a piece back.

    Args:
        body: What `pack` gave, or anything else.
        most: Bytes that the piece may have; no more memory than that is taken for it.

    Raises:
        ProtocolError: If it is no piece, or not of the size that it states.
    """
    if len(body) < _HEAD.size:
        raise ProtocolError("A link's compressed cell is cut off.")
    width, size = _HEAD.unpack_from(body)
    packed = memoryview(body)[_HEAD.size :]
    if width not in WIDTHS or not 0 < size <= most or len(packed) < size >> _LEAST:
        raise ProtocolError(f"A link's compressed cell of {len(packed)} bytes states {size}, which cannot be.")
    unpacker = zlib.decompressobj(_RAW)
    try:
        # One byte more than there may be: with just enough room the end of the stream would not be looked at.
        data = unpacker.decompress(packed, size + 1)
    except zlib.error as error:
        raise ProtocolError(f"A link's compressed cell cannot be read: {error}.") from error
    if len(data) != size or not unpacker.eof:
        raise ProtocolError(f"A link's compressed cell does not hold the {size} bytes that it states.")
    return _together(data, width) if width > 1 else data


def deflate(data: bytes | memoryview, level: int) -> bytes:
    """
    Compress bytes, and nothing else.

    Args:
        data: The bytes.
        level: One of `LEVELS`.
    """
    strategy = zlib.Z_DEFAULT_STRATEGY if level else zlib.Z_HUFFMAN_ONLY
    packer = zlib.compressobj(level or 1, zlib.DEFLATED, _RAW, _MOST_MEMORY, strategy)
    return packer.compress(data) + packer.flush()


def shuffled(data: bytes | memoryview, width: int) -> bytes:
    """
    Return the first bytes of all numbers first, then the second ones.

    Args:
        data: The numbers; they need not begin or end with a whole one.
        width: Bytes of one number.

    >>> shuffled(b"a1b2c3", 2)
    b'abc123'
    """
    whole = bytes(data)
    return b"".join([whole[at::width] for at in range(width)])


def _together(data: bytes, width: int) -> bytes:
    """Undo the shuffling."""
    found, begin = bytearray(len(data)), 0
    for at in range(width):
        end = begin + len(range(at, len(data), width))
        found[at::width] = data[begin:end]
        begin = end
    return bytes(found)
