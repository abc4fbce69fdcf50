"""Where a node's link gets large buffers from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from skyward.link.absent import Origin
from skyward.link.payload import Payload
from skyward.link.payload_parts import Place
from skyward.link.segment import Segment


class StoredBuffers(NamedTuple):
    """A buffer that a node is to keep: its name, its bytes, and where they are."""

    name: bytes
    size: int
    segment: Segment


class BufferSource(Protocol):
    """Where large buffers come from that other nodes may have."""

    def missing(self, wanted: Sequence[StoredBuffers]) -> set[bytes]:
        """Send buffers to the node, and return those that a call has to wait for."""

    def dropped(self, name: bytes) -> None:
        """Record that the node drops a buffer."""

    def left(self) -> None:
        """Record that the node is being drained."""


class Puts(Origin, Protocol):
    """What tasks put at the node."""

    def there(self, name: bytes, size: int) -> Segment:
        """Return what stands for something that a result names."""

    def gone(self, name: bytes) -> None:
        """Record that the node has a buffer no more."""


def stored_in(payload: Payload) -> Iterator[StoredBuffers]:
    """List the buffers of a payload that nodes keep."""
    segments = iter(payload.stored)
    for part in payload.parts:
        if part.place == Place.STORED:
            yield StoredBuffers(part.digest, part.size, next(segments))


def stored_of(call: Any) -> Iterator[StoredBuffers]:
    """List the buffers that nodes keep of a call's function and arguments."""
    yield from stored_in(call.function.payload)
    yield from stored_in(call.payload)
