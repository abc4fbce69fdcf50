"""Frames over connections that may be lost: every one arrives once, in order, over as many as it takes."""

from __future__ import annotations

import asyncio
import logging
import mmap
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from skyward.errors import ProtocolError, SkywardError, TransportError
from skyward.link.cells import COUNT, NUMBERED, CellParser, CellType, Piece, cell
from skyward.link.channel import SENSELESS, Batch
from skyward.link.frames import Frame, Kind, Parser, decode_json
from skyward.link.hello import brief, read_hello, write_hello
from skyward.link.inbox import Inbox
from skyward.link.order import keys_of, sizes_of
from skyward.link.outbox import MOST_KEPT, Outbox

_log = logging.getLogger(__name__)

ACK_AFTER = 64 << 10
"""Bytes after which they are acknowledged, unless others just were."""

ACK_APART = 0.0005
"""Seconds between two acknowledgements of bytes that arrive faster than that, because each wakes up the other end."""

ACK_AT_ONCE = 512 << 10
"""Bytes after which they are acknowledged whatever was before."""

ACK_WITHIN = 0.02
"""Seconds within which everything is acknowledged."""


KIND_AT = 4
"""Where a frame's header says its kind."""

_PARKED = frozenset((Kind.RESULT, Kind.RECALLED, Kind.KEEP, Kind.FAILED, Kind.WORKER))
"""What is kept for the next client while there is none; all else is of use to one that is there."""

_PASSING = frozenset((Kind.WELCOME, Kind.ANSWER))
"""What is sent all the same, because a client that is there has asked for it."""


class Connection(Protocol):
    """What a link needs of one connection; all of it is used in the loop only."""

    def write(self, data: bytes) -> None:
        """Send bytes, or keep them until they can be sent."""

    def room(self) -> int:
        """Count the bytes that can be taken now without piling up."""

    def close(self) -> None:
        """Close it, after what was written; `Wire.lost` may or may not be called for it."""


