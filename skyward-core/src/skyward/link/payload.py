"""
Pickles with their large buffers beside them.

A payload is a list of parts: first the pickle stream, in one or more pieces, then its out-of-band buffers.
Each part travels inside the frame, in a segment, or under the name of something the node has; what a task put stays
at its node, and a result names it.

    u16 number of parts, 0 when the rest of the body is the stream
    for each part: u8 place, and 16 if it goes on with the stream   u64 size   (a stored part, and one that stays
        where it is: 32 bytes of name)
    the inline parts, one after the other

A stream may hold several pickles, one behind the other, made by one pickler: later ones refer to objects of earlier
ones, and the last one is the value. So a large argument can be a piece of its own, the same one in each call.
"""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Callable, Sequence
from mmap import mmap
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from skyward.errors import ProtocolError
from skyward.link.frames import MAX_FDS
from skyward.link.lending import lending
from skyward.link.payload_parts import NAME, Part, Place, read_parts, table
from skyward.link.pickling import OUT_OF_BAND, DataPickler, Pickler
from skyward.link.pieces import Pieces
from skyward.link.segment import Segment, aligned, write_segment

if TYPE_CHECKING:
    from skyward.model.spec.trust_setting import Data

INLINE = 256 << 10
"""Payloads up to this size, in bytes, travel inside their frame."""

MAX_STORED = MAX_FDS - 1
"""How many buffers of a payload travel by their digests: each is a descriptor of one frame on its last way."""


PIECE = 1 << 20
"""Pieces of streams from this size on, in bytes, are kept at nodes like buffers."""

_LARGEST_RUN = 64 << 20
_MOST_PIECES = 4 << 10


class Payload:
    """
    Hold a value as it travels.

    Args:
        parts: Where the stream and each buffer is.
        inline: The bytes of all inline parts, joined.
        segment: What holds the parts that are in a segment.
        stored: What holds each stored part, in order.
        trust: What of it is opened as data, known since it arrived; None opens anything.
    """

    __slots__ = ("inline", "parts", "segment", "stored", "trust")

    def __init__(
        self,
        parts: tuple[Part, ...],
        inline: bytes,
        segment: Segment | None = None,
        stored: tuple[Segment, ...] = (),
        trust: Data | None = None,
    ) -> None:
        self.parts = parts
        self.inline = inline
        self.segment = segment
        self.stored = stored
        self.trust = trust

    @property
    def size(self) -> int:
        """Count the bytes of all parts, but of those that stay where they are."""
        if not self.parts:
            return len(self.inline)
        return sum(part.size for part in self.parts if part.place != Place.THERE)

    @property
    def travelling(self) -> int:
        """Count the bytes of the parts that the other end does not keep."""
        if not self.parts:
            return len(self.inline)
        return sum(part.size for part in self.parts if part.place < Place.STORED)

    @property
    def fds(self) -> list[int]:
        """List the descriptors that travel with it, those of stored parts aside."""
        return [self.segment.fd] if self.segment else []

    def encode(self) -> bytes:
        """Render the table of parts and the inline bytes."""
        return table(self.parts) + self.inline


def decode(
    body: bytes,
    at: int,
    fds: Sequence[int],
    trust: Data | None = None,
    there: Callable[[bytes, int], Segment] | None = None,
) -> Payload:
    """
    Read a payload from a frame's body.

    Args:
        body: The body.
        at: Where in it the payload begins.
        fds: The descriptors that came with the frame: the segment's, then one for each stored part. Taken over.
        trust: What of it is opened as data; None opens anything.
        there: Returns what stands for a part that stays at the node, of its name and size; None has such parts refused.

    Raises:
        ProtocolError: If table, bytes and descriptors disagree.
    """
    segments = [Segment(fd, 0) for fd in fds]
    if len(body) < at + 2:
        raise ProtocolError("A payload is cut off before its table.")
    parts, at = read_parts(body, at)
    if not parts:
        return Payload((), body[at:], trust=trust)
    if trust is not None and len(parts) > 1 and parts[1].goes_on:
        raise ProtocolError("The stream of a payload that is opened as data comes in several pieces.")
    if sum(part.size for part in parts if part.place == Place.INLINE) != len(body) - at:
        raise ProtocolError("A payload's inline parts and its bytes differ in size.")
    in_segment = sum(aligned(part.size) for part in parts if part.place == Place.SEGMENT)
    stored = [part for part in parts if part.place == Place.STORED]
    if len(segments) != len(stored) + bool(in_segment):
        raise ProtocolError(f"A payload came with {len(segments)} descriptors, not those its table names.")
    segment = None
    if in_segment:
        segment = segments.pop(0)
        segment.expect(in_segment)
    for part, kept in zip(stored, segments, strict=True):
        kept.expect(aligned(part.size))
    kept_there = [part for part in parts if part.place == Place.THERE]
    if kept_there:
        if there is None or stored:
            raise ProtocolError("A payload names what stays at a node, where only results may.")
        segments = [there(part.digest, part.size) for part in kept_there]
    return Payload(parts, body[at:], segment, tuple(segments), trust)


