"""Large buffers reach several nodes over the client's line once: real agents' parts, links that are told what to do."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest

from skyward.engine.nodes import buffer_sharing as sharing, kept_buffers
from skyward.engine.nodes.buffer_sharing import WORTH_SHARING, Sharing
from skyward.engine.nodes.node_link import NodeLink
from skyward.errors import ProtocolError
from skyward.link.frames import Frame, Kind, Parser, encode_json
from skyward.link.messages import BLOB, TASK
from skyward.link.payload import Payload
from skyward.link.transfer_orders import Report, encode_report
from skyward.model.instances.instance import InstanceInfo
from skyward.model.instances.transfer import TransferOutcome
from skyward.node.data.node_store import NodeStore
from skyward.node.data.peer_transfers import PeerTransfers
from tests.engine.nodes.test_node_link import call, kept
from tests.waiting import until_async

SIZE = WORTH_SHARING + 100
DIGEST = b"a".ljust(32, b".")


class Node:
    """
    Be a node at the other end of a link: its part that deals with others is real, what reaches it is told by the test.

    Args:
        index: Its number.
        directory: Of the node.
    """

    def __init__(self, index: int, directory: str) -> None:
        self.index = index
        self.info = InstanceInfo(node=index, private_ip=f"127.0.0.{index + 2}")
        self.link = NodeLink(self)
        self.on_shared: Callable[[Frame | None], None] = lambda _: None
        self.store = NodeStore()
        self.peers = PeerTransfers(asyncio.get_running_loop(), self.store, self.say, directory)
        self.frames: list[Frame] = []
        self.receipts: list[Callable[[], None]] = []
        self.slow = self.mute = self.deaf = False
        self.queued = self.backlog = 0

    # What a link is to the client.

    closed, on_drained, connected = False, None, True

    def send(
        self, frame: bytes, fds: Sequence[int] = (), hold: object = None, receipt: Callable[[], None] | None = None
    ) -> None:
        """Take a frame; while it is slow, nothing that is sent by the client itself arrives."""
        [parsed] = Parser().feed(frame)
        self.frames.append(parsed)
        self.queued += 1
        if self.slow:
            self.backlog += 1
            return
        match parsed.kind:
            case Kind.SERVE | Kind.FETCH if not self.deaf:
                self.peers.take(parsed)
            case Kind.BLOB:
                self.store.add_blob(parsed.body, tuple(os.dup(fd) for fd in fds))
            case Kind.DROP:
                self.store.drop(parsed.body)
            case Kind.TASK if parsed.fds == 0:
                # As the agent does: what a task names is there.
                self.store.stored(parsed.body, TASK.size)
        if receipt is not None:
            self.receipts.append(receipt)

    def flush(self) -> None:
        """Do nothing."""

    def close(self, error: Exception | None = None) -> None:
        """Be closed."""

    def end(self) -> None:
        """Do nothing."""

    # What the test does.

    def say(self, frame: bytes) -> None:
        """Have the client hear something."""
        if not self.mute:
            self.on_shared(Parser().feed(frame)[0])

    def confirm(self) -> None:
        """Have the client know that everything has arrived."""
        receipts, self.receipts = self.receipts, []
        for receipt in receipts:
            receipt()

    def kinds(self) -> list[str]:
        """Name what was sent here."""
        return [Kind(frame.kind).name for frame in self.frames]

    def has_task(self) -> bool:
        """Tell whether a task came."""
        return "TASK" in self.kinds()

    def die(self) -> None:
        """Be gone, with its machine."""
        self.peers.close()
        self.on_shared(None)


class Engine:
    """Be the loop, as the engine gives it, with a clock that a test puts forward: no wait depends on the machine."""

    def __init__(self) -> None:
        self.loop = self
        self.ahead = 0.0
        self._loop = asyncio.get_running_loop()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    def time(self) -> float:
        """Return its time."""
        return self._loop.time() + self.ahead


@contextlib.asynccontextmanager
async def pool(count: int, **changes: dict[int, Any]) -> AsyncIterator[tuple[Sharing, list[Node]]]:
    """Have nodes that share; changes are attributes by node."""
    with tempfile.TemporaryDirectory() as directory:
        made = [Node(index, directory) for index in range(count)]
        shared = Sharing(Engine())  # type: ignore[arg-type]  # only its loop is asked for
        for node in made:
            for name, values in changes.items():
                setattr(node, name, values.get(node.index, getattr(node, name)))
            shared.join(node)  # type: ignore[arg-type]  # all that it needs of a node
        try:
            yield shared, made
        finally:
            for node in made:
                node.die()


def payload(size: int = SIZE, name: bytes = b"a") -> Payload:
    """Make what calls need: one buffer that nodes keep."""
    return kept(size, name)


def sent(nodes: Sequence[Node]) -> int:
    """Count the bytes of buffers that the client sent."""
    return sum(BLOB.unpack(frame.body)[1] for node in nodes for frame in node.frames if frame.kind == Kind.BLOB)


def test_it_is_sent_to_one_and_fetched_by_the_others() -> None:
    """Each call begins when its node has it; the same a second time costs nothing."""

    async def look() -> None:
        async with pool(4) as (shared, nodes):
            one = payload()
            for node in nodes:
                node.link.send_task(call(payload=one))
            assert ["BLOB", "FUNCTION", "TASK"] == [kind for kind in nodes[0].kinds() if kind != "SERVE"]
            assert not any(node.has_task() for node in nodes[1:])
            nodes[0].confirm()
            await until_async(lambda: all(node.has_task() for node in nodes))
            contents = [node.store.blob(DIGEST) for node in nodes]
            assert all(content is not None and bytes(SIZE) == bytes(content.map()[:SIZE]) for content in contents)
            assert (SIZE, {"client": SIZE, "nodes": 3 * SIZE}) == (sent(nodes), dict(shared.carried))
            for node in nodes:
                node.frames.clear()
                node.link.send_task(call(payload=one))
            assert [["TASK"]] * 4 == [node.kinds() for node in nodes]

    asyncio.run(look())


def test_a_node_that_comes_later_fetches_it_too() -> None:
    """The client's line carries nothing more."""

    async def look() -> None:
        async with pool(2) as (shared, nodes):
            one = payload()
            nodes[0].link.send_task(call(payload=one))
            nodes[0].confirm()
            nodes[1].link.send_task(call(payload=one))
            assert not nodes[1].has_task()
            await until_async(nodes[1].has_task)
            assert SIZE == shared.carried["client"]

    asyncio.run(look())


