"""The client's end of one node: what it was sent already, and what it has to answer."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from skyward.engine.nodes.buffer_supply import StoredBuffers, stored_of
from skyward.engine.nodes.kept_buffers import KeptBuffers
from skyward.engine.nodes.outflow import Outflow
from skyward.errors import ProtocolError
from skyward.link.absent import Absent
from skyward.link.channel import Link
from skyward.link.frames import Kind, encode, encode_json
from skyward.link.messages import (
    CALL,
    CANCEL,
    CREDIT,
    FUNCTION_DIGEST,
    ITEM,
    RECALL,
    TASK,
    CancelReason,
    TaskFlag,
)
from skyward.link.payload import Payload
from skyward.link.transfer_orders import TransferOrder, encode_transfer_order

if TYPE_CHECKING:
    from skyward.engine.calls.call import Call, CapturedFunction
    from skyward.engine.instances.detached_records import LeftCall
    from skyward.engine.nodes.sent_call import SentCall

KEPT_FUNCTIONS = 512
"""How many functions a node keeps."""

ASKED_AGAIN = 64
"""How much more often a node may ask for the members than it was sent a change; an honest one asks once."""

UNREAD = 1 << 20
"""How many bytes of calls a node may have answered beyond those that it has taken; an honest one has none."""


class _Waiting(NamedTuple):
    """A call that waits at the client for buffers, and the frames about it that come after it."""

    call: Call
    missing: set[bytes]
    held: bool
    later: list[tuple[bytes, Sequence[int], object, Callable[[], None] | None]]


class NodeLink:
    """
    Send frames to one node, each function and each kept buffer once.

    Args:
        channel: The connection to its agent.
        data: Whether what the node sends is opened as data.
        post: Has something done in the loop soon; what this client releases is dropped with the next call without it.
    """

    def __init__(
        self, channel: Link, *, data: bool = False, post: Callable[[Callable[[], None]], object] | None = None
    ) -> None:
        self._channel = channel
        self._flags = TaskFlag.DATA if data else 0
        self._functions: OrderedDict[bytes, None] = OrderedDict()
        self._post = post
        self.buffers = KeptBuffers(channel, post)
        self._members = self._sent_versions = self._asked = self._roster = 0
        self._answered = 0
        self._waiting: dict[int, _Waiting] = {}
        self.outflow = Outflow()
        # Called with a call that needs what is lost, and what to say.
        self.on_lacking: Callable[[Call, str], None] = lambda *_: None

    @property
    def passed(self) -> int:
        """Count the bytes that the connection has taken."""
        return self._channel.queued - self._channel.backlog

    def send_task(self, call: Call, *, held: bool = False) -> None:
        """
        Send a call, and before it whatever it needs that the node does not have.

        Args:
            call: The call.
            held: Whether what it needs was kept in its lane before.
        """
        function, payload = call.function, call.payload
        if (payload.stored or function.payload.stored) and self._waits(call, held=held):
            return
        # What goes before it counts as well: the call is not answered until that was read.
        before = self._channel.queued
        if function.digest not in self._functions:
            self._send_function(function)
        else:
            self._functions.move_to_end(function.digest)
        flags = self._flags | (TaskFlag.STREAM if call.streams else 0) | (TaskFlag.HELD if held else 0)
        if payload.stored:
            self._send_buffers(payload)
            flags |= TaskFlag.STORED
        head = TASK.pack(call.id, call.timeout, call.members, call.broadcast, flags, function.digest)
        body = head + payload.encode()
        segment = payload.segment
        if segment is None:
            self._channel.send(encode(Kind.TASK, body, lane=call.lane))
        else:
            self._channel.send(encode(Kind.TASK, body, lane=call.lane, fds=1), (segment.fd,), segment)
        call.sent = self._channel.queued - before

    def _waits(self, call: Call, *, held: bool) -> bool:
        """Send what a call needs to the node, and return whether it has to wait for that."""
        wanted = [stored for stored in stored_of(call) if not self.buffers.has(stored.name)]
        missing: set[bytes] = set()
        absent = []
        if wanted:
            absent = [
                stored.segment for stored in wanted if isinstance(stored.segment, Absent) and stored.segment.fd < 0
            ]
            if self.buffers.supply is not None:
                missing = self.buffers.supply.missing(wanted)
                # Other nodes may have it, or it is here by now.
                absent = [segment for segment in absent if segment.name not in missing and segment.fd < 0]
            missing.update(segment.name for segment in absent)
        if missing:
            # What is too large for a frame is refused now, and not when its buffers are there.
            encode(Kind.TASK, bytes(TASK.size) + call.payload.encode())
            self._waiting[call.id] = _Waiting(call, missing, held, [])
        for segment in absent:
            # After this, because a call that fails is answered once it was sent.
            self._soon(partial(self.bring, segment, lambda: None))
        return bool(missing)

    def unsent(self, call: Call) -> bool:
        """Return whether a call waits here for buffers."""
        return call.id in self._waiting

    def answered(self, call: SentCall) -> None:
        """
        Record that the node answered a call that it was sent, or returned it.

        Raises:
            ProtocolError: If it cannot have read what it answers: its answers make room for calls without end, whose
                arguments would wait here for ever, and what it returns is sent once more each time.
        """
        if call.id in self._waiting:
            raise ProtocolError(f"A node answered {call.function.name}(), which was not sent to it yet.")
        self._answered += call.sent
        unread = self._answered + self._channel.backlog - self._channel.queued
        if unread > UNREAD:
            raise ProtocolError(f"A node answered {call.function.name}() with {unread} bytes of its calls yet to take.")

    def send_members(self, version: int, membership: dict[str, Any]) -> None:
        """Send the node the members, once a version."""
        if self._members != version:
            self._members = version
            self._sent_versions += 1
            self._channel.send(encode_json(Kind.MEMBERS, membership))

    def send_peers(self, version: int, since: Callable[[int, int], bytes]) -> None:
        """
        Send the node the members of a version, because it asks.

        Args:
            version: The version.
            since: Returns the frame for a node that knows a version, 0 for none, and asks for another.

        Raises:
            ProtocolError: If it asks on and on.
        """
        self._asked += 1
        if self._asked > self._sent_versions + ASKED_AGAIN:
            raise ProtocolError(
                f"A node asked {self._asked} times for the members, and was sent {self._sent_versions} versions."
            )
        self._channel.send(since(self._roster, version))
        self._roster = version

    def send_item(self, call: Call, stream: int, payload: Payload) -> None:
        """Send an item of an input stream."""
        body = ITEM.pack(call.id, stream) + payload.encode()
        frame = encode(Kind.ITEM, body, lane=call.lane, fds=len(payload.fds))
        self._about(call, frame, payload.fds, payload, self.outflow.sent(payload.size))

    def send_kept(self, lane: int, body: bytes, payload: Payload, read: Callable[[], None]) -> None:
        """Send a lane an answer about kept files; `read` is called when the node has it."""
        self._channel.send(encode(Kind.KEEP, body, lane=lane, fds=len(payload.fds)), payload.fds, payload, read)

    def send_end(self, call: Call, stream: int, failure: bytes) -> None:
        """Send the end of an input stream, or the failure in its place."""
        self._about(call, encode(Kind.END, ITEM.pack(call.id, stream) + failure, lane=call.lane))

    def send_credit(self, call: Call, items: int) -> None:
        """Allow the node to send more items."""
        self._about(call, encode(Kind.CREDIT, CREDIT.pack(call.id, 0, items), lane=call.lane))

    def send_cancel(self, call: SentCall | LeftCall) -> None:
        """Order the node to stop a call."""
        self._about(call, encode(Kind.CANCEL, CANCEL.pack(call.id, CancelReason.ASKED), lane=call.lane))

    def ask(self, question: dict[str, Any]) -> None:
        """Ask the agent something."""
        self._channel.send(encode_json(Kind.ASK, question))

    def recall(self, lane: int, keep: int) -> None:
        """Ask a lane for what it has not begun, but for the next so many calls."""
        self._channel.send(encode(Kind.RECALL, RECALL.pack(keep), lane=lane))

    def send_store(self, body: bytes) -> None:
        """Send the node what there is to say about the store of the collections."""
        self._channel.send(encode(Kind.STORE, body))

    def send_files(self, files: Payload) -> None:
        """Send local modules: their paths as JSON, then the content of each."""
        self._channel.send(encode(Kind.FILES, files.encode(), fds=len(files.fds)), files.fds, files)

    def acknowledge_log(self, size: int) -> None:
        """Acknowledge so many bytes of lines and events."""
        self._channel.send(encode(Kind.LOG_READ, CALL.pack(size)))

    def greet(self, version: int, addresses: Sequence[str | None] = ()) -> None:
        """Send the agent the protocol that this client speaks, and the addresses that its machine is reached at."""
        self._channel.send(encode_json(Kind.HELLO, {"version": version, "addresses": addresses}))

    def start(self, config: dict[str, Any], plugins_pickle: bytes) -> None:
        """Send the agent the node that it is of."""
        text = json.dumps(config).encode()
        self._channel.send(encode(Kind.START, len(text).to_bytes(4, "little") + text + plugins_pickle))

    def refresh(self) -> None:
        """Restart the workers."""
        self._channel.send(encode(Kind.REFRESH))

    def stop(self, grace: float) -> None:
        """Order the node to leave in good order within so many seconds; nothing waits for it any more."""
        self._waiting.clear()
        if self.buffers.supply is not None:
            self.buffers.supply.left()
            self.buffers.supply = None
        self._channel.send(encode_json(Kind.STOP, {"grace": grace}))

    def close(self) -> None:
        """Close the link at once."""
        self._channel.close()

    def refuse(self, error: Exception) -> None:
        """Close the link of a node that does what no node may."""
        self._channel.close(error)

    # What other nodes may have.

    def serve(self, address: str, certificate: str, key: str) -> None:
        """Order the node to serve what it keeps to others of its pool, and send it what it takes to fetch from them."""
        self._channel.send(encode_json(Kind.SERVE, {"address": address, "certificate": certificate, "key": key}))

    def fetch(self, order: TransferOrder) -> None:
        """Order the node to fetch a buffer from another one."""
        self._channel.send(encode_transfer_order(order))

    def upload(self, stored: StoredBuffers, landed: Callable[[], None]) -> None:
        """
        Send a buffer to the node, and what has waited for it.

        Args:
            stored: The buffer.
            landed: Called when the node has it.
        """
        self.buffers.upload(stored, landed)
        self._evict(stored.name)
        self._release(stored.name)

    def arrived(self, stored: StoredBuffers) -> None:
        """Record that the node has a buffer from elsewhere, and send what has waited for it."""
        self.buffers.note(stored)
        self._evict(stored.name)
        self._release(stored.name)

    def forgot(self, name: bytes) -> None:
        """Record that the node has a function or a buffer no longer: it is sent again with the next call of it."""
        self._functions.pop(name, None)
        self.buffers.forgot(name)

    def give(self, name: bytes) -> None:
        """Order the node to send what a task put."""
        self._channel.send(encode(Kind.GIVE, name))

    def _soon(self, do: Callable[[], None]) -> None:
        if self._post is None:
            do()
        else:
            self._post(do)

    def bring(self, absent: Absent, landed: Callable[[], None]) -> None:
        """
        Send on what another node has, once it is here, or say of which calls it is that it does not come.

        Args:
            absent: What stands for it.
            landed: Called when the node has it.
        """
        absent.fetch(partial(self._fetched, absent, landed))

    def _fetched(self, absent: Absent, landed: Callable[[], None], why: str) -> None:
        if self._channel.closed:
            return
        if not why:
            self.upload(StoredBuffers(absent.name, absent.size, absent), landed)
            return
        if self.buffers.supply is not None:
            self.buffers.supply.dropped(absent.name)
        for waiting in [waiting for waiting in self._waiting.values() if absent.name in waiting.missing]:
            del self._waiting[waiting.call.id]
            self.on_lacking(waiting.call, why)

    def _release(self, name: bytes) -> None:
        for waiting in [waiting for waiting in self._waiting.values() if name in waiting.missing]:
            waiting.missing.discard(name)
            if not waiting.missing:
                # It counts as waiting until it is sent, so that nothing it needs is dropped for another part of it.
                self.send_task(waiting.call, held=waiting.held)
                del self._waiting[waiting.call.id]
                for later in waiting.later:
                    self._channel.send(*later)

    def _about(
        self,
        call: SentCall | LeftCall,
        frame: bytes,
        fds: Sequence[int] = (),
        hold: object = None,
        receipt: Callable[[], None] | None = None,
    ) -> None:
        """Send a frame about a call, after the call itself."""
        waiting = self._waiting.get(call.id) if self._waiting else None
        if waiting is None:
            self._channel.send(frame, fds, hold, receipt)
        else:
            waiting.later.append((frame, fds, hold, receipt))

    def _send_function(self, function: CapturedFunction) -> None:
        payload = function.payload
        if payload.stored:
            self._send_buffers(payload)
        self._functions[function.digest] = None
        fds = payload.fds
        self._channel.send(encode(Kind.FUNCTION, function.body, fds=len(fds)), fds, payload)
        while len(self._functions) > KEPT_FUNCTIONS:
            digest, _ = self._functions.popitem(last=False)
            self._channel.send(encode(Kind.DROP, digest[:FUNCTION_DIGEST]))

    def _send_buffers(self, payload: Payload) -> None:
        self.buffers.send(payload)
        self._evict(*(part.digest for part in payload.parts))

    def _evict(self, *needed: bytes) -> None:
        """Order the node to drop what it keeps too much, but for what is needed now or waited for."""
        if self.buffers.too_many:
            waiting = (stored.name for waiting in self._waiting.values() for stored in stored_of(waiting.call))
            self.buffers.evict({*needed, *waiting})