class Keep(NamedTuple):
    """A buffer that a node keeps under a name, or that stays there under one that each result gives it."""

    digest: bytes
    segment: Segment
    there: bool = False


class Keeper(Protocol):
    """Is asked for what is large; what it returns makes that travel by its name."""

    def __call__(self, buffer: memoryview, /, *, fresh: bool = ...) -> Keep | None:
        """Name a buffer; `fresh` if its memory was made for this one pickle."""


class Pickled(NamedTuple):
    """
    Values that were pickled one after the other by one pickler.

    Args:
        streams: What each was pickled to, in pieces.
        buffers: The buffers beside them.
    """

    streams: list[list[bytes]]
    buffers: list[memoryview]

    @property
    def sizes(self) -> list[int]:
        """Count the bytes of each value's stream."""
        return [sum(map(len, stream)) for stream in self.streams]

    @property
    def is_small(self) -> bool:
        """Return whether it is one value in one piece, as small values are, and nothing beside it."""
        return not self.buffers and len(self.streams) == 1 == len(self.streams[0])


def dump(value: object, keep: Keeper | None = None, *, data: bool = False, refs: object = None) -> Payload:
    """
    Pickle a value.

    Args:
        value: Anything cloudpickle can pickle.
        keep: Asked for each large buffer; what it returns makes that buffer travel by its name.
        data: Whether it is opened as data.
        refs: Which pool's Refs may be in it.

    Raises:
        Exception: Whatever pickling raises.

    >>> load(dump({"a": [1, 2]}))
    {'a': [1, 2]}
    """
    return packed(pickled((value,), DataPickler if data else Pickler, refs), keep)


def pickled(
    values: Sequence[object], pickler: type[Pickler] = Pickler, refs: object = None, most: int | None = None
) -> Pickled:
    """
    Pickle values one after the other; what they share, those that are read share too.

    Args:
        values: The last one is what `load` gives.
        pickler: Which pickler does it.
        refs: Which pool's Refs may be in it.
        most: Bytes that all their streams together may have; None for any number.

    Raises:
        TooLargeError: If the streams have more.
        Exception: Whatever pickling raises.
    """
    stream: list[bytes] = []
    buffers: list[memoryview] = []
    made = pickler(stream, buffers, refs, most)
    if len(values) == 1:
        made.dump(values[0])
        return Pickled([stream], buffers)
    streams = []
    for value in values:
        made.dump(value)
        streams.append(stream[:])
        stream.clear()
    return Pickled(streams, buffers)


def packed(values: Pickled, keep: Keeper | None = None) -> Payload:
    """
    Make a payload of what was pickled.

    Args:
        values: What was pickled.
        keep: Asked for each large buffer and each large piece of a stream.
    """
    streams, buffers = values
    sizes = values.sizes
    if not buffers and len(streams) == 1 and sizes[0] <= INLINE:
        return Payload((), streams[0][0] if len(streams[0]) == 1 else b"".join(streams[0]))
    place = Place.INLINE if sum(sizes) + sum(map(len, buffers)) <= INLINE else Place.SEGMENT
    packing = _Packing(keep, place)
    for stream, size in zip(streams, sizes, strict=True):
        for piece in _cut(stream) if keep and size >= PIECE else (stream,):
            packing.add_piece(piece)
    for buffer in buffers:
        packing.add_buffer(buffer)
    return packing.payload()


class _Packing:
    """Find a place for each part of a payload."""

    def __init__(self, keep: Keeper | None, place: Place) -> None:
        self._keep = keep
        self._place = place
        self._parts: list[Part] = []
        self._inline: list[bytes | memoryview] = []
        self._inline_size = 0
        self._shared: list[Sequence[bytes | memoryview]] = []
        self._stored: list[Segment] = []

    def add_piece(self, pieces: Sequence[bytes]) -> None:
        """Take what the stream begins or goes on with."""
        size, goes_on = sum(map(len, pieces)), bool(self._parts)
        if self._keep and size >= PIECE and len(self._stored) < MAX_STORED:
            pieces = [pieces[0] if len(pieces) == 1 else b"".join(pieces)]
            if kept := self._keep(memoryview(pieces[0]), fresh=True):
                self._store(kept, size, goes_on=goes_on)
                return
        if size > OUT_OF_BAND and (self._place == Place.SEGMENT or self._inline_size + size > INLINE):
            self._shared.append(pieces)
            self._parts.append(Part(Place.SEGMENT, size, goes_on=goes_on))
        else:
            self._inline += pieces
            self._inline_size += size
            self._parts.append(Part(Place.INLINE, size, goes_on=goes_on))

    def add_buffer(self, buffer: memoryview) -> None:
        """Take a buffer beside the stream."""
        # The memory of a Ref says itself under which name nodes have it.
        kept: Keep | None = getattr(buffer.obj, "kept", None)
        if kept is not None and kept.there:
            # A name of its own for each result: the client releases each by itself.
            self._parts.append(Part(Place.THERE, len(buffer), os.urandom(NAME)))
            self._stored.append(kept.segment)
            return
        if kept is not None and len(self._stored) >= MAX_STORED:
            # What stands for memory that is at a node holds nothing.
            bring = getattr(kept.segment, "bring", None)
            if bring is not None:
                bring()
            buffer, kept = kept.segment.map()[: len(buffer)], None
        if kept is None and self._keep and len(buffer) >= PIECE and len(self._stored) < MAX_STORED:
            kept = self._keep(buffer)
        if kept is not None:
            self._store(kept, len(buffer))
        elif self._place == Place.INLINE:
            self._inline.append(buffer)
            self._parts.append(Part(Place.INLINE, len(buffer)))
        else:
            self._shared.append([buffer])
            self._parts.append(Part(Place.SEGMENT, len(buffer)))

    def _store(self, kept: Keep, size: int, *, goes_on: bool = False) -> None:
        self._parts.append(Part(Place.STORED, size, kept.digest, goes_on))
        self._stored.append(kept.segment)

    def payload(self) -> Payload:
        """Return the payload, which has its own copy of everything."""
        segment = _segment(self._shared) if self._shared else None
        return Payload(tuple(self._parts), b"".join(self._inline), segment, tuple(self._stored))


