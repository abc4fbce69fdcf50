"""Frames and descriptors over a Unix socket, in an event loop."""

from __future__ import annotations

import array
import logging
import os
import socket
import struct
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from skyward.errors import ProtocolError, TransportError
from skyward.link.descriptors import handed_out
from skyward.link.frames import MAX_FDS, Frame, Kind, Parser, encode

if TYPE_CHECKING:
    import asyncio

_log = logging.getLogger(__name__)

READ = 64 << 10
"""Bytes asked of the socket at once; from 128 KiB on, the C library maps fresh memory for each read (14 µs)."""

SENSELESS = (struct.error, LookupError, ArithmeticError, TypeError, ValueError)
"""What handlers of frames raise when a body is torn, or holds something else than its kind says."""

_CUT_OFF = int(socket.MSG_CTRUNC)  # the enum's own operators cost a microsecond
_ANCILLARY = socket.CMSG_SPACE(MAX_FDS * array.array("i").itemsize)
_JOIN = 256 << 10
_BEAT = encode(Kind.BEAT)


_sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()


def _close_in_forked_child() -> None:
    """Close this process's copies, so that the other ends see when the parent is gone."""
    for sock in list(_sockets):
        sock.close()


os.register_at_fork(after_in_child=_close_in_forked_child)


def receive(sock: socket.socket, fds: deque[int], flags: int = 0) -> bytes:
    """
    Read what there is on a socket, descriptors into `fds`.

    Args:
        flags: As for `recv(2)`.

    Raises:
        BlockingIOError: If the socket does not block and there is nothing.
        ProtocolError: If descriptors were lost on the way.
    """
    data, ancillary, flags, _ = sock.recvmsg(READ, _ANCILLARY, flags)
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            numbers = array.array("i")
            numbers.frombytes(content[: len(content) - len(content) % numbers.itemsize])
            for fd in numbers:
                os.set_inheritable(fd, False)
                fds.append(fd)
    if flags & _CUT_OFF:
        raise ProtocolError("More descriptors arrived at once than a frame may carry, or this process has no room.")
    return data


def take(fds: deque[int], count: int) -> tuple[int, ...]:
    """
    Take the descriptors that belong to one frame.

    Raises:
        ProtocolError: If fewer have arrived.
    """
    if count > len(fds):
        raise ProtocolError(f"A frame names {count} descriptors and {len(fds)} arrived.")
    return tuple(fds.popleft() for _ in range(count))


class Flushed(Protocol):
    """Whatever gathers writes."""

    def flush(self) -> None:
        """Write what was gathered."""


class Link(Flushed, Protocol):
    """What carries frames to the other end and back, whatever lies between."""

    closed: bool
    heard: int
    on_drained: Callable[[], None] | None
    on_announced: Callable[[Frame], bool]

    @property
    def connected(self) -> bool:
        """Return whether the other end can be reached now."""

    @property
    def backlog(self) -> int:
        """Count the bytes that were not sent yet."""

    @property
    def queued(self) -> int:
        """Count the bytes that were ever queued, those that were sent included."""

    def send(
        self, frame: bytes, fds: Sequence[int] = (), hold: object = None, receipt: Callable[[], None] | None = None
    ) -> None:
        """Queue one frame; the receipt is called once, when the other end has it or it lies in its socket."""

    def beat(self) -> None:
        """Send a heartbeat, unless anything was sent since the last one."""

    def end(self) -> None:
        """Close the sending side, so that the other end reads an end of file."""

    def close(self, error: Exception | None = None) -> None:
        """Close at once; what was not sent is lost."""


class Batch:
    """
    Write what was sent while a batch of frames was handled in as few system calls as possible.

    Args:
        loop: The loop that all channels of this batch live in.
    """

    __slots__ = ("_channels", "_loop", "_open", "number")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.number = 0
        self._loop = loop
        self._channels: list[Flushed] = []
        self._open = False

    def mark(self, channel: Flushed) -> None:
        """Record that a channel has something to write."""
        if not self._channels and not self._open:
            self._loop.call_soon(self.flush)
        self._channels.append(channel)

    def open(self) -> None:
        """Begin to gather; `flush` ends it."""
        self.number += 1
        self._open = True

    def flush(self) -> None:
        """Write everything that was gathered."""
        self._open = False
        channels, self._channels = self._channels, []
        for channel in channels:
            channel.flush()


