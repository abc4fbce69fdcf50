"""Ports of nodes on this machine: what is refused, what is said once, and what ends when; the nodes are stand-ins."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, Self

import pytest

from skyward.engine.nodes.forwarding import Forward, Forwards, check_free
from skyward.errors import ConfigError, UnreachableError
from skyward.model.instances.machine import LocalAddress

Dial = Callable[[int], Awaitable[Any]]


def _shell(dial: Dial, address: object = None) -> Any:
    """Stand for a node whose ports are dialled like this."""
    return SimpleNamespace(host=SimpleNamespace(dial_port=dial), instance=SimpleNamespace(address=address))


class Echo:
    """Be what serves on a node: every byte comes back."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        self.ended = asyncio.Event()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(1000):
                writer.write(data)
        except ConnectionError:
            pass
        finally:
            self.ended.set()
            writer.close()

    async def dial(self, port: int) -> Any:
        """Connect to it, whatever port is asked for."""
        return await asyncio.open_connection("127.0.0.1", self.port)


def _forward(find: Callable[[Any], Any], remote: int = 8888) -> Forward:
    return Forward(SimpleNamespace(), find, 0, remote, "train")  # type: ignore[arg-type]  # only `close` needs the loop


async def _said(forward: Forward, data: bytes) -> bytes:
    """Say something and the end, and give all that comes back."""
    reader, writer = await asyncio.open_connection(forward.host, forward.port)
    writer.write(data)
    writer.write_eof()
    try:
        return await reader.read()
    finally:
        writer.close()


def test_bytes_go_both_ways_to_the_node_that_is_there_then() -> None:
    """Another may have taken its place since the last connection."""

    async def scene() -> None:
        async with Echo() as echo:
            asked: list[int] = []

            async def dial(port: int) -> Any:
                asked.append(port)
                return await echo.dial(port)

            shells = [_shell(dial), _shell(dial)]
            forward = _forward(lambda node: shells[len(asked) % 2])
            await forward.start(0)
            assert [b"one", b"two"] == [await _said(forward, b"one"), await _said(forward, b"two")]
            assert [8888, 8888] == asked
            assert (f"127.0.0.1:{forward.port}", f"http://127.0.0.1:{forward.port}") == (forward.address, forward.url)
            await forward.end()

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ConnectionRefusedError(), "nothing listens at 127.0.0.1:8888 there"),
        (TimeoutError(), "it did not answer within 30 s"),
        (UnreachableError("the machine is away"), "the machine is away"),
        (None, "Node 0 is gone, and no other has its place yet"),
    ],
)
def test_a_port_that_cannot_be_reached_breaks_the_connection_and_is_told_once(
    error: Exception | None, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It is broken off, so that no client takes it for an empty answer."""

    async def dial(port: int) -> Any:
        assert error is not None
        raise error

    async def scene() -> None:
        forward = _forward(lambda node: _shell(dial) if error is not None else None)
        await forward.start(0)
        for _ in range(2):
            with pytest.raises(ConnectionResetError):
                await _said(forward, b"")
        await forward.end()

    with caplog.at_level(logging.WARNING):
        asyncio.run(scene())
    assert [True] == [message in record.getMessage() for record in caplog.records]


def test_what_is_connected_ends_with_the_forward() -> None:
    """Both sides; and nothing listens any more. A second end is harmless."""

    async def scene() -> None:
        async with Echo() as echo:
            forward = _forward(lambda node: _shell(echo.dial))
            await forward.start(0)
            reader, writer = await asyncio.open_connection(forward.host, forward.port)
            writer.write(b"x")
            assert b"x" == await reader.read(1)
            await forward.end()
            with pytest.raises(ConnectionResetError):
                await reader.read()
            await asyncio.wait_for(echo.ended.wait(), 10)
            with pytest.raises(ConnectionRefusedError):
                await _said(forward, b"")
            await forward.end()
            writer.close()

    asyncio.run(scene())


def test_the_same_port_of_this_machine_needs_no_listener() -> None:
    """Who serves on a node that is this machine needs it himself."""

    async def scene() -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        forward = _forward(lambda node: _shell(None, LocalAddress("/node")), port)  # type: ignore[arg-type]  # not dialled
        await forward.start(port)
        with socket.socket() as server:
            server.bind(("127.0.0.1", port))
        assert port == forward.port
        await forward.end()

    asyncio.run(scene())


def test_a_port_that_is_taken_is_refused() -> None:
    """Before anything is rented, and when it is asked for; others stay as they are."""

    async def scene(port: int) -> None:
        forwards = Forwards(SimpleNamespace(), "train", lambda node: None)  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match=rf"Port {port} of this machine is taken"):
            await forwards.open(0, 8888, port)
        await forwards.close()

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=rf'ports: Port {port} .* ports=\["18888:8888"\]'):
            check_free([(7777, 0), (8888, port)])
        asyncio.run(scene(port))
    check_free([(7777, 0)])


def test_all_forwards_of_a_pool_close_with_it() -> None:
    """Their ports are free again."""

    async def scene() -> None:
        forwards = Forwards(SimpleNamespace(), "train", lambda node: None)  # type: ignore[arg-type]
        opened = [await forwards.open(node, 8888, 0) for node in range(3)]
        assert 3 == len({one.port for one in opened})
        await forwards.close()
        check_free((8888, one.port) for one in opened)

    asyncio.run(scene())
