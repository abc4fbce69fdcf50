"""The port between nodes: strangers get nothing and cost little, and no visitor keeps others out."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable
from typing import TypeVar

import pytest

from skyward.link.transfer_orders import MARK, REQUEST
from skyward.model.instances.transfer import TransferOutcome
from skyward.node.data import peer_server
from skyward.node.data.peer_server import MOST_SERVED, listening
from skyward.node.data.pool_tls import contexts
from tests.node.data.peering import NAME, PATIENCE, another_certificate, peers, pool_certificate
from tests.waiting import until_async

T = TypeVar("T")

CONTENT = b"secret" * 100_000


def visited(visit: Callable[[str, int], T]) -> T:
    """Have something visit a node that keeps a secret; another node still gets it afterwards."""

    async def look() -> T:
        async with peers() as [one, other]:
            one.keep(CONTENT)
            found = await asyncio.to_thread(visit, one.address, one.port)
            assert TransferOutcome.OK == (await other.fetch(CONTENT, one.address, one.port)).outcome
            return found

    return asyncio.run(look())


def rest_of(sock: socket.socket) -> bytes:
    """Read until the other end closes."""
    sock.settimeout(PATIENCE)
    data = b""
    try:
        while more := sock.recv(65536):
            data += more
    except ConnectionError:
        pass
    return data


@pytest.mark.parametrize("said", [REQUEST.pack(MARK, NAME), b"GET / HTTP/1.1\r\n\r\n", bytes(5000)])
def test_what_speaks_no_tls_gets_nothing(said: bytes) -> None:
    """No byte of what is stored, also not for its name."""

    def visit(host: str, port: int) -> bytes:
        with socket.create_connection((host, port)) as sock:
            sock.sendall(said)
            return rest_of(sock)

    assert b"secret" not in visited(visit)


@pytest.mark.parametrize("certificate", [None, another_certificate])
def test_a_visitor_of_another_pool_gets_nothing(certificate: Callable[[], tuple[str, str]] | None, tmp_path) -> None:  # type: ignore[no-untyped-def]
    """Nor one without any certificate."""

    def visit(host: str, port: int) -> bytes:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if certificate is not None:
            context = contexts(*certificate(), str(tmp_path)).connecting
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        try:
            with socket.create_connection((host, port)) as sock, context.wrap_socket(sock) as tls:
                tls.sendall(REQUEST.pack(MARK, NAME))
                return rest_of(tls)
        except (ssl.SSLError, ConnectionError):
            return b""

    assert b"" == visited(visit)


def test_nothing_older_than_tls_1_3_is_spoken(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """By neither end."""
    made = contexts(*pool_certificate(), str(tmp_path))
    assert [ssl.TLSVersion.TLSv1_3] * 2 == [context.minimum_version for context in made]
    assert [ssl.CERT_REQUIRED] * 2 == [context.verify_mode for context in made]


def test_one_that_stays_silent_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """After some seconds, also if a byte comes now and then."""
    monkeypatch.setattr(peer_server, "AUTHENTICATED_WITHIN", 0.2)

    def visit(host: str, port: int) -> tuple[bytes, bytes]:
        over = threading.Event()
        with socket.create_connection((host, port)) as silent, socket.create_connection((host, port)) as trickling:

            def trickle() -> None:
                # A TLS record of a handshake that never becomes whole.
                for byte in b"\x16\x03\x01\x40\x00" + bytes(1000):
                    if over.wait(0.05):
                        return
                    try:
                        trickling.send(bytes([byte]))
                    except OSError:
                        return

            thread = threading.Thread(target=trickle)
            thread.start()
            found = rest_of(silent), rest_of(trickling)
            over.set()
            thread.join()
            return found

    assert (b"", b"") == visited(visit)


def test_silent_ones_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of them goes when one more comes."""
    monkeypatch.setattr(peer_server, "MOST_SILENT", 3)

    def visit(host: str, port: int) -> None:
        socks = [socket.create_connection((host, port)) for _ in range(5)]
        for sock in socks[:2]:
            assert b"" == rest_of(sock)
        for sock in socks:
            sock.close()

    visited(visit)


def test_those_that_are_served_are_bounded(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """One too many is sent away, and those before it are served."""

    async def look() -> None:
        context = contexts(*pool_certificate(), str(tmp_path)).connecting

        def ask(host: str, port: int) -> ssl.SSLSocket:
            tls = context.wrap_socket(socket.create_connection((host, port), timeout=PATIENCE))
            tls.sendall(REQUEST.pack(MARK, NAME))
            return tls

        async with peers(1) as [one]:
            # More than fits into the buffers of a connection that is not read.
            one.keep(bytes(32 << 20))
            door = one.part._door
            assert door is not None
            served = []
            for _ in range(MOST_SERVED):
                served.append(await asyncio.to_thread(ask, one.address, one.port))
                await until_async(lambda: len(door._served) == len(served))
            last = await asyncio.to_thread(ask, one.address, one.port)
            await asyncio.to_thread(rest_of, last)
            last.close()
            await until_async(lambda: len(door._served) == MOST_SERVED)
            assert all(visit.wake.fileno() >= 0 for visit in door._served)
            for tls in served:
                tls.close()

    asyncio.run(look())


@pytest.mark.parametrize(
    ("address", "bound"),
    [("127.0.0.5", "127.0.0.5"), ("192.0.2.1", "0.0.0.0"), ("localhost", "0.0.0.0"), ("::1", "::1")],
)
def test_it_listens_where_the_others_look(address: str, bound: str) -> None:
    """At one interface where the machine has the address, at all where it does not know it or has a name."""
    if address == "::1" and not _has_ipv6():
        pytest.skip("this machine has no IPv6")
    with listening(address) as listener:
        assert bound == listener.getsockname()[0]


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as sock:
            sock.bind(("::1", 0))
    except OSError:
        return False
    return True
