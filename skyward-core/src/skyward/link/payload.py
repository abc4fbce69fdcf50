"""
Pickles with their large buffers beside them.

A payload is a list of parts: first the pickle stream, then its out-of-band buffers.
Each part travels inside the frame, in a segment, or as the digest of something the node has.

    u16 number of parts, 0 when the rest of the body is the stream
    for each part: u8 place   u64 size   (a stored part: 32 bytes of digest)
    the inline parts, one after the other
"""

from __future__ import annotations

import pickle
import struct
import sys
from collections.abc import Callable, Sequence
from enum import IntEnum
from mmap import mmap
from pickle import PickleBuffer
from typing import Any, NamedTuple

import cloudpickle

from skyward.errors import ProtocolError
from skyward.link.cached import reduce_cached
from skyward.link.data.reducing import reduce_as_data
from skyward.link.frames import MAX_FDS
from skyward.link.lending import lending
from skyward.link.opened import refuse_file
from skyward.link.segment import Segment, aligned, write_segment
from skyward.model.trust import Data

OUT_OF_BAND = 64 << 10
"""Buffers from this size on, in bytes, are not copied into the pickle."""

INLINE = 256 << 10
"""Payloads up to this size, in bytes, travel inside their frame."""

MAX_STORED = MAX_FDS - 1
"""How many buffers of a payload travel by their digests: each is a descriptor of one frame on its last way."""

_COUNT = struct.Struct("<H")
_PART = struct.Struct("<BQ")
_NO_PARTS = _COUNT.pack(0)
_DIGEST_SIZE = 32


class Place(IntEnum):
    """Where a part of a payload is."""

    INLINE = 0
    SEGMENT = 1
    STORED = 2


class Part(NamedTuple):
    """One part of a payload, `size` in bytes."""

    place: int
    size: int
    digest: bytes = b""


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
        """Count the bytes of all parts."""
        return sum(part.size for part in self.parts) if self.parts else len(self.inline)

    @property
    def travelling(self) -> int:
        """Count the bytes of the parts that the other end does not keep."""
        if not self.parts:
            return len(self.inline)
        return sum(part.size for part in self.parts if part.place != Place.STORED)

    @property
    def fds(self) -> list[int]:
        """List the descriptors that travel with it, those of stored parts aside."""
        return [self.segment.fd] if self.segment else []

    def encode(self) -> bytes:
        """Render the table of parts and the inline bytes."""
        if not self.parts:
            return _NO_PARTS + self.inline
        table = [_COUNT.pack(len(self.parts))]
        for place, size, digest in self.parts:
            table.append(_PART.pack(place, size) + digest)
        return b"".join(table) + self.inline


def decode(body: bytes, at: int, fds: Sequence[int], trust: Data | None = None) -> Payload:
    """
    Read a payload from a frame's body.

    Args:
        body: The body.
        at: Where in it the payload begins.
        fds: The descriptors that came with the frame: the segment's, then one for each stored part. Taken over.
        trust: What of it is opened as data; None opens anything.

    Raises:
        ProtocolError: If table, bytes and descriptors disagree.
    """
    segments = [Segment(fd, 0) for fd in fds]
    if len(body) < at + 2:
        raise ProtocolError("A payload is cut off before its table.")
    parts, at = read_parts(body, at)
    if not parts:
        return Payload((), body[at:], trust=trust)
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
    return Payload(parts, body[at:], segment, tuple(segments), trust)


def read_parts(body: bytes, at: int) -> tuple[tuple[Part, ...], int]:
    """
    Read the table of parts, and tell where it ends.

    Raises:
        ProtocolError: If the body ends inside the table.
    """
    try:
        (count,) = _COUNT.unpack_from(body, at)
        at += _COUNT.size
        parts = []
        for _ in range(count):
            place, size = _PART.unpack_from(body, at)
            at += _PART.size
            digest = b""
            if place == Place.STORED:
                digest = body[at : at + _DIGEST_SIZE]
                at += _DIGEST_SIZE
            elif place not in (Place.INLINE, Place.SEGMENT):
                raise ProtocolError(f"A payload's part is at an unknown place, {place}.")
            parts.append(Part(place, size, digest))
    except struct.error as error:
        raise ProtocolError("A payload's table is cut off.") from error
    if at > len(body):
        raise ProtocolError("A payload's table is cut off.")
    return tuple(parts), at


class Keep(NamedTuple):
    """A buffer that a node keeps under its digest."""

    digest: bytes
    segment: Segment


