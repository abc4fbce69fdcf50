"""An agent's dealings with the other nodes of its pool: it hands stored buffers on, and fetches them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from skyward.errors import ProtocolError
from skyward.link.frames import Frame, Kind, decode_json, encode, encode_json
from skyward.link.messages import BLOB
from skyward.link.segment import Segment
from skyward.link.transfer_orders import Report, TransferOrder, decode_transfer_order, encode_report
from skyward.model.instances.transfer import TransferOutcome
from skyward.node.data.node_store import NodeStore
from skyward.node.data.peer_fetch import FetchError, Fetching
from skyward.node.data.peer_server import PeerListener, listening
from skyward.node.data.pool_tls import Contexts, contexts

_log = logging.getLogger(__name__)

AT_ONCE = 4
"""Buffers that a node fetches at a time, each in a thread; more fill no line that these do not."""

_MOST_ORDERS = 4096
"""PeerTransfers that wait, or are under way."""


class PeerTransfers:
    """
    Serve other nodes, and fetch from them, as the client says.

    Args:
        loop: The agent's loop.
        store: What the node keeps.
        tell: Takes frames for the client.
        directory: The node's directory.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, store: NodeStore, tell: Callable[..., None], directory: str
    ) -> None:
        self._loop = loop
        self._store = store
        self._tell = tell
        self._directory = directory
        self._joining: asyncio.Task[Contexts] | None = None
        self._door: PeerListener | None = None
        self._orders: dict[bytes, tuple[TransferOrder, asyncio.Task[None]]] = {}
        self._turns = asyncio.Semaphore(AT_ONCE)
        self.closed = False
        # What the client sends by itself, or drops, is not fetched any more.
        store.on_said = self.abandon

    def take(self, frame: Frame) -> None:
        """
        Take a SERVE, a FETCH or a GIVE frame.

        Raises:
            ProtocolError: If it makes no sense.
        """
        if frame.kind == Kind.SERVE:
            self._serve(decode_json(frame.body))
        elif frame.kind == Kind.GIVE:
            self._give(frame.body)
        else:
            self._fetch(decode_transfer_order(frame.body))

    def _give(self, name: bytes) -> None:
        """Send the client a buffer that a task put, or say that it is not here."""
        segment = self._store.blob(name)
        if segment is None:
            self._tell(encode(Kind.DROP, name[:32]))
        else:
            self._tell(encode(Kind.BLOB, BLOB.pack(name, segment.size), fds=1), (segment.fd,), segment)

    def abandon(self, name: bytes) -> None:
        """Fetch a buffer no more."""
        _, task = self._orders.pop(name, (None, None))
        if task is not None:
            task.cancel()

    def close(self) -> None:
        """End everything."""
        self.closed = True
        for name in list(self._orders):
            self.abandon(name)
        if self._joining is not None:
            self._joining.cancel()
        if self._door is not None:
            self._door.close()

    # Serving.

    def _serve(self, terms: dict[str, Any]) -> None:
        texts = [terms.get(name) for name in ("address", "certificate", "key")]
        if self._joining is not None or not all(isinstance(text, str) for text in texts):
            raise ProtocolError("A SERVE frame came twice, or lacks address, certificate or key.")
        self._joining = self._loop.create_task(self._join(*map(str, texts)))
        self._joining.add_done_callback(self._joined)

    async def _join(self, address: str, certificate: str, key: str) -> Contexts:
        # In a thread, because OpenSSL is loaded for it.
        made = await asyncio.to_thread(contexts, certificate, key, self._directory)
        self._door = PeerListener(self._loop, made.listening, listening(address), self._store.blob)
        self._tell(encode_json(Kind.SERVING, {"port": self._door.port}))
        return made

    def _joined(self, task: asyncio.Task[Contexts]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None and not self.closed:
            _log.warning("peer.not_serving reason=%s: %s", type(error).__name__, error)
            self._tell(encode_json(Kind.SERVING, {"why": f"{type(error).__name__}: {error}"[:500]}))

    # Fetching.

    def _fetch(self, order: TransferOrder) -> None:
        self.abandon(order.name)
        if self._store.blob(order.name) is not None:
            self._tell(encode_report(Report(order.number, TransferOutcome.OK, 0.0, "")))
            return
        if self._joining is None:
            raise ProtocolError("A FETCH frame came before SERVE.")
        if len(self._orders) >= _MOST_ORDERS:
            self._tell(encode_report(Report(order.number, TransferOutcome.UNABLE, 0.0, "too many others wait")))
            return
        if not self._store.make_room(order.name, order.size):
            self._tell(
                encode_report(Report(order.number, TransferOutcome.UNABLE, 0.0, self._store.refused[order.name]))
            )
            return
        task = self._loop.create_task(self._run(order))
        self._orders[order.name] = order, task

    async def _run(self, order: TransferOrder) -> None:
        began = time.monotonic()
        outcome, why = TransferOutcome.OK, ""
        try:
            async with self._turns:
                segment = await self._fetched(order)
        except FetchError as error:
            outcome, why = error.outcome, str(error)
        except Exception as error:
            outcome, why = TransferOutcome.UNABLE, f"{type(error).__name__}: {error}"
        else:
            self._store.keep_blob(order.name, segment)
        self._orders.pop(order.name, None)
        if outcome is not TransferOutcome.OK:
            _log.info("peer.not_fetched source=%s:%s reason=%s", order.host, order.port, why)
        self._tell(encode_report(Report(order.number, outcome, time.monotonic() - began, why)))

    async def _fetched(self, order: TransferOrder) -> Segment:
        """Fetch in a thread; one that is not waited for any more ends by itself."""
        assert self._joining is not None
        made = await asyncio.shield(self._joining)
        fetching = Fetching(order, made.connecting)
        ended: asyncio.Future[Segment] = self._loop.create_future()

        def settle(segment: Segment | None, error: BaseException | None) -> None:
            if ended.done():
                return
            if segment is not None:
                ended.set_result(segment)
            elif error is not None:
                ended.set_exception(error)

        def work() -> None:
            segment, failed = None, None
            try:
                segment = fetching.run()
            except BaseException as error:
                failed = error
            # An agent that is at its end listens to none of this.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(settle, segment, failed)

        threading.Thread(target=work, name="skyward-fetch", daemon=True).start()
        try:
            return await ended
        finally:
            fetching.abandon()
