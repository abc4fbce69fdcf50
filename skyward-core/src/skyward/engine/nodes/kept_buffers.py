"""What a node keeps of this client's large buffers, and when it drops them."""

from __future__ import annotations

import contextlib
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Collection

from skyward.engine.nodes.buffer_supply import BufferSource, Puts, StoredBuffers, stored_in
from skyward.errors import PoolClosedError, ProtocolError
from skyward.link.absent import Absent
from skyward.link.channel import Link
from skyward.link.frames import Kind, encode
from skyward.link.messages import BLOB
from skyward.link.payload import Payload
from skyward.link.segment import Segment

KEPT_BYTES = 64 << 20
"""How many bytes of large buffers a node keeps under their names, where it reports no share of its memory."""

MOST_KEPT_BYTES = 1 << 40
"""How many bytes that are at most, whatever a node reports."""


class KeptBuffers:
    """
    Send a node each large buffer once, and have it drop what is unused or released here.

    Args:
        channel: The connection to its agent.
        post: Has something done in the loop soon; what this client releases is dropped with the next call without it.
    """

    def __init__(self, channel: Link, post: Callable[[Callable[[], None]], object] | None) -> None:
        self._channel = channel
        self._post = post
        self._sizes: OrderedDict[bytes, tuple[int, weakref.ref[Segment]]] = OrderedDict()
        self._bytes = 0
        self._gone: deque[weakref.ref[Segment]] = deque()
        self._dropping = False
        self.limit = KEPT_BYTES
        self.supply: BufferSource | None = None
        self.puts: Puts | None = None

    def has(self, name: bytes) -> bool:
        """Return whether a buffer is at the node, or on its way from here before all that is sent now."""
        return name in self._sizes

    @property
    def too_many(self) -> bool:
        """Return whether the node keeps more bytes than it has room for."""
        return self._bytes > self.limit

    def keeps(self, share: object) -> None:
        """Record how many bytes the node says that it keeps; what is no such number is passed over."""
        if type(share) is int and share >= 0:
            self.limit = min(share, MOST_KEPT_BYTES)

    def send(self, payload: Payload) -> None:
        """Send the buffers of a payload that the node does not have."""
        self.drop_gone()
        for stored in stored_in(payload):
            if stored.name in self._sizes:
                self._sizes.move_to_end(stored.name)
                continue
            self.upload(stored)

    def upload(self, stored: StoredBuffers, landed: Callable[[], None] | None = None) -> None:
        """
        Send a buffer.

        Args:
            stored: The buffer.
            landed: Called when the node has it.
        """
        self.note(stored)
        head = BLOB.pack(stored.name, stored.size)
        self._channel.send(encode(Kind.BLOB, head, fds=1), (stored.segment.fd,), stored.segment, landed)

    def note(self, stored: StoredBuffers) -> None:
        """Record that a buffer is at the node, until this client keeps it no longer."""
        self.forgot(stored.name)
        self._sizes[stored.name] = stored.size, weakref.ref(stored.segment, self._let_go)
        if self.puts is not None and isinstance(stored.segment, Absent) and self.puts not in stored.segment.places:
            stored.segment.places.append(self.puts)
        self._bytes += stored.size

    def hold(self, stored: StoredBuffers) -> None:
        """
        Record what a task put at the node; it is never evicted, and is dropped when it is needed no more.

        Raises:
            ProtocolError: If the node has something of that name.
        """
        if stored.name in self._sizes:
            raise ProtocolError("A node named two values alike.")
        self._sizes[stored.name] = 0, weakref.ref(stored.segment, self._let_go)

    def evict(self, pinned: Collection[bytes]) -> None:
        """Order the node to drop what was unused for longest, as far as it keeps too much, and no call waits for it."""
        for oldest in [name for name, (size, _) in self._sizes.items() if size and name not in pinned]:
            if not self.too_many:
                break
            self._drop(oldest)

    def forgot(self, name: bytes) -> None:
        """Record that the node has a buffer no longer: it is sent again with the next call of it."""
        if (kept := self._sizes.pop(name, None)) is not None:
            self._bytes -= kept[0]
            if self.supply is not None:
                self.supply.dropped(name)
            if self.puts is not None:
                self.puts.gone(name)

    def drop_gone(self) -> None:
        """Order the node to drop what this client keeps no longer."""
        self._dropping = False
        if not self._gone:
            return
        gone = set()
        while self._gone:
            gone.add(id(self._gone.popleft()))
        for name in [name for name, (_, segment) in self._sizes.items() if id(segment) in gone]:
            if self._channel.closed:
                return
            self._drop(name)

    def _drop(self, name: bytes) -> None:
        self.forgot(name)
        self._channel.send(encode(Kind.DROP, name))

    def _let_go(self, segment: weakref.ref[Segment]) -> None:
        """Record that this client keeps a buffer no longer; in any thread, whatever that was doing."""
        self._gone.append(segment)
        if self._post is not None and not self._dropping:
            self._dropping = True
            # A loop that has ended, or is the parent's, has nothing to drop it from.
            with contextlib.suppress(PoolClosedError, OSError):
                self._post(self.drop_gone)
