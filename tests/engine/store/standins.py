"""Nodes that stand in for real ones: what their agents answer is set, and their sockets lie in a folder here."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

from skyward.errors import ProvisionError
from skyward.link.store_said import decode
from skyward.model.instances.machine import LocalAddress
from skyward.node.store.route import StoreRoute

ELSEWHERE = object()


class StandIn:
    """
    Be a node: an agent that opens routes as a real one does, and a server that answers with what it gets, in capitals.

    Args:
        directory: Its own.
        index: Its place in the pool.
        address: Where it is; that of another machine if left out.
    """

    def __init__(self, directory: str, index: int = 0, address: Any = ELSEWHERE) -> None:
        self.directory = os.path.join(directory, f"n{index}")
        os.mkdir(self.directory)
        self.index = index
        self.where = f"node {index}"
        self.leaving = False
        self.instance = SimpleNamespace(address=address)
        self.host = SimpleNamespace(dial_socket=self._dial)
        self.link = SimpleNamespace(send_store=lambda body: self.said.append(decode(body)))
        self.said: list[Any] = []
        self.asked: list[dict[str, Any]] = []
        self.starts: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]] = self.start
        self.route: StoreRoute | None = None
        self.dials = 0
        self.cut = False
        self._server: asyncio.AbstractServer | None = None
        self._serving: set[asyncio.Task[None]] = set()

    @classmethod
    def here(cls, directory: str, index: int = 0) -> StandIn:
        """Make one on this machine."""
        return cls(directory, index, LocalAddress(directory="/nowhere"))

    async def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """Answer as an agent does."""
        self.asked.append(question)
        if "store" in question:
            return await self.starts(question["store"])
        if self.route is not None:
            self.route.close()
        self.route = StoreRoute(asyncio.get_running_loop(), self.directory, question["route"], lambda: False)
        await self.route.open()
        return {"path": self.route.path, "door": self.route.door}

    async def start(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Start what stands in for a server."""
        path = os.path.join(self.directory, f"store-{asked['number']}.sock")
        self._server = await asyncio.start_unix_server(self._accepted, path)
        return {"path": path, "server": "valkey-server", "version": "8.1.1"}

    async def lost(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Be lost while a server is being started."""
        self.leaving = True
        raise ProvisionError("It was lost before it answered.")

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._serving.add(task := asyncio.create_task(_serve(reader, writer)))
        task.add_done_callback(self._serving.discard)

    def end(self) -> None:
        """End what was started."""
        for task in self._serving:
            task.cancel()
        if self.route is not None:
            self.route.close()
        if self._server is not None:
            self._server.close()

    async def _dial(self, path: str) -> Any:
        self.dials += 1
        if self.cut:
            raise ConnectionRefusedError("cut")
        return await asyncio.open_unix_connection(path)


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(1000):
            writer.write(data.upper())
    except ConnectionError:
        pass
    finally:
        writer.close()


async def said_back(path: str, data: bytes) -> bytes:
    """Connect to a socket, say something and return as many bytes of the answer."""
    reader, writer = await asyncio.open_unix_connection(path)
    try:
        writer.write(data)
        return await asyncio.wait_for(reader.readexactly(len(data)), 20)
    finally:
        writer.close()