class Wire:
    """
    Carry frames both ways, over one connection after the other.

    Args:
        loop: The loop it lives in.
        batch: Where writes of the same moment are gathered.
        session: A name that both ends know; a connection that does not say it is refused.
        on_frame: Called with each frame and its descriptors, which it takes over.
        on_closed: Called once, with None if the other end closed in order.
        on_lost: Called when a connection is lost and another one is wanted.
        on_received: Called whenever anything arrives.

    `succeeds` has the sessions of clients before, one of which this one takes a node over from; it is empty otherwise.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        batch: Batch,
        session: str,
        *,
        on_frame: Callable[[Frame, tuple[int, ...]], None],
        on_closed: Callable[[Exception | None], None],
        on_lost: Callable[[Exception | None], None] = lambda _: None,
        on_received: Callable[[], None] = lambda: None,
    ) -> None:
        self._loop = loop
        self._batch = batch
        self._session = session
        self._on_frame = on_frame
        self._on_closed = on_closed
        self._on_lost = on_lost
        self._on_received = on_received
        self._outbox = Outbox()
        self._inbox = Inbox(on_frame, self._announced)
        self._connection: Connection | None = None
        self._cells = CellParser()
        self._greeted = False
        self._early = False
        self._marked = False
        self._resting = False
        self._full = False
        self._unacknowledged = 0
        self._asked = False
        self._acknowledging: asyncio.TimerHandle | None = None
        self._acknowledged_at = 0.0
        # What is kept for the next client; None while this one is there.
        self.kept: list[tuple[bytes, Sequence[int], object]] | None = None
        self.succeeds: tuple[str, ...] = ()
        self.closed = False
        self.received_at = loop.time()
        self.heard = 0
        self._wrote = False
        self.on_drained: Callable[[], None] | None = None
        self.on_announced: Callable[[Frame], bool] = lambda _: True

    @property
    def backlog(self) -> int:
        """Count the bytes that were not sent yet."""
        return self._outbox.backlog

    @property
    def queued(self) -> int:
        """Count the bytes that were ever queued."""
        return self._outbox.queued

    @property
    def connected(self) -> bool:
        """Return whether there is a connection over which both ends have said hello."""
        return self._greeted

    @property
    def drained(self) -> bool:
        """Return whether the other end has all that was sent."""
        return self._outbox.idle

    @property
    def parked(self) -> bool:
        """Return whether this link waits for another client."""
        return self.kept is not None

    def away(self, patience: float) -> bool:
        """
        Return whether the other end cannot be reached now, or has said nothing for longer than it should.

        Args:
            patience: Seconds that it may be silent.
        """
        return not self._greeted or self._loop.time() - self.received_at > patience

    def send(
        self, frame: bytes, fds: Sequence[int] = (), hold: object = None, receipt: Callable[[], None] | None = None
    ) -> None:
        """
        Queue one frame.

        Args:
            frame: Header and body.
            fds: Memory that goes with it.
            hold: Kept alive until the frame was sent; the owner of the descriptors.
            receipt: Called once, when the other end has it.
        """
        if self.closed:
            return
        if self.kept is not None and frame[KIND_AT] not in _PASSING:
            self._park(frame, fds, hold, receipt)
            return
        if fds or self._outbox.holds:
            (parsed,) = Parser().feed(frame)
            buffers = [_view(fd, size) for fd, size in zip(fds, sizes_of(parsed) if fds else (), strict=True)]
            self._outbox.add(frame, buffers, keys_of(parsed), hold, receipt)
        else:
            # There is nothing that it could overtake.
            self._outbox.add(frame, receipt=receipt)
        if not self._marked:
            self._marked = True
            self._batch.mark(self)

    def send_mapped(self, frame: bytes, buffers: Sequence[memoryview], receipt: Callable[[], None]) -> None:
        """Queue one frame whose buffers are mapped already; nothing while the link is parked."""
        if not self.closed and self.kept is None:
            self._outbox.add(frame, buffers, keys_of(Parser().feed(frame)[0]), None, receipt)
            self.flush()

    def park(self) -> None:
        """Send nothing but answers until `unpark`; what has a receipt is kept by its sender."""
        if self.kept is None:
            self.kept = []

    def renew(self, session: str) -> None:
        """Begin with another client, of a session of its own, which has none of what was sent."""
        self._drop_connection()
        self._settle()
        self._inbox.close()
        self._session = session
        self._outbox, self._inbox = Outbox(), Inbox(self._on_frame, self._announced)
        self._unacknowledged, self._asked = 0, False

    def unpark(self) -> None:
        """Send what was kept, and all that comes from now on."""
        parked, self.kept = self.kept or (), None
        for frame, fds, hold in parked:
            self.send(frame, fds, hold)

    def abandon(self) -> None:
        """End this end of the link without a word, so that the other one waits for another client."""
        if not self.closed:
            self._acknowledge()
            self.closed = True
            self._drop_connection()
            self._settle()
            self._inbox.close()

    def replace(self, receipt: Callable[[], None], buffers: Sequence[memoryview]) -> None:
        """
        Send what is left of a frame from another place.

        Args:
            receipt: That of the frame.
            buffers: The same bytes as those of its descriptors.
        """
        self._outbox.replace(receipt, buffers)

    def flush(self) -> None:
        """Write as much as the connection takes now."""
        self._marked = False
        connection = self._connection
        if connection is None or not (self._greeted or self._early):
            return
        if self._asked:
            self._acknowledge()
        while (room := connection.room()) > 0:
            cells = self._outbox.next(room, self._loop.time())
            if not cells:
                break
            self._wrote = True
            connection.write(b"".join(cells))
            if self._outbox.kept > MOST_KEPT:
                kept = self._outbox.kept
                self.close(ProtocolError(f"The other end was sent {kept} bytes that it has not acknowledged."))
                return
            if self._outbox.paused:
                self._rest()
                break
        if self._outbox.backlog:
            self._full = True
        elif self._full:
            self._full = False
            if self.on_drained is not None:
                self.on_drained()

    def end(self) -> None:
        """Close the sending side; it is the client that sends `BYE`."""

    def attach(self, connection: Connection, *, first: bool = False) -> None:
        """
        Continue over a new connection; the one before it is closed.

        Args:
            connection: The connection.
            first: Whether nothing ever was before it, at either end: there is no need then to ask what has arrived.
        """
        self._drop_connection()
        self._connection = connection
        self._early = first
        self._cells = CellParser()
        self._inbox.restart()
        connection.write(cell(CellType.HELLO, write_hello(self._session, self._inbox.received, self.succeeds)))
        if first:
            self.flush()

    def receive(self, connection: Connection, data: bytes | memoryview) -> None:
        """Take bytes that arrived over a connection; no view of them is kept."""
        if connection is not self._connection or self.closed:
            return
        self.received_at = self._loop.time()
        self.heard += 1
        self._on_received()
        self._batch.open()
        try:
            for piece in self._cells.feed(data):
                self._take(piece)
                if connection is not self._connection:
                    return
            if self._asked or self._unacknowledged >= ACK_AT_ONCE:
                self._acknowledge()
            elif self._unacknowledged >= ACK_AFTER:
                self._acknowledge_at(self._acknowledged_at + ACK_APART)
        except SkywardError as error:
            self.close(error)
        except SENSELESS as error:
            _log.info("link.senseless", exc_info=True)
            self.close(ProtocolError(f"A frame's body is not what its kind says: {type(error).__name__}: {error}."))
        except OSError as error:
            self.close(TransportError(f"What arrived could not be kept: {error}."))
        except Exception as error:
            # A bug at this end: this link cannot continue.
            _log.exception("link.failed")
            self.close(ProtocolError(f"A frame could not be handled: {type(error).__name__}: {error}."))
        finally:
            self._batch.flush()

    def lost(self, connection: Connection, error: Exception | None) -> None:
        """Record that a connection is gone; what was under way on it is sent again on the next."""
        if connection is self._connection and not self.closed:
            self._connection = None
            self._greeted = self._early = False
            self._on_lost(error)

    def beat(self) -> None:
        """Send a heartbeat, unless anything was sent since the last one; none while the other end is away."""
        if not self._wrote:
            self._acknowledge()
        self._wrote = False

    def ping(self) -> None:
        """Ask the other end for a heartbeat."""
        if self._connection is not None and self._greeted:
            self._connection.write(cell(CellType.PING))

    def close(self, error: Exception | None = None) -> None:
        """End the link for good; what was not sent is lost."""
        if self.closed:
            return
        if self._connection is not None:
            self._connection.write(cell(CellType.BYE, brief(str(error or "")).encode("utf-8", "replace")))
        self._shut(error)

    def _take(self, piece: Piece) -> None:
        kind, body = piece.kind, piece.body
        if kind is CellType.HELLO:
            self._greet(decode_json(bytes(body)))
        elif not self._greeted:
            raise ProtocolError(f"A link began with a {kind.name} cell and no HELLO.")
        elif kind in NUMBERED:
            self._unacknowledged += len(body)
            self._inbox.take(piece)
            if self._acknowledging is None:
                self._acknowledge_at(self.received_at + ACK_WITHIN)
        elif kind is CellType.ACK:
            self._outbox.acknowledged(COUNT.unpack(body)[0], self._loop.time())
            self.flush()
        elif kind is CellType.PING:
            self._asked = True
        else:
            why = bytes(body).decode("utf-8", "replace")
            self._shut(TransportError(f"The other end gave up: {brief(why)}") if why else None)

    def _greet(self, hello: dict[str, Any]) -> None:
        if self._greeted:
            raise ProtocolError("A link said HELLO twice on one connection.")
        received, self._outbox.packer.able = read_hello(hello, self._session)
        if not self._early:
            self._outbox.resume(received)
        elif received:
            raise ProtocolError(f"The other end says that it has {received} cells before there were any.")
        self._greeted, self._early = True, False
        self.flush()

    def _park(self, frame: bytes, fds: Sequence[int], hold: object, receipt: Callable[[], None] | None) -> None:
        assert self.kept is not None
        if receipt is None and frame[KIND_AT] in _PARKED:
            self.kept.append((frame, fds, hold))

    def _rest(self) -> None:
        """Continue compressing when the loop has done what else there is."""
        if not self._resting:
            self._resting = True
            self._loop.call_soon(self._rested)

    def _rested(self) -> None:
        self._resting = False
        self.flush()

    def _acknowledge_at(self, when: float) -> None:
        """Acknowledge what has arrived at a time of the loop's clock, or before."""
        if when <= self.received_at:
            self._acknowledge()
        elif self._acknowledging is None or when < self._acknowledging.when():
            self._settle()
            self._acknowledging = self._loop.call_at(when, self._acknowledge)

    def _settle(self) -> None:
        if self._acknowledging is not None:
            self._acknowledging.cancel()
            self._acknowledging = None

    def _acknowledge(self) -> None:
        self._settle()
        self._unacknowledged = 0
        self._acknowledged_at = self._loop.time()
        if self._connection is not None and self._greeted:
            # An end that asks and never reads must not fill our memory: what is owed waits for room.
            self._asked = self._connection.room() <= 0
            if not self._asked:
                self._wrote = True
                self._connection.write(cell(CellType.ACK, COUNT.pack(self._inbox.received)))

    def _shut(self, error: Exception | None) -> None:
        self.closed = True
        self._drop_connection()
        self._settle()
        self._inbox.close()
        self._on_closed(error)

    def _announced(self, frame: Frame) -> bool:
        return self.on_announced(frame)

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        self._greeted = self._early = False
        if connection is not None:
            connection.close()


def _view(fd: int, size: int) -> memoryview:
    return memoryview(mmap.mmap(fd, size, prot=mmap.PROT_READ))[:size]