def test_small_buffers_are_sent_to_each() -> None:
    """A connection would take longer."""

    async def look() -> None:
        async with pool(3) as (shared, nodes):
            one = payload(WORTH_SHARING - 1)
            for node in nodes:
                node.link.send_task(call(payload=one))
            assert [["FUNCTION", "BLOB", "TASK"]] * 3 == [node.kinds() for node in nodes]
            assert not shared.carried

    asyncio.run(look())


def test_a_pool_of_one_node_opens_no_port() -> None:
    """There is no other to hand anything to."""

    async def look() -> None:
        async with pool(1) as (_, [node]):
            node.link.send_task(call(payload=payload()))
            node.confirm()
            await asyncio.sleep(0)
            assert ["BLOB", "FUNCTION", "TASK"] == node.kinds()

    asyncio.run(look())


def test_what_is_said_of_a_call_comes_after_it() -> None:
    """Its items, their end, leave for more and its cancellation; other calls do not wait."""

    async def look() -> None:
        async with pool(2) as (_, [first, second]):
            one = payload()
            first.link.send_task(call(payload=one))
            waiting = call(payload=one)
            second.link.send_task(waiting)
            second.link.send_item(waiting, 0, Payload((), b"x"))
            second.link.send_credit(waiting, 3)
            second.link.send_end(waiting, 0, b"")
            second.link.send_cancel(waiting)
            second.link.send_task(call("g"))
            assert ["FUNCTION", "TASK"] == [kind for kind in second.kinds() if kind != "SERVE"]
            second.frames.clear()
            first.confirm()
            await until_async(lambda: len(second.frames) > 6)
            said = [kind for kind in second.kinds() if kind not in ("SERVE", "FETCH")]
            assert ["FUNCTION", "TASK", "ITEM", "CREDIT", "END", "CANCEL"] == said

    asyncio.run(look())


