"""Ports of nodes that are reached on this machine: listeners here, connections there, bytes between them."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from skyward.errors import ConfigError, NodeLostError, SkywardError
from skyward.link.joining import READ, join, reset
from skyward.model.instances.machine import LocalAddress

if TYPE_CHECKING:
    from skyward.engine.nodes.node_shell import NodeShell
    from skyward.engine.pool.event_loop import EngineLoop
    from skyward.link.joining import Stream

_log = logging.getLogger(__name__)

HERE = "127.0.0.1"

OPENING = 30.0
"""Seconds in which a connection to a node has to stand; a lost SSH connection is dialled again meanwhile."""

Node = int | Literal["head"]
Find = Callable[[Node], "NodeShell | None"]


class Forward:
    """
    Reach a port of a node on this machine's 127.0.0.1, until it is closed or the pool is left.

    Made by `pool.forward`; a `with` block closes it.

    Args:
        engine: The loop.
        find: Returns the node that is meant at this moment.
        node: Which one.
        remote_port: The port there.
        pool: Name of the pool, for messages.
    """

    def __init__(self, engine: EngineLoop, find: Find, node: Node, remote_port: int, pool: str) -> None:
        self.host = HERE
        self.port = remote_port
        self.remote_port = remote_port
        self.node = node
        self._engine = engine
        self._find = find
        self._pool = pool
        self._server: asyncio.Server | None = None
        self._relays: set[asyncio.Task[None]] = set()
        self._warned = False

    @property
    def address(self) -> str:
        """Name the host and the port here."""
        return f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """Name the address as browsers want it."""
        return f"http://{self.address}"

    def close(self) -> None:
        """Stop listening, and end what is connected; harmless when that is done."""
        self._engine.run(self.end())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<forward of port {self.remote_port} of node {self.node} to {self.address}>"

    # In the engine's loop.

    async def start(self, local_port: int) -> None:
        """
        Listen for connections.

        Args:
            local_port: The port here; 0 takes any that is free.

        Raises:
            ConfigError: If it is taken.
        """
        shell = self._find(self.node)
        if shell is not None and isinstance(shell.instance.address, LocalAddress) and local_port == self.remote_port:
            # The node is this machine, and what serves there needs the port itself.
            return
        sock = _bound(local_port)
        self.port = sock.getsockname()[1]
        self._server = await asyncio.start_server(self._accepted, sock=sock, limit=READ)
        _log.info(
            "forward.opened pool=%s node=%s remote=%s local=%s", self._pool, self.node, self.remote_port, self.port
        )

    async def end(self) -> None:
        """Stop listening, and end what is connected."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        for relay in self._relays:
            relay.cancel()
        while self._relays:
            await asyncio.wait(list(self._relays))

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        relay = asyncio.get_running_loop().create_task(self._relay(reader, writer))
        self._relays.add(relay)
        relay.add_done_callback(self._relays.discard)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there = await self._dial()
        except (OSError, SkywardError) as error:
            self._refused(error)
            reset(writer)
            return
        except BaseException:
            reset(writer)
            raise
        await join((reader, writer), there)

    async def _dial(self) -> Stream:
        shell = self._find(self.node)
        if shell is None or shell.host is None:
            raise NodeLostError(f"Node {self.node} is gone, and no other has its place yet.", pool=self._pool)
        async with asyncio.timeout(OPENING):
            return await shell.host.dial_port(self.remote_port)

    def _refused(self, error: Exception) -> None:
        if self._warned:
            return
        self._warned = True
        why: object = error
        if isinstance(error, ConnectionError):
            why = f"nothing listens at 127.0.0.1:{self.remote_port} there"
        elif isinstance(error, TimeoutError):
            why = f"it did not answer within {OPENING:g} s"
        _log.warning(
            "A connection to %s was closed: port %d of node %s of pool %r could not be reached: %s. This is said once.",
            self.address,
            self.remote_port,
            self.node,
            self._pool,
            str(why).rstrip("."),
        )


class Forwards:
    """
    Hold what a pool forwards.

    Args:
        engine: The loop.
        pool: Name of the pool, for messages.
        find: Returns the node that is meant at this moment.
    """

    def __init__(self, engine: EngineLoop, pool: str, find: Find) -> None:
        self._engine = engine
        self._pool = pool
        self._find = find
        self._open: list[Forward] = []

    async def open(self, node: Node, remote_port: int, local_port: int) -> Forward:
        """
        Begin to forward a port.

        Args:
            node: Which node.
            remote_port: The port there.
            local_port: The port here; 0 takes any that is free.

        Raises:
            ConfigError: If the port here is taken, or there is no such node.
        """
        forward = Forward(self._engine, self._find, node, remote_port, self._pool)
        await forward.start(local_port)
        self._open.append(forward)
        return forward

    async def close(self) -> None:
        """Forward nothing more."""
        while self._open:
            await self._open.pop().end()


def check_free(ports: Iterable[tuple[int, int]]) -> None:
    """
    Refuse ports that are taken on this machine, before anything is rented.

    Args:
        ports: Pairs of the node's port and the one here.

    Raises:
        ConfigError: If one is taken, or not ours to take.
    """
    for remote, local in ports:
        try:
            _bound(local).close()
        except ConfigError as error:
            raise ConfigError(
                f"ports: {error.message}", hint=f'Give another one, as in ports=["18888:{remote}"].'
            ) from error


def _bound(port: int) -> socket.socket:
    """Take a port of this machine."""
    sock = socket.socket()
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((HERE, port))
        # Without it, two that are bound and do not listen yet may share a port.
        sock.listen(100)
    except OSError as error:
        sock.close()
        taken = error.errno == errno.EADDRINUSE
        raise ConfigError(
            f"Port {port} of this machine {'is taken' if taken else f'cannot be used: {error.strerror}'}.",
            hint="Give another local_port, or 0 for any that is free.",
        ) from error
    return sock
