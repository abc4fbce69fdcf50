"""The store of a pool's collections: started on the head when it is first asked for, and again when that is lost."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from skyward.engine.nodes.forwarding import OPENING
from skyward.engine.store.client_door import ClientDoor
from skyward.engine.store.node_route import NodeRoute
from skyward.errors import NodeLostError, PoolClosedError, ProvisionError, SkywardError, UsageError
from skyward.link import store_said
from skyward.link.store_said import STARTS_WITHIN, ServerEnded, StoreGone, StorePlace, Where
from skyward.model.instances.machine import LocalAddress

if TYPE_CHECKING:
    from skyward.engine.nodes.node_shell import NodeShell
    from skyward.engine.pool.event_loop import EngineLoop
    from skyward.link.joining import Stream
    from skyward.model.spec.options import Options

__all__ = ["ATTEMPTS", "PoolStore", "check_joined"]

_log = logging.getLogger(__name__)

ATTEMPTS = 3
"""How often a store is started at once, on one node after the other, where the node is lost meanwhile."""

NODE_WITHIN = 1800.0
"""Seconds that a pool without nodes has to start one for a store."""


@frozen(eq=False)
class _Store:
    """A server that runs, and the way to it."""

    shell: NodeShell
    number: int
    generation: str
    path: str
    password: str = field(repr=False)

    async def dial(self) -> Stream:
        """Connect to the server."""
        if self.shell.host is None:
            raise NodeLostError(f"{self.shell.where} is gone, and the store with it.", node=self.shell.index)
        async with asyncio.timeout(OPENING):
            return await self.shell.host.dial_socket(self.path)


def check_joined(options: Options, pool: str) -> None:
    """
    Refuse collections in a pool whose nodes are to work by themselves.

    Args:
        options: The pool's.
        pool: Its name.

    Raises:
        UsageError: If it was opened with `cluster=False`.
    """
    if options.cluster is False:
        raise UsageError(
            f"The pool {pool!r} has no collections, because it was opened with cluster=False.",
            hint="Leave cluster= out to have its nodes share something.",
        )


class PoolStore:
    """
    Start the one store of a pool when it is first asked for, and lead nodes and the client to it.

    It stays on the node where it was started until that is lost; then it is lost, and who asks next gets a new one.
    Lives in the engine's loop.

    Args:
        engine: The loop.
        pool: Name of the pool.
        options: The pool's.
        ready: Lists the nodes that take calls, the head first.
        wake: Has a pool start that may drain to zero, and returns whether it may.
    """

    def __init__(
        self,
        engine: EngineLoop,
        pool: str,
        options: Options,
        ready: Callable[[], list[NodeShell]],
        wake: Callable[[], bool] = lambda: False,
    ) -> None:
        self._engine = engine
        self._pool = pool
        self._options = options
        self._ready = ready
        self._wake = wake
        self._number = 0
        self._store: _Store | None = None
        self._chosen: NodeShell | None = None
        self._starting: asyncio.Task[None] | None = None
        self._node_is_ready = asyncio.Event()
        self._routes: dict[NodeShell, tuple[NodeRoute, asyncio.Future[str]]] = {}
        self._door: tuple[ClientDoor, asyncio.Future[str]] | None = None
        self._asking: set[NodeShell] = set()
        self._answered: set[NodeShell] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def node(self) -> int | None:
        """Return the place of the node that the store is on, or is being started on; None if there is none."""
        shell = self._store.shell if self._store is not None else self._chosen
        return None if shell is None else shell.index

    async def for_client(self) -> StorePlace:
        """
        Return where the client reaches the store, which is started if it is not there.

        Raises:
            SkywardError: If there is none.
        """
        return await self._reached(self._path_for_client)

    async def for_node(self, shell: NodeShell) -> StorePlace:
        """
        Return where a node reaches the store, which is started if it is not there.

        Args:
            shell: The node.

        Raises:
            SkywardError: If there is none, or no way to it.
        """
        return await self._reached(lambda store: self._path_for_node(shell, store))

    async def _reached(self, path: Callable[[_Store], Awaitable[str]]) -> StorePlace:
        """Return a place of the store that there is; it may be lost while a way to it is opened."""
        while True:
            store = await self._current()
            try:
                found = await path(store)
            except SkywardError:
                if self._store is store:
                    raise
            else:
                if self._store is store:
                    return StorePlace(found, store.password, store.generation)

    async def _path_for_client(self, store: _Store) -> str:
        if isinstance(store.shell.instance.address, LocalAddress):
            return store.path
        if self._door is None:
            door = ClientDoor(store.dial)
            self._door = door, asyncio.ensure_future(door.open())
        return await asyncio.shield(self._door[1])

    async def _path_for_node(self, shell: NodeShell, store: _Store) -> str:
        both_here = all(isinstance(each.instance.address, LocalAddress) for each in (shell, store.shell))
        if both_here or shell is store.shell:
            return store.path
        if shell not in self._routes:
            route = NodeRoute(shell, store.number, store.dial)
            self._routes[shell] = route, asyncio.ensure_future(route.open())
        made = self._routes[shell]
        try:
            return await asyncio.shield(made[1])
        except SkywardError:
            # The next task tries again.
            if self._routes.get(shell) is made:
                del self._routes[shell]
            raise

    def said(self, shell: NodeShell, body: bytes) -> None:
        """
        Take a STORE frame of a node's.

        Args:
            shell: The node.
            body: The frame's body.

        Raises:
            ProtocolError: If it is malformed.
        """
        match store_said.decode(body):
            case Where():
                # An agent asks again once it was answered.
                if shell not in self._asking:
                    self._asking.add(shell)
                    self._spawn(self._answer(shell))
            case ServerEnded(number, why):
                store = self._store
                if store is not None and store.shell is shell and store.number == number:
                    self._lose(f"its server ended: {why}")

    def node_ready(self) -> None:
        """Record that a node takes calls."""
        self._node_is_ready.set()

    def node_gone(self, shell: NodeShell) -> None:
        """Record that a node is lost or terminated."""
        self._answered.discard(shell)
        if (route := self._routes.pop(shell, None)) is not None:
            self._spawn(route[0].close())
        if self._store is not None and self._store.shell is shell:
            self._lose(f"{shell.where} is gone")

    async def close(self) -> None:
        """End what leads to the store; its server ends with its node."""
        self._closed = True
        self._store = None
        if self._starting is not None:
            self._starting.cancel()
        self._drop()
        while self._tasks:
            await asyncio.wait(list(self._tasks))

    async def _current(self) -> _Store:
        check_joined(self._options, self._pool)
        while self._store is None:
            if self._closed:
                raise PoolClosedError(f"The pool {self._pool!r} is closed.", pool=self._pool)
            if self._starting is None:
                self._starting = asyncio.ensure_future(self._start_and_keep())
                # What it raises is raised for each that waits, of which there may be none by then.
                self._starting.add_done_callback(lambda task: task.cancelled() or task.exception())
            starting = self._starting
            try:
                await asyncio.shield(starting)
            except asyncio.CancelledError:
                # Unless it is this one that is cancelled.
                if not starting.cancelled():
                    raise
        return self._store

    async def _start_and_keep(self) -> None:
        """Start a store; it is known, or may be started again, before the task is done that others wait for."""
        try:
            store = await self._start()
            if not self._closed and not store.shell.leaving:
                self._store = store
        finally:
            self._starting = self._chosen = None

    async def _start(self) -> _Store:
        """Start a store on the head; on the next one if that is lost meanwhile."""
        await self._a_node()
        began = time.monotonic()
        try:
            async with asyncio.timeout(STARTS_WITHIN):
                for last in (*(False,) * (ATTEMPTS - 1), True):
                    shell = self._chosen = await self._head()
                    try:
                        store = await self._start_on(shell)
                    except ProvisionError:
                        if last or not shell.leaving:
                            raise
                        continue
                    _log.info(
                        "store.ready pool=%s node=%s after=%.1fs", self._pool, shell.index, time.monotonic() - began
                    )
                    return store
        except TimeoutError:
            raise ProvisionError(
                f"The store of the collections of pool {self._pool!r} was not there within {STARTS_WITHIN:g} s.",
                pool=self._pool,
                hint="Install valkey on the nodes, as by Image(apt=['valkey-server']).",
            ) from None
        raise AssertionError

    async def _a_node(self) -> None:
        """
        Wait for a node, which a pool that has drained to zero starts first.

        Raises:
            ProvisionError: If none is ready in time.
        """
        if self._ready() or not self._wake():
            return
        try:
            async with asyncio.timeout(NODE_WITHIN):
                await self._head()
        except TimeoutError:
            raise ProvisionError(
                f"The store of the collections of pool {self._pool!r} has no node: none was ready within "
                f"{NODE_WITHIN:g} s.",
                pool=self._pool,
                hint="Call a function first, which says why none can be had.",
            ) from None

    async def _start_on(self, shell: NodeShell) -> _Store:
        self._number += 1
        number, password = self._number, secrets.token_hex(32)
        local = isinstance(shell.instance.address, LocalAddress)
        asked = {
            "number": number,
            "password": password,
            "tools": _tools() if local else "",
            # This machine is the user's own, where Skyward installs no system packages.
            "packages": not local,
        }
        answer = await shell.ask({"store": asked})
        if "path" not in answer:
            raise ProvisionError(
                f"{shell.where} has no server for the collections: {answer.get('failed')}.",
                node=shell.index,
                pool=self._pool,
                hint="Install one: apt-get install valkey-server, or redis-server."
                if local
                else "Have the image bring one: Image(apt=['valkey-server']), or redis-server.",
            )
        generation = secrets.token_hex(8)
        return _Store(shell, number, generation, str(answer["path"]), password)

    async def _head(self) -> NodeShell:
        """Wait for a node that takes calls."""
        while True:
            self._node_is_ready.clear()
            for shell in self._ready():
                if not shell.leaving:
                    return shell
            self._wake()
            await self._node_is_ready.wait()

    async def _answer(self, shell: NodeShell) -> None:
        """Answer a node that asks where the store is."""
        try:
            body = (await self.for_node(shell)).encode()
        except SkywardError as error:
            body = store_said.encode_refusal(error)
        finally:
            self._asking.discard(shell)
        if shell.link is not None:
            self._answered.add(shell)
            shell.link.send_store(body)

    def _lose(self, why: str) -> None:
        """Record that the store is gone: what is connected is broken off, and nodes forget where it was."""
        store, self._store = self._store, None
        assert store is not None
        if not self._closed:
            _log.warning(
                "The store of the collections of pool %r is lost, and what was in it: %s. The next task that uses "
                "one gets a new store.",
                self._pool,
                why,
            )
        self._drop()
        answered, self._answered = self._answered, set()
        for shell in answered:
            if shell.link is not None:
                shell.link.send_store(StoreGone(store.generation).encode())

    def _drop(self) -> None:
        """Close the ways to the store."""
        routes, self._routes = self._routes, {}
        for route, _ in routes.values():
            self._spawn(route.close())
        door, self._door = self._door, None
        if door is not None:
            self._spawn(door[0].close())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._engine.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _tools() -> str:
    """Return where wheels are installed to on this machine."""
    from skyward.engine.source.environment import cache_entry

    return str(cache_entry("tools"))
