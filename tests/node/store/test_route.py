"""Connections of tasks are joined with those that the client holds ready, and broken off with it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from skyward.node.store import route as room
from skyward.node.store.route import StoreRoute
from tests.stores import node_directory

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def _route(away: Callable[[], bool] = lambda: False) -> AsyncIterator[StoreRoute]:
    with node_directory() as directory:
        route = StoreRoute(asyncio.get_running_loop(), directory, 3, away)
        await route.open()
        try:
            yield route
        finally:
            route.close()


async def _said(reader: asyncio.StreamReader, count: int) -> bytes:
    return await asyncio.wait_for(reader.readexactly(count), 10)


async def _end(reader: asyncio.StreamReader) -> bytes:
    try:
        return await asyncio.wait_for(reader.read(), 10)
    except ConnectionError:
        return b""


def test_what_is_held_ready_is_taken_at_once() -> None:
    """Bytes pass both ways, and the end, too."""

    async def look() -> None:
        async with _route() as route:
            client = await asyncio.open_unix_connection(route.door)
            task = await asyncio.open_unix_connection(route.path)
            task[1].write(b"PING")
            assert b"PING" == await _said(client[0], 4)
            client[1].write(b"PONG")
            assert b"PONG" == await _said(task[0], 4)
            task[1].write_eof()
            assert b"" == await _end(client[0])
            client[1].close()
            assert b"" == await _end(task[0])
            task[1].close()

    asyncio.run(look())


def test_a_task_waits_for_the_clients_next_one() -> None:
    """It may come before the client has any."""

    async def look() -> None:
        async with _route() as route:
            tasks = [await asyncio.open_unix_connection(route.path) for _ in range(3)]
            for number, (_, writer) in enumerate(tasks):
                writer.write(b"%d" % number)
            clients = [await asyncio.open_unix_connection(route.door) for _ in range(3)]
            assert {b"0", b"1", b"2"} == {await _said(reader, 1) for reader, _ in clients}
            for _, writer in (*tasks, *clients):
                writer.close()

    asyncio.run(look())


def test_a_task_that_no_client_comes_for_is_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not hang."""
    monkeypatch.setattr(room, "JOINED_WITHIN", 0.1)

    async def look() -> bytes:
        async with _route() as route:
            reader, writer = await asyncio.open_unix_connection(route.path)
            try:
                return await _end(reader)
            finally:
                writer.close()

    assert b"" == asyncio.run(look())


def test_what_the_client_has_closed_is_taken_by_none() -> None:
    """One that was held ready, and whose store is gone, is dropped."""

    async def look() -> None:
        async with _route() as route:
            gone = await asyncio.open_unix_connection(route.door)
            gone[1].close()
            there = await asyncio.open_unix_connection(route.door)
            await asyncio.sleep(0.05)
            task = await asyncio.open_unix_connection(route.path)
            task[1].write(b"PING")
            assert b"PING" == await _said(there[0], 4)
            for _, writer in (there, task):
                writer.close()

    asyncio.run(look())


def test_a_client_that_comes_back_finds_nothing_of_before() -> None:
    """What led through its lost connection hangs, and is broken off."""

    async def look() -> None:
        async with _route() as route:
            client = await asyncio.open_unix_connection(route.door)
            task = await asyncio.open_unix_connection(route.path)
            task[1].write(b"PING")
            await _said(client[0], 4)
            route.reset()
            assert b"" == await _end(task[0])
            for _, writer in (client, task):
                writer.close()

    asyncio.run(look())


def test_a_silent_client_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cut line shows nothing but that heartbeats are missing."""
    monkeypatch.setattr(room, "_LOOKS_EVERY", 0.05)
    away = False

    async def look() -> None:
        nonlocal away
        async with _route(lambda: away) as route:
            client = await asyncio.open_unix_connection(route.door)
            task = await asyncio.open_unix_connection(route.path)
            task[1].write(b"PING")
            await _said(client[0], 4)
            away = True
            assert b"" == await _end(task[0])
            for _, writer in (client, task):
                writer.close()

    asyncio.run(look())


def test_a_store_that_reads_nothing_holds_its_tasks_up() -> None:
    """Buffers are bounded: a writer is paused, and the agent's memory stays as it is."""

    async def look() -> int:
        async with _route() as route:
            client = await asyncio.open_unix_connection(route.door)
            task = await asyncio.open_unix_connection(route.path)
            sent = 0
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    while sent < 64 << 20:
                        task[1].write(bytes(1 << 20))
                        await task[1].drain()
                        sent += 1 << 20
            for _, writer in (client, task):
                writer.transport.abort()
            return sent

    assert 16 << 20 > asyncio.run(look())


def test_other_users_cannot_connect() -> None:
    """Both sockets are this user's alone, and are removed."""

    async def look() -> tuple[list[int], list[str]]:
        async with _route() as route:
            paths = [route.path, route.door]
            modes = [stat.S_IMODE(os.stat(path).st_mode) for path in paths]
        return modes, paths

    modes, paths = asyncio.run(look())
    assert ([0o600, 0o600], []) == (modes, [path for path in paths if os.path.exists(path)])
