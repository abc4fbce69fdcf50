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
import pickle
from collections.abc import Callable, Sequence
from mmap import mmap
from typing import TYPE_CHECKING, Any

from skyward.errors import ProtocolError
from skyward.link.lending import lending
from skyward.link.payload_parts import Part, Place, read_parts, table
from skyward.link.pieces import Pieces
from skyward.link.segment import Segment, aligned

if TYPE_CHECKING:
    from skyward.model.spec.trust_setting import Data

INLINE = 256 << 10
"""Payloads up to this size, in bytes, travel inside their frame."""


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
    inline = in_segment = 0
    named = []
    # There may be thousands, which are gone through once.
    for part in parts:
        place, size, name, _ = part
        if name:
            named.append(part)
        elif place:
            in_segment += aligned(size)
        else:
            inline += size
    if inline != len(body) - at:
        raise ProtocolError("A payload's inline parts and its bytes differ in size.")
    stored = [part for part in named if part.place == Place.STORED]
    if len(segments) != len(stored) + bool(in_segment):
        raise ProtocolError(f"A payload came with {len(segments)} descriptors, not those its table names.")
    segment = None
    if in_segment:
        segment = segments.pop(0)
        segment.expect(in_segment)
    for part, kept in zip(stored, segments, strict=True):
        kept.expect(aligned(part.size))
    kept_there = [part for part in named if part.place == Place.THERE]
    if kept_there:
        if there is None or stored:
            raise ProtocolError("A payload names what stays at a node, where only results may.")
        segments = [there(part.digest, part.size) for part in kept_there]
    return Payload(parts, body[at:], segment, tuple(segments), trust)


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
