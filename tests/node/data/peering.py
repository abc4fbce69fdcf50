"""Agents' dealings with each other, without the agents: each with a store of its own, on this machine's addresses."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import json
import os
import socket
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from skyward.engine.nodes.pool_certificate import PoolCertificate, make_certificate
from skyward.link.frames import Kind, Parser, encode_json
from skyward.link.segment import write_segment
from skyward.link.transfer_orders import Report, TransferOrder, decode_report, encode_transfer_order
from skyward.node.data.node_store import NodeStore
from skyward.node.data.peer_transfers import PeerTransfers
from skyward.node.data.pool_tls import contexts
from tests.waiting import until_async

NAME = b"n" * 32
PATIENCE = 20.0

pool_certificate = functools.cache(make_certificate)
"""One for all tests, and others by number."""


@functools.cache
def another_certificate() -> PoolCertificate:
    """Give the certificate of another pool."""
    return make_certificate()


class Peer:
    """
    Be the part of an agent that deals with other nodes.

    Args:
        address: Where the others reach it.
        directory: The node's.
        certificate: The pool's.
    """

    def __init__(self, address: str, directory: str, certificate: PoolCertificate) -> None:
        self.address = address
        self.port = 0
        self.store = NodeStore()
        self.said: asyncio.Queue[bytes] = asyncio.Queue()
        self.part = PeerTransfers(asyncio.get_running_loop(), self.store, self.said.put_nowait, directory)
        self._certificate = certificate

    def take(self, frame: bytes) -> None:
        """Take a frame of the client's."""
        [parsed] = Parser().feed(frame)
        self.part.take(parsed)

    async def serve(self) -> dict[str, Any]:
        """Open its port, and give what it says."""
        certificate, key = self._certificate
        self.take(encode_json(Kind.SERVE, {"address": self.address, "certificate": certificate, "key": key}))
        [frame] = Parser().feed(await asyncio.wait_for(self.said.get(), PATIENCE))
        assert Kind.SERVING == frame.kind
        said: dict[str, Any] = json.loads(frame.body)
        self.port = said.get("port", 0)
        return said

    def keep(self, content: bytes, name: bytes = NAME) -> None:
        """Have a buffer."""
        segment = write_segment([[content]])
        segment.size = len(content)
        self.store.keep_blob(name, segment)

    def content(self, name: bytes = NAME) -> bytes | None:
        """Give what it keeps under a name."""
        segment = self.store.blob(name)
        return None if segment is None else bytes(segment.map())

    def begin(
        self, content: bytes, host: str, port: int, *, number: int = 7, stall: float = 10.0, name: bytes = NAME
    ) -> None:
        """Have it fetch a buffer that is said to hold something."""
        checksum = hashlib.sha256(content).digest()
        self.take(encode_transfer_order(TransferOrder(name, number, len(content), checksum, host, port, stall)))

    async def report(self) -> Report:
        """Wait until it says how that ended."""
        [frame] = Parser().feed(await asyncio.wait_for(self.said.get(), PATIENCE))
        assert Kind.FETCHED == frame.kind
        return decode_report(frame.body)

    async def fetch(self, content: bytes, host: str, port: int, **options: Any) -> Report:
        """Have it fetch a buffer, and give what it says about it."""
        self.begin(content, host, port, **options)
        return await self.report()


@contextlib.asynccontextmanager
async def peers(count: int = 2, certificate: PoolCertificate | None = None) -> AsyncIterator[list[Peer]]:
    """Have several that serve; when they are closed, no descriptor and no thread of theirs is left."""
    with tempfile.TemporaryDirectory() as directory:
        before = descriptors()
        made = [Peer(f"127.0.0.{number + 2}", directory, certificate or pool_certificate()) for number in range(count)]
        for peer in made:
            await peer.serve()
        assert [] == os.listdir(directory), "the pool's key was left on the disk"
        try:
            yield made
        finally:
            for peer in made:
                peer.part.close()
        await until_async(
            lambda: not any(thread.name in ("skyward-peer", "skyward-fetch") for thread in threading.enumerate())
        )
        del made, peer
        await until_async(lambda: descriptors() <= before)


def descriptors() -> int:
    """Count the sockets of this process."""
    found = 0
    for entry in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found += os.readlink(f"/proc/self/fd/{entry}").startswith("socket:")
    return found


@contextlib.contextmanager
def impostor(do: Callable[[Any], None], certificate: PoolCertificate | None = None) -> Iterator[int]:
    """
    Listen as a node does that goes its own way, and give the port.

    Args:
        do: What it does with each connection once both ends have proved what they are.
        certificate: That it uses; the pool's if it is left out.
    """
    with tempfile.TemporaryDirectory() as directory, socket.create_server(("127.0.0.1", 0)) as listener:
        context = contexts(*(certificate or pool_certificate()), directory).listening

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    sock, _ = listener.accept()
                    with contextlib.suppress(OSError), sock, context.wrap_socket(sock, server_side=True) as tls:
                        do(tls)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(PATIENCE)
        assert not thread.is_alive()