def test_calls_of_a_function_that_holds_a_large_buffer_wait_too() -> None:
    """The function goes before them, once."""

    async def look() -> None:
        async with pool(2) as (_, [first, second]):
            for node in (first, second):
                for _ in range(2):
                    one = call()
                    one.function.payload = payload()
                    node.link.send_task(one)
            assert not second.has_task()
            first.confirm()
            await until_async(second.has_task)
            assert ["FUNCTION", "TASK", "TASK"] == [kind for kind in second.kinds() if kind not in ("SERVE", "FETCH")]

    asyncio.run(look())


def test_a_call_waits_for_all_that_it_needs() -> None:
    """Two buffers that come from two nodes."""

    async def look() -> None:
        async with pool(3) as (_, nodes):
            for node, name in zip(nodes, (b"a", b"b"), strict=False):
                node.link.send_task(call(payload=payload(name=name)))
            both = call(payload=payload(name=b"a"))
            both.function.payload = payload(name=b"b")
            nodes[2].link.send_task(both)
            nodes[0].confirm()
            await until_async(lambda: nodes[2].link.buffers.has(DIGEST))
            assert not nodes[2].has_task()
            nodes[1].confirm()
            await until_async(nodes[2].has_task)

    asyncio.run(look())


def test_a_task_that_is_too_large_is_refused_before_it_waits() -> None:
    """Not when its buffers are there."""

    async def look() -> None:
        async with pool(2) as (_, [first, second]):
            one = payload()
            first.link.send_task(call(payload=one))
            with pytest.raises(ProtocolError, match="over the limit"):
                second.link.send_task(call(payload=Payload(one.parts, bytes(3 << 20), None, one.stored)))
            first.confirm()
            await until_async(lambda: second.link.buffers.has(DIGEST))
            assert not second.has_task()

    asyncio.run(look())


def test_a_node_that_answers_a_call_that_waits_is_refused() -> None:
    """It cannot have it."""

    async def look() -> None:
        async with pool(2) as (_, [first, second]):
            one, waiting = payload(), call(payload=payload())
            first.link.send_task(call(payload=one))
            second.link.send_task(waiting)
            with pytest.raises(ProtocolError, match=r"answered f\(\), which was not sent to it yet"):
                second.link.answered(waiting)

    asyncio.run(look())


def test_when_the_first_holder_dies_it_is_sent_once_more() -> None:
    """To one of those that wait; the others fetch it from there."""

    async def look() -> None:
        async with pool(4) as (_, nodes):
            one = payload()
            for node in nodes:
                node.link.send_task(call(payload=one))
            nodes[0].die()
            assert nodes[1].has_task()
            nodes[1].confirm()
            await until_async(lambda: all(node.has_task() for node in nodes[1:]))
            assert 2 * SIZE == sent(nodes)

    asyncio.run(look())


def test_a_node_that_is_being_given_back_is_sent_nothing_more() -> None:
    """Neither the buffer nor the calls that waited for it, whatever becomes of other nodes; these are served."""

    async def look() -> None:
        async with pool(3) as (_, [first, second, third]):
            one = payload()
            for node in (first, second, third):
                node.link.send_task(call(payload=one))
            first.link.stop(5.0)
            second.link.stop(5.0)
            first.die()
            assert third.has_task()
            third.confirm()
            await asyncio.sleep(0)
            assert ["STOP"] == [kind for kind in second.kinds() if kind != "SERVE"]

    asyncio.run(look())