class Channel:
    """
    Carry frames both ways over one connected Unix socket.

    Args:
        batch: Where writes of the same moment are gathered.
        sock: The socket; the channel closes it.
        on_frame: Called in the loop with each frame and its descriptors, which it takes over.
        on_closed: Called once, with None if the other end closed in good order.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        batch: Batch,
        sock: socket.socket,
        on_frame: Callable[[Frame, tuple[int, ...]], None],
        on_closed: Callable[[Exception | None], None],
    ) -> None:
        sock.setblocking(False)
        self._loop = loop
        self._batch = batch
        self._sock = sock
        self._on_frame = on_frame
        self._on_closed = on_closed
        self._parser = Parser()
        self._fds: deque[int] = deque()
        self._out: deque[tuple[bytes, Sequence[int], object, Callable[[], None] | None]] = deque()
        self._marked = False
        self._writing = False
        self._reading = False
        self._ended = False
        self.closed = False
        self._backlog = 0
        self._queued = self._beaten = 0
        self.heard = 0
        self.on_drained: Callable[[], None] | None = None
        # Never called: buffers come as descriptors, and their memory is there already.
        self.on_announced: Callable[[Frame], bool] = lambda _: True
        _sockets.add(sock)
        self.resume()

    @property
    def connected(self) -> bool:
        """Return whether the other end can be reached: until it is closed."""
        return not self.closed

    @property
    def backlog(self) -> int:
        """Count the bytes that were not sent yet."""
        return self._backlog

    @property
    def queued(self) -> int:
        """Count the bytes that were ever queued, without those of descriptors' memory."""
        return self._queued

    def send(
        self, frame: bytes, fds: Sequence[int] = (), hold: object = None, receipt: Callable[[], None] | None = None
    ) -> None:
        """
        Queue one frame.

        Args:
            frame: Header and body.
            fds: Descriptors to go with it.
            hold: Kept alive until the frame is written; the owner of the descriptors.
            receipt: Called once, when all of the frame is written.
        """
        if self.closed:
            return
        self._out.append((frame, fds, hold, receipt))
        self._backlog += len(frame)
        self._queued += len(frame)
        if not self._marked and not self._writing:
            self._marked = True
            self._batch.mark(self)

    def flush(self) -> None:
        """Write as much as the socket takes now."""
        self._marked = False
        try:
            while self._out and not self.closed:
                self._write_some()
        except (BlockingIOError, InterruptedError):
            if not self._writing:
                self._writing = True
                self._loop.add_writer(self._sock, self._writable)
            return
        except OSError as error:
            self.close(TransportError(f"Writing to a link failed: {error}."))
            return
        if self._writing and not self.closed:
            self._writing = False
            self._loop.remove_writer(self._sock)
        if self._ended and not self.closed:
            self._sock.shutdown(socket.SHUT_WR)

    def pause(self) -> None:
        """Stop reading; the other end is slowed down by its full socket."""
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._sock)

    def resume(self) -> None:
        """Read again."""
        if not self._reading and not self.closed:
            self._reading = True
            self._loop.add_reader(self._sock, self._readable)

    def beat(self) -> None:
        """Send a heartbeat, unless anything was sent since the last one."""
        if self._queued == self._beaten and not self._backlog:
            self.send(_BEAT)
        self._beaten = self._queued

    def end(self) -> None:
        """Close the sending side once all is written."""
        self._ended = True
        if not self._out and not self.closed:
            self._sock.shutdown(socket.SHUT_WR)

    def close(self, error: Exception | None = None) -> None:
        """Close at once; what was not written is lost."""
        if self.closed:
            return
        self.closed = True
        self.pause()
        if self._writing:
            self._loop.remove_writer(self._sock)
        self._sock.close()
        self._out.clear()
        while self._fds:
            os.close(self._fds.popleft())
        self._on_closed(error)

    def drain(self) -> None:
        """Read and handle what is there now, without waiting."""
        while self._reading and self._read_some():
            pass

    def _write_some(self) -> None:
        frame, fds, *_ = self._out[0]
        if fds:
            sent = self._sock.sendmsg([frame], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
        else:
            pieces, size = [frame], len(frame)
            for following, its_fds, *_ in islice(self._out, 1, None):
                if its_fds or size > _JOIN:
                    break
                pieces.append(following)
                size += len(following)
            sent = self._sock.send(b"".join(pieces) if len(pieces) > 1 else frame)
        self._backlog -= sent
        while sent:
            frame, fds, hold, receipt = self._out.popleft()
            if sent >= len(frame):
                sent -= len(frame)
                if receipt is not None:
                    receipt()
            else:
                self._out.appendleft((frame[sent:], (), hold, receipt))
                sent = 0

    def _writable(self) -> None:
        self.flush()
        if self.on_drained is not None and not self._backlog:
            self.on_drained()

    def _readable(self) -> None:
        self._batch.open()
        try:
            self._read_some()
        finally:
            self._batch.flush()

    def _read_some(self) -> bool:
        """Read once; return whether there may be more."""
        try:
            data = receive(self._sock, self._fds)
            self.heard += 1
            if not data:
                torn = self._parser.pending
                self.close(TransportError(f"A link ended inside a frame, {torn} bytes in.") if torn else None)
                return False
            for frame in self._parser.feed(data):
                if frame.fds:
                    fds = take(self._fds, frame.fds)
                    with handed_out(fds):
                        self._on_frame(frame, fds)
                else:
                    self._on_frame(frame, ())
                if self.closed:
                    return False
            # The descriptors of a frame come with its first byte.
            if self._fds and (not self._parser.pending or len(self._fds) > MAX_FDS):
                raise ProtocolError(f"{len(self._fds)} descriptors arrived that no frame names.")
        except (BlockingIOError, InterruptedError):
            return False
        except ProtocolError as error:
            self.close(error)
            return False
        except SENSELESS as error:
            _log.info("link.senseless", exc_info=True)
            self.close(ProtocolError(f"A frame's body is not what its kind says: {type(error).__name__}: {error}."))
            return False
        except OSError as error:
            self.close(TransportError(f"Reading from a link failed: {error}."))
            return False
        except Exception as error:
            # A bug at this end: this link cannot continue.
            _log.exception("link.failed")
            self.close(ProtocolError(f"A frame could not be handled: {type(error).__name__}: {error}."))
            return False
        return True