def _cut(stream: list[bytes]) -> list[list[bytes]]:
    """Cut a stream where large objects lie in it, which arrive as pieces of their own, and into runs between them."""
    runs: list[list[bytes]] = [[]]
    size = 0
    for piece in stream:
        alone = len(piece) >= PIECE
        if runs[-1] and (alone or size >= _LARGEST_RUN) and len(runs) < _MOST_PIECES:
            runs.append([])
            size = 0
        runs[-1].append(piece)
        size += _LARGEST_RUN if alone else len(piece)
    return runs


def _segment(shared: Sequence[Sequence[bytes | memoryview]]) -> Segment:
    """Find the segment that these buffers came in, or copy them into a new one."""
    single = [pieces[0] for pieces in shared if len(pieces) == 1 and isinstance(pieces[0], memoryview)]
    lent = lending.find(single) if len(single) == len(shared) else None
    return lent or write_segment(shared)


def load(payload: Payload) -> Any:
    """
    Unpickle a payload, as code or as data; its large buffers are writable and not shared.

    Raises:
        Refused: If it holds what is not opened as data.
        Exception: Whatever unpickling raises.
    """
    if payload.trust is not None:
        from skyward.link.data.allowed_names import names_of
        from skyward.link.data.opener import open_data

        whole, *buffers = views(payload) if payload.parts else (payload.inline,)
        return open_data(whole, names_of(payload.trust), buffers=buffers)
    if not payload.parts:
        return pickle.loads(payload.inline)
    found = views(payload)
    pieces = 1 + sum(part.goes_on for part in payload.parts)
    if pieces == 1:
        return pickle.loads(found[0], buffers=found[1:])
    size = sum(part.size for part in payload.parts[:pieces])
    stream: io.BytesIO | Pieces
    stream = io.BytesIO(b"".join(found[:pieces])) if size <= INLINE else Pieces(found[:pieces])
    unpickler = pickle.Unpickler(stream, buffers=found[pieces:])
    value = unpickler.load()
    while stream.tell() < size:
        value = unpickler.load()
    return value


def pack(parts: Sequence[bytes]) -> Payload:
    """
    Make a payload of plain bytes, nothing pickled.

    >>> [bytes(view) for view in views(pack([b"a", b"bc"]))]
    [b'a', b'bc']
    """
    if sum(map(len, parts)) <= INLINE:
        return Payload(tuple(Part(Place.INLINE, len(part)) for part in parts), b"".join(parts))
    segment = write_segment([[part] for part in parts])
    return Payload(tuple(Part(Place.SEGMENT, len(part)) for part in parts), b"", segment)


def views(payload: Payload) -> list[memoryview | bytearray]:
    """Return the bytes of each part; they are writable and the caller's alone."""
    if not payload.parts:
        return [bytearray(payload.inline)]
    mapped = _map(payload.segment) if payload.segment else memoryview(b"")
    stored = iter(payload.stored)
    found: list[memoryview | bytearray] = []
    inline_at = segment_at = 0
    for place, size, *_ in payload.parts:
        if place == Place.INLINE:
            found.append(bytearray(memoryview(payload.inline)[inline_at : inline_at + size]))
            inline_at += size
        elif place == Place.SEGMENT:
            found.append(mapped[segment_at : segment_at + size])
            segment_at += aligned(size)
        elif place == Place.STORED:
            found.append(_map(next(stored))[:size])
        else:
            # What stands for it is what a Ref is made of; it is no memory.
            found.append(next(stored))  # type: ignore[arg-type]
    return found


def _map(segment: Segment) -> memoryview:
    mapped = segment.map()
    if isinstance(mapped.obj, mmap):
        lending.remember(mapped.obj, segment)
    return mapped
