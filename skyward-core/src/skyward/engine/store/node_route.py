"""The way of one node to a store on another one: connections through the client that are held ready."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from skyward.engine.nodes.forwarding import OPENING
from skyward.errors import ProvisionError, SkywardError, UnreachableError
from skyward.link.joining import Stream, begin_join, reset

if TYPE_CHECKING:
    from skyward.engine.nodes.node_shell import NodeShell

__all__ = ["MOST", "OPENED_WITHIN", "READY", "NodeRoute"]

_log = logging.getLogger(__name__)

OPENED_WITHIN = 30.0
"""Seconds in which a node has to listen for its tasks."""

READY = 2
"""Connections that are held ready: as many tasks connect without waiting for one."""

MOST = 1024
"""Connections of one node, at most: a node that takes more waits until one has ended."""

_FIRST_WAIT, _LONGEST_WAIT = 0.05, 5.0


class NodeRoute:
    """
    Lead one node's connections to the store; lives in the engine's loop.

    Args:
        shell: The node.
        number: Which server of the pool it leads to.
        dial: Connects to the store.
    """

    def __init__(self, shell: NodeShell, number: int, dial: Callable[[], Awaitable[Stream]]) -> None:
        self._shell = shell
        self._number = number
        self._dial = dial
        self._door = ""
        self._room = asyncio.Semaphore(MOST)
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    async def open(self) -> str:
        """
        Ask the node to listen, and return the path that its tasks connect to.

        Raises:
            ProvisionError: If it does not.
        """
        try:
            async with asyncio.timeout(OPENED_WITHIN):
                answer = await self._shell.ask({"route": self._number})
        except TimeoutError:
            raise ProvisionError(
                f"{self._shell.where} did not listen for its tasks within {OPENED_WITHIN:g} s.", node=self._shell.index
            ) from None
        if "path" not in answer:
            raise ProvisionError(
                f"{self._shell.where} cannot listen for its tasks: {answer.get('failed')}", node=self._shell.index
            )
        if self._closed:
            raise ProvisionError(f"{self._shell.where} listens for a store that is lost.", node=self._shell.index)
        self._door = str(answer["door"])
        for _ in range(READY):
            _ = self._keep(asyncio.ensure_future(self._hold()))
        return str(answer["path"])

    async def close(self) -> None:
        """Reset every connection, and hold none any more."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        while self._tasks:
            await asyncio.wait(list(self._tasks))

    def _keep(self, task: asyncio.Task[None]) -> asyncio.Task[None]:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _hold(self) -> None:
        """Hold a connection ready, and the next one as soon as a task has that."""
        wait = _FIRST_WAIT
        while True:
            await self._room.acquire()
            try:
                node, store = await self._connect()
            except (OSError, SkywardError, TimeoutError) as error:
                self._room.release()
                _log.info("store.no_route node=%s reason=%s", self._shell.index, error)
                await asyncio.sleep(wait * random.uniform(0.5, 1.0))
                wait = min(_LONGEST_WAIT, 2 * wait)
                continue
            except BaseException:
                self._room.release()
                raise
            began = asyncio.Event()
            joined = self._keep(begin_join(node, store, began.set))
            joined.add_done_callback(lambda _: self._room.release())
            beginning = asyncio.ensure_future(began.wait())
            try:
                await asyncio.wait([joined, beginning], return_when=asyncio.FIRST_COMPLETED)
            finally:
                beginning.cancel()
            if began.is_set():
                wait = _FIRST_WAIT
            else:
                # It ended before a task had it.
                await asyncio.sleep(wait * random.uniform(0.5, 1.0))
                wait = min(_LONGEST_WAIT, 2 * wait)

    async def _connect(self) -> tuple[Stream, Stream]:
        """Connect to the store, and then to the node, which may give the connection to a task at once."""
        if self._shell.host is None:
            raise UnreachableError(f"{self._shell.where} is gone.", node=self._shell.index)
        async with asyncio.timeout(OPENING):
            store = await self._dial()
            try:
                node = await self._shell.host.dial_socket(self._door)
            except BaseException:
                reset(store[1])
                raise
        return node, store
