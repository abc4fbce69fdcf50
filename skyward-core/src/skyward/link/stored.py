"""
Results as they lie on a node's disk until the client has them: a pure codec.

A record holds one RESULT frame and the buffers that travel with it.

    16 bytes "skyward result 1"   u32 length of the frame   u64 length of the buffers   frame   buffers   u32 CRC-32

Every number is little-endian; the checksum is that of frame and buffers.
Records may stand one behind the other.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from struct import Struct
from typing import NamedTuple

from skyward.errors import ProtocolError
from skyward.link.frames import HEADER, MAX_BODY, Frame, Kind, Parser
from skyward.link.messages import RESULT
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
        wanted: Says whether a result with buffers is of use; what is not is passed over, and takes no memory.

    >>> from skyward.link.frames import encode
    >>> from skyward.link.messages import RESULT, Status
    >>> frame = encode(Kind.RESULT, RESULT.pack(7, Status.CANCELLED, 0.5, 0.0) + bytes(2))
    >>> record = head(frame, 0) + frame + tail(zlib.crc32(frame))
    >>> [stored.frame.kind == Kind.RESULT for stored in StoredParser(1 << 20).feed(record)]
    [True]
    """

    def __init__(self, most: int, wanted: Callable[[Frame], bool] = lambda frame: True) -> None:
        self._most = most
        self._wanted = wanted
        self._data = bytearray()
        self._skipped = 0
        self._judged = False

    def feed(self, data: bytes) -> list[Stored]:
        """
        Take more bytes, and return the results that are complete now.

        Raises:
            ProtocolError: If these are no records, or one was damaged.
        """
        skipped = min(self._skipped, len(data))
        self._skipped -= skipped
        self._data += memoryview(data)[skipped:]
        found = []
        at = 0
        while len(self._data) - at >= _HEAD.size:
            mark, frame, buffers = _HEAD.unpack_from(self._data, at)
            size = _HEAD.size + frame + buffers + _CHECK.size
            if mark != _MARK or frame > HEADER.size + MAX_BODY or size > self._most:
                raise ProtocolError("These bytes are no results that a node has stored.")
            there = len(self._data) - at
            if buffers and not self._judged and there >= _HEAD.size + frame:
                begin = at + _HEAD.size
                self._judged = self._wanted(_frame(bytes(self._data[begin : begin + frame])))
                if not self._judged:
                    self._skipped = max(0, size - there)
                    at += min(size, there)
                    continue
            if there < size:
                break
            found.append(_read(bytes(self._data[at + _HEAD.size : at + size]), frame))
            self._judged = False
            at += size
        del self._data[:at]
        return found


def _read(data: bytes, length: int) -> Stored:
    end = len(data) - _CHECK.size
    if zlib.crc32(memoryview(data)[:end]) != _CHECK.unpack_from(data, end)[0]:
        raise ProtocolError("A result that a node has stored was damaged.")
    frame = _frame(data[:length])
    sizes = sizes_of(frame) if frame.fds else []
    if len(sizes) != frame.fds or sum(sizes) != end - length:
        raise ProtocolError(f"A result was stored with {end - length} bytes of buffers instead of {sum(sizes)}.")
    buffers = []
    for size in sizes:
        buffers.append(data[length : length + size])
        length += size
    return Stored(frame, buffers)


def _frame(data: bytes) -> Frame:
    parser = Parser()
    frames = parser.feed(data)
    if len(frames) != 1 or parser.pending or frames[0].kind != Kind.RESULT or len(frames[0].body) < RESULT.size:
        raise ProtocolError("What a node has stored is not exactly one result.")
    return frames[0]
