"""A node's connections to a store on another one: some are held ready, and a lost link costs those that it had."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from skyward.engine.store import node_route as room
from skyward.engine.store.node_route import READY, NodeRoute
from skyward.errors import ProvisionError
from tests.engine.store.standins import StandIn, said_back
from tests.stores import node_directory, soon


@asynccontextmanager
async def _route() -> AsyncIterator[tuple[NodeRoute, Any, Any]]:
    with node_directory() as directory:
        head, node = StandIn(directory, 0), StandIn(directory, 1)
        path = (await head.start({"number": 1}))["path"]
        route = NodeRoute(node, 1, lambda: head.host.dial_socket(path))  # type: ignore[arg-type]  # it stands in
        try:
            yield route, head, node
        finally:
            await route.close()
            for each in (head, node):
                each.end()


def _run(look: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await look()

    asyncio.run(bounded())


def test_connections_are_held_ready() -> None:
    """And one more for each that a task takes."""

    async def look() -> None:
        async with _route() as (route, head, node):
            path = await route.open()
            await soon(lambda: head.dials == node.dials == READY)
            assert b"PING" == await said_back(path, b"ping")
            await soon(lambda: head.dials == node.dials == READY + 1)

    _run(look)


def test_many_tasks_at_once_are_all_led() -> None:
    """More than are held ready."""

    async def look() -> None:
        async with _route() as (route, _, _):
            path = await route.open()
            words = [b"w%d" % number for number in range(40)]
            assert [word.upper() for word in words] == await asyncio.gather(*(said_back(path, word) for word in words))

    _run(look)


def test_a_link_that_is_cut_is_tried_again() -> None:
    """Tasks that come meanwhile wait."""

    async def look() -> None:
        async with _route() as (route, head, node):
            head.cut = True
            path = await route.open()
            await soon(lambda: head.dials > READY)
            assert 0 == node.dials
            asked = asyncio.ensure_future(said_back(path, b"ping"))
            head.cut = False
            assert b"PING" == await asked

    _run(look)


def test_what_the_server_closes_is_not_kept_ready() -> None:
    """Another connection takes its place."""

    async def look() -> None:
        async with _route() as (route, _, node):
            path = await route.open()
            await soon(lambda: len(node.route._ready) == READY)
            node.route.reset()
            await soon(lambda: len(node.route._ready) == READY)
            assert 2 * READY == node.dials
            assert b"PING" == await said_back(path, b"ping")

    _run(look)


def test_a_node_that_does_not_listen_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or is not waited for."""
    monkeypatch.setattr(room, "OPENED_WITHIN", 0.05)

    async def refuse(question: dict[str, Any]) -> dict[str, Any]:
        return {"failed": "AF_UNIX path too long"}

    async def hang(question: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(1000)
        raise AssertionError

    async def look() -> None:
        for answer, said in (
            (refuse, "cannot listen for its tasks: AF_UNIX"),
            (hang, "did not listen .* within 0.05 s"),
        ):
            async with _route() as (route, _, node):
                node.ask = answer
                with pytest.raises(ProvisionError, match=said):
                    await route.open()

    _run(look)


def test_a_node_has_no_more_than_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is hostile does not exhaust the client's descriptors."""
    monkeypatch.setattr(room, "MOST", 4)

    async def look() -> None:
        async with _route() as (route, head, _):
            path = await route.open()
            held = []
            for _ in range(4):
                reader, writer = await asyncio.open_unix_connection(path)
                writer.write(b"ping")
                await reader.readexactly(4)
                held.append(writer)
            await asyncio.sleep(0.1)
            assert 4 == head.dials
            held.pop().close()
            assert b"PING" == await said_back(path, b"ping")
            for writer in held:
                writer.close()

    _run(look)
