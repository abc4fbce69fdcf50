"""The table of a payload: where each of its parts is."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntEnum
from itertools import starmap
from typing import NamedTuple

from skyward.errors import ProtocolError

NAME = 32
"""Bytes of a buffer's name."""

MOST_BUFFERS = 32 << 10
"""How many buffers a pickle has beside it; the table of a payload names each, and is to fit into a frame."""

_COUNT = struct.Struct("<H")
_PART = struct.Struct("<BQ")
_NO_PARTS = _COUNT.pack(0)
_GOES_ON = 16


class Place(IntEnum):
    """Where a part of a payload is."""

    INLINE = 0
    SEGMENT = 1
    STORED = 2
    THERE = 3


_NAMELESS = frozenset((Place.INLINE, Place.SEGMENT))


class Part(NamedTuple):
    """One part of a payload, `size` in bytes; it may go on with the stream that the first part begins."""

    place: int
    size: int
    digest: bytes = b""
    goes_on: bool = False


def table(parts: Sequence[Part]) -> bytes:
    """Render the table of parts."""
    if not parts:
        return _NO_PARTS
    rows = [_COUNT.pack(len(parts))]
    for place, size, digest, goes_on in parts:
        rows.append(_PART.pack(place | _GOES_ON if goes_on else place, size) + digest)
    return b"".join(rows)


def read_parts(body: bytes, at: int) -> tuple[tuple[Part, ...], int]:
    """
    Read the table of parts, and return where it ends.

    Raises:
        ProtocolError: If the body ends inside the table.
    """
    try:
        (count,) = _COUNT.unpack_from(body, at)
        at += _COUNT.size
        end = at + count * _PART.size
        # Without a name among them, all rows are of one size; the first one with a name is seen in its place.
        if end <= len(body) and _NAMELESS.issuperset(body[at : end : _PART.size]):
            return tuple(starmap(Part, _PART.iter_unpack(body[at:end]))), end
        parts: list[Part] = []
        for _ in range(count):
            place, size = _PART.unpack_from(body, at)
            at += _PART.size
            digest, goes_on = b"", bool(place & _GOES_ON)
            place &= ~_GOES_ON
            if goes_on and not (parts and (len(parts) == 1 or parts[-1].goes_on)):
                raise ProtocolError("A payload's stream continues where none is.")
            if place in (Place.STORED, Place.THERE):
                digest = body[at : at + NAME]
                at += NAME
            elif place not in (Place.INLINE, Place.SEGMENT):
                raise ProtocolError(f"A payload's part is at an unknown place, {place}.")
            parts.append(Part(place, size, digest, goes_on))
    except struct.error as error:
        raise ProtocolError("A payload's table is cut off.") from error
    if at > len(body):
        raise ProtocolError("A payload's table is cut off.")
    return tuple(parts), at
