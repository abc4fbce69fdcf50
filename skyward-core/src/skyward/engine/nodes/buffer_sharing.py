"""Large buffers that several nodes of one network need: sent to one of them, and fetched by node from node."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import logging
from collections import Counter
from collections.abc import Coroutine, Iterable
from functools import partial
from typing import TYPE_CHECKING

from attrs import evolve

from skyward.blocking import in_thread
from skyward.engine.nodes.buffer_supply import StoredBuffers
from skyward.engine.nodes.membership import address
from skyward.engine.nodes.pool_certificate import PoolCertificate, make_certificate
from skyward.engine.pool.event_loop import EngineLoop
from skyward.errors import ProvisionError
from skyward.link.absent import Absent
from skyward.link.frames import Frame, Kind, decode_json
from skyward.link.transfer_orders import TransferOrder, decode_report
from skyward.model.instances.transfer import TransferOutcome
from skyward.node.data.peer_fetch import SLOWEST
from skyward.plan.pool.spreading import CLIENT, Copies, Fetch, Move, Roads, decide

if TYPE_CHECKING:
    from skyward.engine.nodes.node_link import NodeLink
    from skyward.engine.nodes.node_shell import NodeShell
    from skyward.link.segment import Segment

_log = logging.getLogger(__name__)

_SHA256 = 32

WORTH_SHARING = 4 << 20
"""Buffers from this size on, in bytes, are passed on: a smaller one is sent before a connection would be made."""

STALL = 10.0
"""Seconds with too little progress after which a transfer is given up, or not waited for any more."""

LEAST = 64 << 10
"""Bytes a second that the client's line to a node carries at least, if others are to wait for what goes over it."""

SERVES_WITHIN = 10.0
"""Seconds that a node has to open its port."""

CHECKSUM_WITHIN = 10.0
"""Seconds in which a node says the checksum of what a task put there, and beyond them as long as a fetch may take."""

LOOK = 1.0
"""Seconds between two looks at what is under way."""


class Supply:
    """
    Get large buffers to one node, as its link asks for them.

    Args:
        sharing: What the nodes of its network have.
        number: The node's number there.
        shell: The node.
        link: Its link.
    """

    def __init__(self, sharing: Sharing, number: int, shell: NodeShell, link: NodeLink) -> None:
        self.number = number
        self.shell = shell
        self.link = link
        self.port = 0
        self.asked_at: float | None = None
        self.passed = 0
        self.moved_at = 0.0
        self._sharing = sharing

    def missing(self, wanted: Iterable[StoredBuffers]) -> set[bytes]:
        """
        Send buffers to the node, and return those that it has to wait for.

        Args:
            wanted: What a call needs and the node does not have.
        """
        large = [stored for stored in wanted if stored.size >= WORTH_SHARING]
        return self._sharing.want(self, [stored for stored in large if self._sharing.has(stored)])

    def dropped(self, name: bytes) -> None:
        """Record that the node was ordered to drop a buffer."""
        self._sharing.dropped(self, name)

    def left(self) -> None:
        """Record that the node is being drained."""
        self._sharing.left(self)


