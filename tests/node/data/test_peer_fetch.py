"""What a node fetches is what the client means, or is not kept; what is wrong is said in time."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from skyward.link.transfer_orders import ANSWER, REQUEST, Report
from skyward.model.instances.transfer import TransferOutcome
from skyward.node.data import peer_fetch
from tests.node.data.peering import another_certificate, impostor, peers

CONTENT = bytes(range(256)) * (3 << 10)


def fetched(port: int, **options: Any) -> tuple[Report, bytes | None]:
    """Have a node fetch from a port; give what it says and what it keeps."""

    async def look() -> tuple[Report, bytes | None]:
        async with peers(1) as [peer]:
            report = await peer.fetch(CONTENT, "127.0.0.1", port, **options)
            return report, peer.content()

    return asyncio.run(look())


def served(*parts: bytes, stays: bool = False) -> Callable[[Any], None]:
    """Make a source that says what it is given, whatever it is asked for; it may stay until the node leaves."""

    def do(tls: Any) -> None:
        assert REQUEST.size == len(tls.recv(REQUEST.size))
        for part in parts:
            tls.sendall(part)
        if stays:
            tls.recv(1)

    return do


@pytest.mark.parametrize("size", [1, 63, (1 << 20) - 1, 1 << 20, (3 << 20) + 17])
def test_what_is_fetched_is_what_the_other_has(size: int) -> None:
    """Of any size; and it is padded in memory, as payloads expect."""

    async def look() -> tuple[TransferOutcome, bytes | None]:
        content = (CONTENT * 8)[:size]
        async with peers() as [one, other]:
            one.keep(content)
            report = await other.fetch(content, one.address, one.port)
            segment = other.store.blob(b"n" * 32)
            assert segment is not None
            segment.expect((size + 63) // 64 * 64)
            segment.size = size
            assert content == other.content()
            return report.outcome, None

    assert (TransferOutcome.OK, None) == asyncio.run(look())


@pytest.mark.parametrize(
    ("parts", "outcome", "why"),
    [
        ([ANSWER.pack(1, len(CONTENT)), CONTENT[:-1] + b"x"], TransferOutcome.WRONG, "another checksum"),
        ([ANSWER.pack(1, len(CONTENT) + 1), CONTENT], TransferOutcome.WRONG, "bytes of it, and not"),
        ([ANSWER.pack(0, 0)], TransferOutcome.GONE, "does not have it"),
        ([ANSWER.pack(1, len(CONTENT)), CONTENT[:1000]], TransferOutcome.STALLED, "ended after 1000 of"),
        ([b"\1"], TransferOutcome.UNREACHED, "does not answer"),
        ([], TransferOutcome.UNREACHED, "does not answer"),
    ],
    ids=["other bytes", "another size", "gone", "half of it", "half an answer", "no answer"],
)
def test_a_source_that_gives_something_else_is_found_out(
    parts: list[bytes], outcome: TransferOutcome, why: str
) -> None:
    """Nothing of it is kept."""
    with impostor(served(*parts)) as port:
        report, kept = fetched(port)
    assert (7, outcome, None) == (report.number, report.outcome, kept)
    assert why in report.why


def test_a_source_that_stalls_is_given_up() -> None:
    """After so many seconds as the client says."""
    with impostor(served(ANSWER.pack(1, len(CONTENT)), CONTENT[:1000], stays=True)) as port:
        report, kept = fetched(port, stall=0.2)
    assert (TransferOutcome.STALLED, None) == (report.outcome, kept)
    assert "timed out" in report.why


def test_a_source_that_trickles_is_given_up() -> None:
    """Bytes now and then are no progress."""

    def do(tls: Any) -> None:
        served(ANSWER.pack(1, len(CONTENT)))(tls)
        while True:
            tls.sendall(b"x")
            time.sleep(0.02)

    with impostor(do) as port:
        report, kept = fetched(port, stall=0.3)
    assert (TransferOutcome.STALLED, None) == (report.outcome, kept)
    assert "bytes came in the last" in report.why


def test_a_source_of_another_pool_is_asked_for_nothing() -> None:
    """It does not prove that it is of this one."""
    asked: list[bytes] = []
    with impostor(lambda tls: asked.append(tls.recv(100)), another_certificate()) as port:
        report, kept = fetched(port)
    assert (TransferOutcome.UNREACHED, None, []) == (report.outcome, kept, asked)
    assert "certificate verify failed" in report.why


def test_a_port_where_nothing_listens_is_not_reached() -> None:
    """The reason names the place."""
    with closing(socket.socket()) as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
        report, _ = fetched(port)
    assert TransferOutcome.UNREACHED == report.outcome
    assert f"127.0.0.1:{port}: [Errno 111] Connection refused" == report.why


def test_a_port_that_says_nothing_is_not_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection alone is no answer."""
    monkeypatch.setattr(peer_fetch, "CONNECT_WITHIN", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        report, _ = fetched(deaf.getsockname()[1])
    assert TransferOutcome.UNREACHED == report.outcome
    assert "timed out" in report.why
