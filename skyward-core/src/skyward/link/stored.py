"""
Results as they lie on a node's disk until the client has them: a pure codec.

A record holds one RESULT frame and the buffers that travel with it.

    16 bytes "skyward result 1"   u32 length of the frame   u64 length of the buffers   frame   buffers   u32 CRC-32

Every number is little-endian; the checksum is that of frame and buffers.
Records may stand one behind the other.
"""

from __future__ import annotations

import zlib
from struct import Struct
from typing import NamedTuple

from skyward.errors import ProtocolError
from skyward.link.frames import HEADER, MAX_BODY, Frame, Kind, Parser
from skyward.link.order import sizes_of

_HEAD = Struct("<16sIQ")
_CHECK = Struct("<I")
_MARK = b"skyward result 1"


class Stored(NamedTuple):
    """A result that was read: the frame, and each of its buffers."""

    frame: Frame
    buffers: list[bytes]


def head(frame: bytes, buffers: int) -> bytes:
    """
    Render what a record begins with, before the frame.

    Args:
        frame: Header and body.
        buffers: Bytes of what travels with it.
    """
    return _HEAD.pack(_MARK, len(frame), buffers)


def tail(checksum: int) -> bytes:
    """
    Render what a record ends with.

    Args:
        checksum: The CRC-32 of frame and buffers.
    """
    return _CHECK.pack(checksum)


class StoredParser:
    """
    Cut a stream of records into results.

    Args:
        most: Bytes that one record may have.

    >>> from skyward.link.frames import encode
    >>> from skyward.link.messages import RESULT, Status
    >>> frame = encode(Kind.RESULT, RESULT.pack(7, Status.CANCELLED, 0.5) + bytes(2))
    >>> record = head(frame, 0) + frame + tail(zlib.crc32(frame))
    >>> [stored.frame.kind == Kind.RESULT for stored in StoredParser(1 << 20).feed(record)]
    [True]
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._data = bytearray()

    def feed(self, data: bytes) -> list[Stored]:
        """
        Take more bytes, and give the results that are complete now.

        Raises:
            ProtocolError: If these are no records, or one was damaged.
        """
        self._data += data
        found = []
        at = 0
        while len(self._data) - at >= _HEAD.size:
            mark, frame, buffers = _HEAD.unpack_from(self._data, at)
            size = _HEAD.size + frame + buffers + _CHECK.size
            if mark != _MARK or frame > HEADER.size + MAX_BODY or size > self._most:
                raise ProtocolError("These bytes are no results that a node has stored.")
            if len(self._data) - at < size:
                break
            found.append(_read(bytes(self._data[at + _HEAD.size : at + size]), frame))
            at += size
        del self._data[:at]
        return found


def _read(data: bytes, length: int) -> Stored:
    end = len(data) - _CHECK.size
    if zlib.crc32(memoryview(data)[:end]) != _CHECK.unpack_from(data, end)[0]:
        raise ProtocolError("A result that a node has stored was damaged.")
    parser = Parser()
    frames = parser.feed(data[:length])
    if len(frames) != 1 or parser.pending or frames[0].kind != Kind.RESULT:
        raise ProtocolError("What a node has stored is not exactly one result.")
    sizes = sizes_of(frames[0]) if frames[0].fds else []
    if len(sizes) != frames[0].fds or sum(sizes) != end - length:
        raise ProtocolError(f"A result was stored with {end - length} bytes of buffers instead of {sum(sizes)}.")
    buffers = []
    for size in sizes:
        buffers.append(data[length : length + size])
        length += size
    return Stored(frames[0], buffers)