def test_a_holder_that_is_gone_by_surprise_costs_a_try() -> None:
    """Its port is closed, and the client does not know it yet."""

    async def look() -> None:
        async with pool(3) as (_, nodes):
            one = payload()
            for node in nodes[:2]:
                node.link.send_task(call(payload=one))
            nodes[0].confirm()
            await until_async(nodes[1].has_task)
            nodes[0].peers.close()
            nodes[1].peers.close()
            nodes[2].link.send_task(call(payload=one))
            await until_async(nodes[2].has_task)
            assert ["FETCH", "FETCH", "BLOB"] == [kind for kind in nodes[2].kinds() if kind in ("FETCH", "BLOB")]

    asyncio.run(look())


def test_a_holder_with_other_bytes_is_believed_nothing() -> None:
    """The checksum is that of what the client would send; from then on another node, or the client, is asked."""

    async def look() -> None:
        async with pool(3) as (_, nodes):
            one = payload()
            nodes[0].link.send_task(call(payload=one))
            nodes[0].confirm()
            segment = nodes[0].store.blob(DIGEST)
            assert segment is not None
            os.pwrite(wrong := os.memfd_create("wrong"), b"x" * SIZE, 0)
            nodes[0].store.add_blob(BLOB.pack(DIGEST, SIZE), (wrong,))
            nodes[1].link.send_task(call(payload=one))
            await until_async(nodes[1].has_task)
            nodes[1].confirm()
            nodes[2].link.send_task(call(payload=one))
            await until_async(nodes[2].has_task)
            assert [["FETCH", "BLOB"], ["FETCH"]] == [
                [kind for kind in node.kinds() if kind in ("FETCH", "BLOB")] for node in nodes[1:]
            ]
            assert all(bytes(SIZE) == bytes(node.store.blob(DIGEST).map()[:SIZE]) for node in nodes[1:])  # type: ignore[union-attr]

    asyncio.run(look())


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at what is under way more often than a test waits."""
    monkeypatch.setattr(sharing, "LOOK", 0.02)


def an_hour_later(shared: Sharing) -> None:
    """Put the clock forward, beyond all that is waited for."""
    shared._engine.ahead += 3600.0  # type: ignore[attr-defined]  # it is ours


async def until_open(shared: Sharing, nodes: Sequence[Node]) -> None:
    """Wait until nodes have told their ports."""
    ports = {supply.shell.index: supply for supply in shared._supplies.values()}
    await until_async(lambda: all(ports[node.index].port for node in nodes))


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("bytes_at_a_time", [0, 100], ids=["stands still", "trickles"])
def test_what_makes_no_progress_is_not_waited_for(bytes_at_a_time: int) -> None:
    """Where hardly anything gets through to the first node, the next one is sent it."""

    async def look() -> None:
        async with pool(3, slow={0: True}) as (shared, nodes):
            one = payload()
            for node in nodes:
                node.link.send_task(call(payload=one))
            await until_open(shared, nodes[1:])
            an_hour_later(shared)

            def next_has_it() -> bool:
                nodes[0].queued += bytes_at_a_time
                return nodes[1].has_task()

            await until_async(next_has_it)
            nodes[1].confirm()
            await until_async(nodes[2].has_task)
            assert 2 * SIZE == sent(nodes)

    asyncio.run(look())


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("how", ["deaf", "mute"])
def test_a_node_that_says_nothing_is_sent_it(how: str) -> None:
    """It neither serves nor fetches, as far as the client knows."""

    async def look() -> None:
        async with pool(3, **{how: {1: True}}) as (shared, nodes):
            one = payload()
            for node in nodes:
                node.link.send_task(call(payload=one))
            nodes[0].confirm()
            await until_async(nodes[2].has_task)
            an_hour_later(shared)
            await until_async(lambda: all(node.has_task() for node in nodes))
            assert "BLOB" in nodes[1].kinds()
            assert "BLOB" not in nodes[2].kinds()

    asyncio.run(look())


@pytest.mark.usefixtures("hasty")
def test_a_late_word_about_a_transfer_that_was_given_up_counts_for_nothing() -> None:
    """The client has sent the buffer meanwhile."""

    async def look() -> None:
        async with pool(2, mute={1: True}) as (shared, [first, second]):
            one = payload()
            for node in (first, second):
                node.link.send_task(call(payload=one))
            first.confirm()
            await until_async(lambda: "FETCH" in second.kinds())
            an_hour_later(shared)
            await until_async(lambda: "BLOB" in second.kinds())
            second.mute = False
            for number in (1, 2, 77):
                second.say(encode_report(Report(number, TransferOutcome.OK, 1.0, "")))
            assert 2 * SIZE == shared.carried["client"]
            assert not shared.carried["nodes"]

    asyncio.run(look())


@pytest.mark.parametrize("said", [{"why": "no OpenSSL"}, {"port": 0}, {"port": "x"}, {}])
def test_a_node_that_cannot_serve_takes_no_part(said: dict[str, Any]) -> None:
    """What it has, the others are sent by the client."""

    async def look() -> None:
        async with pool(2, deaf={0: True}) as (_, nodes):
            one = payload()
            for node in nodes:
                node.link.send_task(call(payload=one))
            nodes[0].confirm()
            await until_async(lambda: "SERVE" in nodes[0].kinds())
            nodes[0].say(encode_json(Kind.SERVING, said))
            await until_async(nodes[1].has_task)
            assert "BLOB" in nodes[1].kinds()

    asyncio.run(look())


def test_where_nothing_can_be_prepared_the_client_sends_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate that cannot be made stops no call."""

    def fails() -> None:
        raise RuntimeError("no randomness")

    async def look() -> None:
        async with pool(3) as (_, nodes):
            one = payload()
            for node in nodes:
                node.link.send_task(call(payload=one))
            await until_async(lambda: all(node.has_task() for node in nodes))
            assert 3 * SIZE == sent(nodes)

    monkeypatch.setattr(sharing, "make_certificate", fails)
    asyncio.run(look())


