"""An agent fetches what the client says, from where it says, and says how that ended."""

from __future__ import annotations

import asyncio
import itertools
import os
import threading
from typing import Any

import pytest

from skyward.errors import ProtocolError
from skyward.link.frames import Kind, encode, encode_json
from skyward.link.messages import BLOB
from skyward.link.segment import write_segment
from skyward.link.transfer_orders import ANSWER, REQUEST, Report
from skyward.model.instances.transfer import TransferOutcome
from skyward.node.data.peer_transfers import AT_ONCE
from tests.node.data.peering import NAME, Peer, impostor, peers, pool_certificate
from tests.waiting import until_async

CONTENT = os.urandom(3 << 20)


def test_one_hands_on_what_it_has_fetched() -> None:
    """From the first to the last, each from the one before it."""

    async def look() -> None:
        async with peers(4) as all_of_them:
            all_of_them[0].keep(CONTENT)
            for one, other in itertools.pairwise(all_of_them):
                assert TransferOutcome.OK == (await other.fetch(CONTENT, one.address, one.port)).outcome
            assert [CONTENT] * 4 == [peer.content() for peer in all_of_them]
            given = [peer.part._door.given for peer in all_of_them if peer.part._door is not None]
            assert [len(CONTENT)] * 3 + [0] == given

    asyncio.run(look())


def test_several_fetch_from_one_at_once() -> None:
    """Each gets it whole."""

    async def look() -> None:
        async with peers(5) as [one, *others]:
            one.keep(CONTENT)
            reports = await asyncio.gather(*(other.fetch(CONTENT, one.address, one.port) for other in others))
            assert [TransferOutcome.OK] * 4 == [report.outcome for report in reports]
            assert [CONTENT] * 4 == [other.content() for other in others]

    asyncio.run(look())


def test_many_buffers_take_turns() -> None:
    """As many at a time as there are threads for; each is there in the end."""

    async def look() -> None:
        async with peers() as [one, other]:
            names = [number.to_bytes(32, "little") for number in range(70)]
            most = 0
            for number, name in enumerate(names):
                one.keep(CONTENT[:1000], name)
                other.begin(CONTENT[:1000], one.address, one.port, number=number, name=name)
            reports = []
            for _ in names:
                reports.append(await other.report())
                most = max(most, sum(thread.name == "skyward-fetch" for thread in threading.enumerate()))
            assert {(number, TransferOutcome.OK) for number in range(70)} == {report[:2] for report in reports}
            assert all(CONTENT[:1000] == other.content(name) for name in names)
            # One that has just said how it ended may still be on its way out.
            assert most <= 2 * AT_ONCE

    asyncio.run(look())


def test_a_visitor_for_whom_there_is_no_thread_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one is served, and nothing is left of the first."""

    def none_left(thread: threading.Thread) -> None:
        if thread.name == "skyward-peer":
            raise RuntimeError("can't start new thread")
        start(thread)

    start = threading.Thread.start

    async def look() -> None:
        async with peers() as [one, other]:
            one.keep(CONTENT)
            with monkeypatch.context() as patched:
                patched.setattr(threading.Thread, "start", none_left)
                assert TransferOutcome.UNREACHED == (await other.fetch(CONTENT, one.address, one.port)).outcome
            assert TransferOutcome.OK == (await other.fetch(CONTENT, one.address, one.port)).outcome

    asyncio.run(look())


def test_what_is_there_is_not_fetched() -> None:
    """No connection is made for it."""

    async def look() -> Report:
        async with peers(1) as [one]:
            one.keep(CONTENT)
            return await one.fetch(CONTENT, "127.0.0.1", 1)

    assert TransferOutcome.OK == asyncio.run(look()).outcome


@pytest.mark.parametrize("what", ["BLOB", "DROP", "FETCH"])
def test_what_the_client_says_meanwhile_counts(what: str) -> None:
    """What it sends by itself stays, what it drops is gone, and where it names another source that one is asked."""
    asked = threading.Event()

    def stall(tls: Any) -> None:
        tls.recv(REQUEST.size)
        tls.sendall(ANSWER.pack(1, len(CONTENT)))
        asked.set()
        tls.recv(1)

    async def look(port: int) -> None:
        async with peers() as [one, other]:
            one.keep(CONTENT)
            other.begin(CONTENT, "127.0.0.1", port)
            await asyncio.to_thread(asked.wait, 20)
            if what == "FETCH":
                assert (8, TransferOutcome.OK) == (await other.fetch(CONTENT, one.address, one.port, number=8))[:2]
            elif what == "BLOB":
                segment = write_segment([[CONTENT]])
                other.store.add_blob(BLOB.pack(NAME, len(CONTENT)), (os.dup(segment.fd),))
            else:
                other.store.drop(NAME)
            await asyncio.sleep(0)
            assert (None if what == "DROP" else CONTENT) == other.content()
            assert other.said.empty(), "it told of an order that is over"

    with impostor(stall) as port:
        asyncio.run(look(port))


def test_a_node_that_dies_while_it_serves_harms_only_that_transfer() -> None:
    """The other node says so, and fetches it elsewhere."""

    async def look() -> None:
        async with peers(3) as [one, other, third]:
            content = bytes(64 << 20)
            one.keep(content)
            third.keep(content)
            other.begin(content, one.address, one.port)
            door = one.part._door
            assert door is not None
            await until_async(lambda: door.given)
            one.part.close()
            report = await other.report()
            assert TransferOutcome.STALLED == report.outcome
            assert other.content() is None
            assert TransferOutcome.OK == (await other.fetch(content, third.address, third.port)).outcome

    asyncio.run(look())


def test_a_node_that_cannot_serve_says_why() -> None:
    """It fetches nothing then either."""

    async def look(directory: str) -> tuple[dict[str, Any], Report]:
        peer = Peer("127.0.0.2", directory, pool_certificate())
        said = await peer.serve()
        report = await peer.fetch(CONTENT, "127.0.0.1", 1)
        peer.part.close()
        return said, report

    said, report = asyncio.run(look("/nonexistent"))
    assert said["why"].startswith("FileNotFoundError: ")
    assert (TransferOutcome.UNABLE, True) == (report.outcome, report.why.startswith("FileNotFoundError: "))


@pytest.mark.parametrize(
    "frame",
    [
        encode_json(Kind.SERVE, {"address": "127.0.0.1", "certificate": "", "key": ""}),
        encode_json(Kind.SERVE, {"address": 7}),
        encode(Kind.FETCH, b"torn"),
    ],
    ids=["twice", "no certificate", "torn"],
)
def test_frames_that_make_no_sense_are_refused(frame: bytes) -> None:
    """As any are: the link ends then."""

    async def look() -> None:
        async with peers(1) as [one]:
            with pytest.raises(ProtocolError):
                one.take(frame)

    asyncio.run(look())


def test_nothing_is_fetched_before_the_pools_certificate_is_there(tmp_path: Any) -> None:
    """There is nothing to prove to the other node then."""

    async def look() -> None:
        peer = Peer("127.0.0.2", str(tmp_path), pool_certificate())
        with pytest.raises(ProtocolError, match="before SERVE"):
            peer.begin(CONTENT, "127.0.0.1", 1)

    asyncio.run(look())