def dump(value: object, keep: Callable[[memoryview], Keep | None] | None = None, *, data: bool = False) -> Payload:
    """
    Pickle a value.

    Args:
        value: Anything cloudpickle can pickle.
        keep: Asked for each large buffer; what it returns makes that buffer travel by its digest.
        data: Whether it is opened as data.

    Raises:
        Exception: Whatever pickling raises.

    >>> load(dump({"a": [1, 2]}))
    {'a': [1, 2]}
    """
    buffers: list[memoryview] = []
    stream: list[bytes] = []
    (_DataPickler if data else _Pickler)(stream, buffers).dump(value)
    if not buffers and sum(map(len, stream)) <= INLINE:
        return Payload((), stream[0] if len(stream) == 1 else b"".join(stream))
    parts: list[Part] = []
    inline: list[bytes | memoryview] = []
    shared: list[Sequence[bytes | memoryview]] = []
    stored: list[Segment] = []
    whole = sum(map(len, stream)) + sum(map(len, buffers))
    place = Place.INLINE if whole <= INLINE else Place.SEGMENT
    size = sum(map(len, stream))
    if place == Place.SEGMENT and size > OUT_OF_BAND:
        shared.append(stream)
        parts.append(Part(Place.SEGMENT, size))
    else:
        inline += stream
        parts.append(Part(Place.INLINE, size))
    for buffer in buffers:
        kept = keep(buffer) if keep and len(stored) < MAX_STORED else None
        if kept:
            parts.append(Part(Place.STORED, len(buffer), kept.digest))
            stored.append(kept.segment)
        elif place == Place.INLINE:
            parts.append(Part(Place.INLINE, len(buffer)))
            inline.append(buffer)
        else:
            parts.append(Part(Place.SEGMENT, len(buffer)))
            shared.append([buffer])
    return Payload(tuple(parts), b"".join(inline), _segment(shared) if shared else None, tuple(stored))


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
        from skyward.link.data.names import names_of
        from skyward.link.data.opener import open_data

        stream, *buffers = views(payload) if payload.parts else (payload.inline,)
        return open_data(stream, names_of(payload.trust), buffers=buffers)
    if not payload.parts:
        return pickle.loads(payload.inline)
    stream, *buffers = views(payload)
    return pickle.loads(stream, buffers=buffers)


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
    """Give the bytes of each part; they are writable and the caller's alone."""
    if not payload.parts:
        return [bytearray(payload.inline)]
    mapped = _map(payload.segment) if payload.segment else memoryview(b"")
    stored = iter(payload.stored)
    found: list[memoryview | bytearray] = []
    inline_at = segment_at = 0
    for place, size, _ in payload.parts:
        if place == Place.INLINE:
            found.append(bytearray(memoryview(payload.inline)[inline_at : inline_at + size]))
            inline_at += size
        elif place == Place.SEGMENT:
            found.append(mapped[segment_at : segment_at + size])
            segment_at += aligned(size)
        else:
            found.append(_map(next(stored))[:size])
    return found


def _map(segment: Segment) -> memoryview:
    mapped = segment.map()
    if isinstance(mapped.obj, mmap):
        lending.remember(mapped.obj, segment)
    return mapped


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle has no types
    """A cloudpickle pickler that leaves large buffers out of the stream."""

    def __init__(self, stream: list[bytes], buffers: list[memoryview]) -> None:
        def out_of_band(buffer: PickleBuffer) -> bool:
            raw = buffer.raw()
            if raw.nbytes < OUT_OF_BAND:
                return True
            buffers.append(raw)
            return False

        super().__init__(_Writer(stream), protocol=5, buffer_callback=out_of_band)

    def reducer_override(self, obj: Any) -> Any:
        kind = type(obj)
        if kind is memoryview:
            return _reduce_memoryview(obj)
        if kind.__module__ == "torch" and kind.__name__ == "Tensor":
            reduced = _reduce_tensor(obj)
            if reduced is not None:
                return reduced
        refuse_file(obj)
        return reduce_cached(obj) or super().reducer_override(obj)


class _DataPickler(_Pickler):
    """A pickler whose output is opened as data."""

    def reducer_override(self, obj: Any) -> Any:
        return reduce_as_data(obj) or super().reducer_override(obj)


class _Writer:
    """The least of a file that a pickler asks for; large bytes objects arrive here uncopied."""

    __slots__ = ("write",)

    def __init__(self, stream: list[bytes]) -> None:
        self.write = stream.append


def _reduce_memoryview(view: memoryview) -> tuple[Any, ...]:
    if not view.c_contiguous:
        return (memoryview, (view.tobytes(),))
    return (_restore_memoryview, (PickleBuffer(view), view.format, view.shape))


def _restore_memoryview(buffer: Any, code: str, shape: tuple[int, ...]) -> memoryview:
    flat = memoryview(buffer).cast("B")
    return flat if code == "B" and len(shape) == 1 else flat.cast(code, shape)  # type: ignore[call-overload]


def _reduce_tensor(tensor: Any) -> tuple[Any, ...] | None:
    """Reduce a plain CPU tensor to its memory; None leaves it to torch's own pickling."""
    torch = sys.modules["torch"]
    if tensor.device.type != "cpu" or tensor.layout is not torch.strided or tensor.is_quantized or tensor.dim() == 0:
        return None
    if tensor.requires_grad or tensor.numel() * tensor.element_size() < OUT_OF_BAND or not tensor.is_contiguous():
        return None
    flat = tensor.detach().view(-1).view(torch.uint8)
    return (_restore_tensor, (PickleBuffer(flat.numpy()), str(tensor.dtype), tuple(tensor.shape)))


def _restore_tensor(buffer: Any, dtype: str, shape: tuple[int, ...]) -> Any:
    import torch

    flat = torch.frombuffer(buffer, dtype=torch.uint8)
    return flat.view(getattr(torch, dtype.removeprefix("torch."))).view(shape)
