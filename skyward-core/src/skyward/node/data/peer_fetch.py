"""Get a stored buffer from another node of the pool; blocks, so it runs in a thread of its own."""

from __future__ import annotations

import contextlib
import hashlib
import socket
import threading
import time
from typing import TYPE_CHECKING

from skyward.link.segment import Arriving, Segment, aligned
from skyward.link.transfer_orders import ANSWER, MARK, REQUEST, TransferOrder
from skyward.model.instances.transfer import TransferOutcome

if TYPE_CHECKING:
    import ssl

CONNECT_WITHIN = 3.0
"""Seconds in which a connection is made: twice TCP sends its first packet by then."""

SLOWEST = 1 << 20
"""Bytes a second, on average over each `stall` seconds, below which a source is given up: the client's own line is
hardly slower."""

_PIECE = 1 << 20


class FetchError(Exception):
    """
    Say why a buffer was not fetched.

    Args:
        outcome: What that means for the source.
        why: The reason, in words.
    """

    def __init__(self, outcome: TransferOutcome, why: str) -> None:
        super().__init__(why)
        self.outcome = outcome


class Fetching:
    """
    Fetch one buffer.

    Args:
        order: Which, and from where.
        context: The pool's TLS settings.
    """

    def __init__(self, order: TransferOrder, context: ssl.SSLContext) -> None:
        self.order = order
        self.abandoned = False
        self._context = context
        # A descriptor of the connection that its thread does not use, to wake it by.
        self._wake: socket.socket | None = None
        self._lock = threading.Lock()

    def abandon(self) -> None:
        """Abandon it; may be called from any thread."""
        self.abandoned = True
        with self._lock, contextlib.suppress(OSError):
            if self._wake is not None:
                self._wake.shutdown(socket.SHUT_RDWR)

    def run(self) -> Segment:
        """
        Fetch it.

        Raises:
            FetchError: If that fails; `outcome` says what it means.
        """
        try:
            with self._connected() as tls:
                return self._received(tls)
        except OSError as error:
            raise FetchError(TransferOutcome.STALLED, f"the connection failed: {error}") from error
        finally:
            with self._lock:
                wake, self._wake = self._wake, None
                if wake is not None:
                    wake.close()

    def _connected(self) -> ssl.SSLSocket:
        order = self.order
        try:
            with socket.create_connection((order.host, order.port), timeout=CONNECT_WITHIN) as plain:
                self._wake = plain.dup()
                return self._context.wrap_socket(plain)
        except OSError as error:
            raise FetchError(TransferOutcome.UNREACHED, f"{order.host}:{order.port}: {error}") from error

    def _received(self, tls: ssl.SSLSocket) -> Segment:
        order = self.order
        tls.settimeout(order.stall)
        try:
            tls.sendall(REQUEST.pack(MARK, order.name))
            there, size = ANSWER.unpack(_exactly(tls, ANSWER.size))
        except OSError as error:
            # With TLS 1.3 the end that connects learns here that it was refused.
            raise FetchError(
                TransferOutcome.UNREACHED, f"{order.host}:{order.port} does not answer: {error}"
            ) from error
        if not there:
            raise FetchError(TransferOutcome.GONE, "the source does not have it any more")
        if size != order.size:
            raise FetchError(TransferOutcome.WRONG, f"the source has {size} bytes of it, and not {order.size}")
        arriving = Arriving(aligned(size))
        try:
            if self._fill(tls, arriving) != order.checksum:
                raise FetchError(TransferOutcome.WRONG, "what arrived has another checksum")
            return Segment(arriving.finish(), size)
        finally:
            arriving.close()

    def _fill(self, tls: ssl.SSLSocket, arriving: Arriving) -> bytes:
        """Take the content, and return its checksum."""
        size, stall = self.order.size, self.order.stall
        buffer = memoryview(bytearray(min(_PIECE, size)))
        digest = hashlib.sha256()
        at, since, then = 0, time.monotonic(), 0
        while at < size:
            filled = 0
            want = min(len(buffer), size - at)
            while filled < want:
                read = tls.recv_into(buffer[filled:want])
                if not read or self.abandoned:
                    raise FetchError(TransferOutcome.STALLED, f"the source ended after {at + filled} of {size} bytes")
                filled += read
                if (now := time.monotonic()) - since >= stall:
                    if at + filled - then < SLOWEST * (now - since):
                        raise FetchError(
                            TransferOutcome.STALLED, f"{at + filled - then} bytes came in the last {now - since:.1f} s"
                        )
                    since, then = now, at + filled
            digest.update(buffer[:want])
            try:
                arriving.write(at, buffer[:want])
            except OSError as error:
                raise FetchError(TransferOutcome.UNABLE, f"there is no room for it: {error}") from error
            at += want
        return digest.digest()


def _exactly(tls: ssl.SSLSocket, size: int) -> bytes:
    """Read so many bytes."""
    data = b""
    while len(data) < size:
        more = tls.recv(size - len(data))
        if not more:
            raise ConnectionResetError("it closed the connection")
        data += more
    return data
