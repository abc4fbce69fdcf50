"""What an agent has to do with the store of the collections: its server, the way to another node's, questions."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from skyward.errors import ProtocolError, SkywardError, UsageError
from skyward.link import store_said
from skyward.link.frames import Kind, encode, encode_json
from skyward.link.store_said import ServerEnded, StoreGone, StorePlace, Where
from skyward.link.wire import Wire
from skyward.node.agent.line_flow import SILENT
from skyward.node.store.route import StoreRoute
from skyward.node.store.server_process import ServerProcess

if TYPE_CHECKING:
    from skyward.link.channel import Link
    from skyward.node.agent.child_process import ChildProcess

__all__ = ["AgentStore"]


class AgentStore:
    """
    Start the server and the route that the client asks for, and answer workers that ask where the store is.

    Args:
        loop: The agent's loop.
        directory: The node's directory.
        tell: Sends a frame to the client.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, directory: str, tell: Callable[[bytes], None]) -> None:
        self._loop = loop
        self._directory = directory
        self._tell = tell
        self._client: Link | None = None
        self._server: ServerProcess | None = None
        self._route: StoreRoute | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._answer = b""
        self._generation = ""
        self._waiting: list[ChildProcess] = []
        self._informed: list[ChildProcess] = []

    # Questions of the client.

    def ask(self, question: dict[str, Any]) -> bool:
        """
        Begin to answer a question, and return whether it is about the store.

        `store` asks for a server, with its `number`, its `password`, where a wheel may be installed to (`tools`, beside
        the nodes' directories if that is empty) and whether the distribution's `packages` may be; `route` asks for the
        two sockets of the way to a server of another node, by its number.

        Args:
            question: The question, with its `number`, which its answer repeats.
        """
        number = int(question["number"])
        if "store" in question:
            self._begin(number, self._start(question["store"]))
        elif "route" in question:
            self._begin(number, self._open_route(int(question["route"])))
        else:
            return False
        return True

    def reaped(self, pid: int, status: int) -> None:
        """Record that a child of the agent ended, which may be the server."""
        if self._server is not None and self._server.reaped(pid, status):
            self._server = None

    def serve(self, client: Link) -> None:
        """Record over which link the client is reached."""
        self._client = client

    def reset(self) -> None:
        """Reset the connections through the client: it was away, and has come back over another connection."""
        if self._route is not None:
            self._route.reset()

    def close(self) -> None:
        """End the server, and everything that leads to another one."""
        for task in self._tasks:
            task.cancel()
        if self._server is not None:
            self._server.kill()
        if self._route is not None:
            self._route.close()

    # Questions of workers.

    def asked(self, process: ChildProcess) -> None:
        """Answer a worker that asks where the store is, now or when the client has answered."""
        if process not in self._informed:
            self._informed = [known for known in self._informed if known.exit_status is None]
            self._informed.append(process)
        if self._answer:
            process.control.send(self._answer)
            return
        self._waiting.append(process)
        if len(self._waiting) == 1:
            self._tell(encode(Kind.STORE, Where().encode()))

    def received(self, body: bytes) -> None:
        """
        Take a STORE frame of the client's.

        Raises:
            ProtocolError: If it says what no client says.
        """
        said, frame = store_said.decode(body), encode(Kind.STORE, body)
        match said:
            case StoreGone(generation):
                if generation == self._generation:
                    self._answer = b""
                for process in self._informed:
                    process.control.send(frame)
            case StorePlace() | SkywardError():
                # That the pool has no collections stays so; anything else may be otherwise the next time.
                self._answer = frame if isinstance(said, StorePlace | UsageError) else b""
                self._generation = said.generation if isinstance(said, StorePlace) else ""
                waiting, self._waiting = self._waiting, []
                for process in waiting:
                    process.control.send(frame)
            case _:
                raise ProtocolError(f"A client sent {type(said).__name__} about a store, which only nodes send.")

    def _begin(self, number: int, work: Coroutine[Any, Any, dict[str, Any]]) -> None:
        task = self._loop.create_task(self._answered(number, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answered(self, number: int, work: Coroutine[Any, Any, dict[str, Any]]) -> None:
        try:
            said = await work
        except (SkywardError, OSError) as error:
            said = {"failed": error.message if isinstance(error, SkywardError) else str(error)}
        self._tell(encode_json(Kind.ANSWER, {"number": number, **said}))

    async def _start(self, asked: dict[str, Any]) -> dict[str, Any]:
        if self._server is not None:
            # The client has given it up.
            self._server.kill()
        number = int(asked["number"])
        tools = asked["tools"] or os.path.join(os.path.dirname(os.path.dirname(self._directory)), "tools")
        server = ServerProcess(
            self._loop,
            self._directory,
            number,
            str(asked["password"]),
            lambda why: self._tell(encode(Kind.STORE, ServerEnded(number, why).encode())),
        )
        self._server = server
        try:
            said = await server.start(tools=tools, packages=bool(asked["packages"]))
        except BaseException:
            server.kill()
            if self._server is server:
                self._server = None
            raise
        return {"path": server.path, **said}

    async def _open_route(self, number: int) -> dict[str, Any]:
        if self._route is not None:
            self._route.close()
        self._route = route = StoreRoute(self._loop, self._directory, number, self._is_away)
        await route.open()
        return {"path": route.path, "door": route.door}

    def _is_away(self) -> bool:
        return isinstance(self._client, Wire) and self._client.away(SILENT)
