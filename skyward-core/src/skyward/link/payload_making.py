"""Payloads made of values: pickled, cut into pieces, and laid inline, in a segment or under names that nodes know."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from skyward.link.frames import MAX_FDS
from skyward.link.lending import lending
from skyward.link.payload import INLINE, Payload
from skyward.link.payload_parts import NAME, Part, Place
from skyward.link.pickling import OUT_OF_BAND, DataPickler, Pickler
from skyward.link.plain_pickle import pickled_atom
from skyward.link.segment import Segment, write_segment

MAX_STORED = MAX_FDS - 1
"""How many buffers of a payload travel by their digests: each is a descriptor of one frame on its last way."""


PIECE = 1 << 20
"""Pieces of streams from this size on, in bytes, are kept at nodes like buffers."""

_LARGEST_RUN = 64 << 20
_MOST_PIECES = 4 << 10


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

    >>> from skyward.link.payload import load
    >>> load(dump({"a": [1, 2]}))
    {'a': [1, 2]}
    """
    atom = pickled_atom(value)
    if atom is not None:
        return Payload((), atom)
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


def pack(parts: Sequence[bytes]) -> Payload:
    """
    Make a payload of plain bytes, nothing pickled.

    >>> from skyward.link.payload import views
    >>> [bytes(view) for view in views(pack([b"a", b"bc"]))]
    [b'a', b'bc']
    """
    if sum(map(len, parts)) <= INLINE:
        return Payload(tuple(Part(Place.INLINE, len(part)) for part in parts), b"".join(parts))
    segment = write_segment([[part] for part in parts])
    return Payload(tuple(Part(Place.SEGMENT, len(part)) for part in parts), b"", segment)