def test_what_a_node_drops_it_holds_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """When it needs it again it fetches it; the client keeps nothing of it meanwhile."""
    monkeypatch.setattr(kept_buffers, "KEPT_BYTES", 3 * SIZE // 2)

    async def look() -> None:
        async with pool(2) as (shared, [first, second]):
            one, other = payload(name=b"a"), payload(name=b"b")
            for node in (first, second):
                node.link.send_task(call(payload=one))
                node.confirm()
            await until_async(second.has_task)
            first.link.send_task(call(payload=other))
            first.confirm()
            assert (None, False) == (first.store.blob(DIGEST), first.link.buffers.has(DIGEST))
            first.frames.clear()
            first.link.send_task(call(payload=one))
            await until_async(first.has_task)
            assert "BLOB" not in first.kinds()
            assert 2 * SIZE == shared.carried["client"]
            assert {DIGEST: None} == {name: blob.segment for name, blob in shared._blobs.items()}

    asyncio.run(look())


def test_a_call_that_needs_more_than_a_node_keeps_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one part of it takes the place of is never another part."""
    monkeypatch.setattr(kept_buffers, "KEPT_BYTES", 3 * SIZE // 2)

    async def look() -> None:
        async with pool(3) as (shared, nodes):
            for node, name in zip(nodes, (b"a", b"b"), strict=False):
                node.link.send_task(call(payload=payload(name=name)))
                node.confirm()
            both = call(payload=payload(name=b"a"))
            both.function.payload = payload(name=b"b")
            nodes[2].link.send_task(both)
            await until_async(nodes[2].has_task)
            assert ["FETCH", "FETCH", "FUNCTION", "TASK"] == [kind for kind in nodes[2].kinds() if kind != "SERVE"]
            assert 2 * SIZE == shared.carried["client"]

    asyncio.run(look())


def test_nothing_is_remembered_of_what_no_node_has() -> None:
    """Nodes come and go."""

    async def look() -> None:
        async with pool(2) as (shared, nodes):
            for node in nodes:
                node.link.send_task(call(payload=payload()))
            nodes[0].confirm()
            await until_async(nodes[1].has_task)
            for node in nodes:
                node.die()
            assert ({}, {}, {}) == (shared._blobs, shared._supplies, shared._transfers)

    asyncio.run(look())