class _Blob:
    """One buffer: where its copies are; its content while a node may have to get it from here."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.copies = Copies()
        self.segment: Segment | None = None
        self.checksum = b""
        self.hashing = False


class _Transfer:
    """A fetch under way."""

    def __init__(self, name: bytes, node: int, source: int, until: float) -> None:
        self.name = name
        self.node = node
        self.source = source
        self.until = until


class Sharing:
    """
    Spread large buffers over the nodes of one network; lives in the engine's loop.

    Args:
        engine: The loop.
    """

    def __init__(self, engine: EngineLoop) -> None:
        self._engine = engine
        self._numbers = itertools.count()
        self._orders = itertools.count(1)
        self._supplies: dict[int, Supply] = {}
        self._blobs: dict[bytes, _Blob] = {}
        self._transfers: dict[int, _Transfer] = {}
        self._roads = Roads()
        self._certificate: PoolCertificate | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._looking = False
        self._deciding = self._undecided = False
        self.carried: Counter[str] = Counter()
        """Bytes of large buffers that went over the client's line, and from node to node."""

    def join(self, shell: NodeShell) -> None:
        """Add a node, whose agent answers."""
        if shell.link is None:
            return
        supply = Supply(self, next(self._numbers), shell, shell.link)
        self._supplies[supply.number] = supply
        shell.link.buffers.supply = supply
        shell.on_shared = partial(self._heard, supply)

    # What links ask for.

    def has(self, stored: StoredBuffers) -> bool:
        """Return whether a buffer is here, or at a node of this network."""
        return stored.segment.fd >= 0 or bool(self._holders(stored.name))

    def _holders(self, name: bytes) -> tuple[int, ...]:
        return tuple(number for number, supply in self._supplies.items() if supply.link.buffers.has(name))

    def want(self, supply: Supply, wanted: Iterable[StoredBuffers]) -> set[bytes]:
        """Send buffers to a node, and return those that are not on the client's line to it already."""
        names = set()
        for stored in wanted:
            names.add(stored.name)
            blob = self._blobs.setdefault(stored.name, _Blob(stored.size))
            if stored.segment.fd < 0 and not blob.copies.holders:
                # A task put it there.
                blob.copies = evolve(blob.copies, holders=self._holders(stored.name))
            blob.segment = stored.segment
            blob.copies = blob.copies.lost(supply.number).want(supply.number)
        if names:
            self._decide()
        return {name for name in names if not supply.link.buffers.has(name)}

    def dropped(self, supply: Supply, name: bytes) -> None:
        """Record that a node has a buffer no more."""
        if (blob := self._blobs.get(name)) is not None:
            blob.copies = blob.copies.without(supply.number)
            self._tidy(name, blob)

    # What nodes say.

    def _heard(self, supply: Supply, frame: Frame | None) -> None:
        """Take a frame of a node's, or None for its end."""
        if frame is None:
            self.left(supply)
        elif frame.kind == Kind.SERVING:
            said = decode_json(frame.body)
            port = said.get("port")
            if isinstance(port, int) and 0 < port < 65536:
                supply.port = port
            else:
                self._apart(supply, str(said.get("why"))[:300])
        else:
            report = decode_report(frame.body)
            transfer = self._transfers.get(report.number)
            # One that was given up may still say how it ended.
            if transfer is None or transfer.node != supply.number:
                return
            if report.outcome is TransferOutcome.OK:
                _log.debug("buffer.fetched node=%s seconds=%.3f", supply.shell.index, report.seconds)
            else:
                _log.info("buffer.not_fetched node=%s reason=%s", supply.shell.index, report.why)
            self._ended(report.number, report.outcome)
        self._decide()

    def left(self, supply: Supply) -> None:
        """Remove a node; where others waited for it, that is decided about at the next look."""
        self._supplies.pop(supply.number, None)
        for number, transfer in list(self._transfers.items()):
            if transfer.node == supply.number:
                del self._transfers[number]
        for name, blob in list(self._blobs.items()):
            blob.copies = blob.copies.without(supply.number)
            self._tidy(name, blob)

    def _apart(self, supply: Supply, why: str) -> None:
        _log.info("buffers.not_shared node=%s reason=%s", supply.shell.index, why)
        self._roads = self._roads.without(supply.number)

    def _landed(self, supply: Supply, name: bytes) -> None:
        """Record that a node has what the client sent to it."""
        blob = self._blobs.get(name)
        if blob is not None and supply.number in self._supplies and supply.link.buffers.has(name):
            blob.copies = blob.copies.landed(supply.number)
            self._tidy(name, blob)
            self._decide()

    def _ended(self, number: int, outcome: TransferOutcome) -> None:
        transfer = self._transfers.pop(number)
        self._roads = self._roads.learn(transfer.source, transfer.node, outcome)
        blob, supply = self._blobs[transfer.name], self._supplies[transfer.node]
        if outcome is TransferOutcome.OK:
            self.carried["nodes"] += blob.size
            blob.copies = blob.copies.landed(transfer.node)
            if blob.segment is not None:
                supply.link.arrived(StoredBuffers(transfer.name, blob.size, blob.segment))
            self._tidy(transfer.name, blob)
        else:
            blob.copies = blob.copies.failed(transfer.node, outcome)

    def _tidy(self, name: bytes, blob: _Blob) -> None:
        if blob.copies.settled:
            blob.segment = None
            if not blob.copies.holders:
                self._blobs.pop(name, None)

    # What follows.

    def _decide(self) -> None:
        # What a move sends may make a link drop or want something, which comes back here.
        self._undecided = True
        if self._deciding:
            return
        self._deciding = True
        try:
            while self._undecided:
                self._undecided = False
                for name, blob in list(self._blobs.items()):
                    if blob.copies.wanted:
                        self._decide_about(name, blob)
        finally:
            self._deciding = False
        self._watch()

    def _decide_about(self, name: bytes, blob: _Blob) -> None:
        busy = Counter(transfer.source for transfer in self._transfers.values())
        able = {number for number, supply in self._supplies.items() if supply.port} if blob.checksum else set()
        blob.copies, moves = decide(blob.copies, self._roads, able, busy)
        for move in moves:
            self._do(name, blob, move)
        if blob.copies.wanted:
            self._prepare(name, blob)

    def _do(self, name: bytes, blob: _Blob, move: Move) -> None:
        assert blob.segment is not None
        supply, now = self._supplies[move.node], self._engine.loop.time()
        if isinstance(move, Fetch):
            source = self._supplies[move.source]
            number = next(self._orders)
            until = now + 2 * STALL + blob.size / SLOWEST
            self._transfers[number] = _Transfer(name, move.node, move.source, until)
            self._serve(supply)
            host = address(source.shell.info)
            supply.link.fetch(TransferOrder(name, number, blob.size, blob.checksum, host, source.port, STALL))
        else:
            self.carried["client"] += blob.size
            supply.passed, supply.moved_at = supply.link.passed, now
            landed = partial(self._landed, supply, name)
            if isinstance(blob.segment, Absent) and blob.segment.fd < 0:
                self._engine.loop.call_soon(supply.link.bring, blob.segment, landed)
            else:
                supply.link.upload(StoredBuffers(name, blob.size, blob.segment), landed)

    def _prepare(self, name: bytes, blob: _Blob) -> None:
        """Prepare to hand a buffer on, while it is on its way to the first node."""
        if self._certificate is None:
            if not self._tasks:
                self._begin(self._certify())
        else:
            for number in (*blob.copies.holders, *blob.copies.arriving, *blob.copies.wanted):
                if (supply := self._supplies.get(number)) is not None:
                    self._serve(supply)
        if not blob.checksum and not blob.hashing and blob.segment is not None:
            blob.hashing = True
            self._begin(self._hash(name, blob, blob.segment))

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = self._engine.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._over)

    def _over(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # The client sends everything by itself then.
            _log.error("buffers.not_shared reason=%s: %s", type(error).__name__, error)
            self._roads = evolve(self._roads, shut=True)
            self._decide()

    async def _certify(self) -> None:
        self._certificate = await in_thread(make_certificate)
        self._decide()

    async def _hash(self, name: bytes, blob: _Blob, segment: Segment) -> None:
        # Names are not always digests of the content, and what nodes pass on is checked against what was sent.
        if segment.fd >= 0:
            blob.checksum = await in_thread(_checksum, segment, blob.size)
        else:
            await self._ask_for_checksum(name, blob)
        blob.hashing = False
        self._decide()

    async def _ask_for_checksum(self, name: bytes, blob: _Blob) -> None:
        """Ask a node that made a buffer for its checksum: what others pass on has to be what it has."""
        origin = next((self._supplies[number] for number in blob.copies.holders if number in self._supplies), None)
        if origin is None:
            return
        try:
            async with asyncio.timeout(CHECKSUM_WITHIN + blob.size / SLOWEST):
                answer = await origin.shell.ask({"checksum": name.hex()})
            checksum = bytes.fromhex(str(answer.get("checksum")))
        except (TimeoutError, ProvisionError, ValueError):
            checksum = b""
        if len(checksum) == _SHA256:
            blob.checksum = checksum
        else:
            self._apart(origin, "it did not say the checksum of what a task put there")

    def _serve(self, supply: Supply) -> None:
        """Ask a node to open its port, and send it what connections take."""
        if supply.asked_at is None and self._certificate is not None:
            supply.asked_at = self._engine.loop.time()
            supply.link.serve(address(supply.shell.info), *self._certificate)

    # What makes no progress.

    def _watch(self) -> None:
        if not self._looking and any(blob.copies.wanted or blob.copies.arriving for blob in self._blobs.values()):
            self._looking = True
            self._engine.loop.call_later(LOOK, self._look)

    def _look(self) -> None:
        self._looking = False
        now = self._engine.loop.time()
        for number, transfer in list(self._transfers.items()):
            if now > transfer.until:
                _log.info("buffer.not_fetched node=%s reason=no word in time", transfer.node)
                self._ended(number, TransferOutcome.STALLED)
        uploading = {
            node for blob in self._blobs.values() for node, source in blob.copies.arriving.items() if source == CLIENT
        }
        for supply in [self._supplies[number] for number in uploading]:
            if now - supply.moved_at >= STALL:
                if supply.link.passed - supply.passed < LEAST * (now - supply.moved_at):
                    self._stalled(supply)
                supply.passed, supply.moved_at = supply.link.passed, now
        for supply in self._supplies.values():
            late = supply.asked_at is not None and now - supply.asked_at > SERVES_WITHIN
            if late and not supply.port and supply.number not in self._roads.apart:
                self._apart(supply, f"its port was not open within {SERVES_WITHIN:g} s")
        self._decide()

    def _stalled(self, supply: Supply) -> None:
        """Stop waiting for what the client sends to a node."""
        for blob in self._blobs.values():
            if blob.copies.arriving.get(supply.number) == CLIENT:
                blob.copies = blob.copies.stall(supply.number)


def _checksum(segment: Segment, size: int) -> bytes:
    with segment.map() as content:
        return hashlib.sha256(content[:size]).digest()
