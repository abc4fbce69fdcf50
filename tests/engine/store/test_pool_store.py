"""A pool's one store: where it is started, once for all that ask, how it is reached, and what follows its loss."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from skyward.engine.store import pool_store as room
from skyward.engine.store.pool_store import PoolStore
from skyward.errors import PoolClosedError, ProtocolError, ProvisionError, UsageError
from skyward.link.store_said import ServerEnded, StoreGone, StorePlace, Where
from skyward.model.spec.options import Options
from tests.engine.store.standins import StandIn, said_back
from tests.stores import node_directory, soon


@asynccontextmanager
async def _pool(
    make: Callable[[str], list[StandIn]], options: Options | None = None
) -> AsyncIterator[tuple[PoolStore, list[Any]]]:
    with node_directory() as directory:
        nodes: list[Any] = make(directory)
        engine: Any = SimpleNamespace(loop=asyncio.get_running_loop())
        store = PoolStore(engine, "train", options or Options(), lambda: nodes)
        try:
            yield store, nodes
        finally:
            await store.close()
            for node in nodes:
                node.end()


def _two(directory: str) -> list[StandIn]:
    return [StandIn(directory, 0), StandIn(directory, 1)]


def _in_pool(
    look: Callable[[PoolStore, list[Any]], Awaitable[None]],
    make: Callable[[str], list[StandIn]] = _two,
    options: Options | None = None,
) -> None:
    """Look at a pool's store in a loop of its own, of two nodes unless others are made, and end it."""

    async def bounded() -> None:
        async with asyncio.timeout(60), _pool(make, options) as (store, nodes):
            await look(store, nodes)

    asyncio.run(bounded())


def test_it_is_started_once_on_the_head() -> None:
    """Whatever asks, and however many at once."""

    async def look(store: PoolStore, nodes: list[Any]) -> None:
        head, other = nodes
        asking = [*(store.for_node(node) for node in nodes * 3), store.for_client()]
        places = await asyncio.gather(*asking)
        assert 1 == len({(place.generation, place.password) for place in places})
        assert 1 == sum("store" in question for question in head.asked)
        assert ["route"] == [next(iter(question)) for question in other.asked]
        assert 0 == store.node

    _in_pool(look)


def test_a_node_may_ask_at_any_moment_of_the_start() -> None:
    """In the very turn of the loop in which it ends, too: the loop is never held up."""

    async def look(store: PoolStore, nodes: list[Any]) -> None:
        head, other = nodes
        first = asyncio.ensure_future(store.for_node(head))
        others = []
        while not first.done():
            others.append(asyncio.ensure_future(store.for_node(other)))
            await asyncio.sleep(0)
        assert {(await first).generation} == {place.generation for place in await asyncio.gather(*others)}
        assert 1 == sum("store" in question for question in head.asked)

    _in_pool(look)


def test_the_head_connects_to_the_server_itself() -> None:
    """It has its socket."""

    async def look(store: PoolStore, nodes: list[Any]) -> None:
        head, _ = nodes
        place = await store.for_node(head)
        assert place.path == f"{head.directory}/store-1.sock"
        assert b"PING" == await said_back(place.path, b"ping")

    _in_pool(look)


def test_another_node_is_led_through_the_client() -> None:
    """At a socket of its own."""

    async def look(store: PoolStore, nodes: list[Any]) -> None:
        _, other = nodes
        place = await store.for_node(other)
        assert place.path == f"{other.directory}/store-1.in"
        assert [b"ONE", b"OTHER"] == [await said_back(place.path, word) for word in (b"one", b"other")]

    _in_pool(look)


def test_the_client_is_led_to_another_machine() -> None:
    """At a socket of its own, which is gone afterwards."""

    async def look(store: PoolStore, nodes: list[Any]) -> None:
        place = await store.for_client()
        assert place == await store.for_client()
        assert b"PING" == await said_back(place.path, b"ping")
        await store.close()
        with pytest.raises(FileNotFoundError):
            await said_back(place.path, b"ping")

    _in_pool(look)


def test_on_this_machine_all_connect_to_the_server() -> None:
    """Nodes and client are the same user's."""

    async def look(store: PoolStore, nodes: list[Any]) -> None:
        places = [await store.for_client(), *[await store.for_node(node) for node in nodes]]
        assert {f"{nodes[0].directory}/store-1.sock"} == {place.path for place in places}
        assert 1 == len(nodes[0].asked) + len(nodes[1].asked)

    _in_pool(look, lambda directory: [StandIn.here(directory, index) for index in (0, 1)])


@pytest.mark.parametrize(("make", "packages"), [(StandIn.here, False), (StandIn, True)])
def test_no_system_package_is_installed_on_this_machine(make: Callable[[str], StandIn], *, packages: bool) -> None:
    """It is the user's own; elsewhere the distribution's package may be."""

    async def look(store: PoolStore, nodes: list[Any]) -> None:
        [head] = nodes
        await store.for_node(head)
        assert packages is head.asked[0]["store"]["packages"]

    _in_pool(look, lambda directory: [make(directory)])


def test_a_pool_whose_nodes_work_by_themselves_has_none() -> None:
    """Nothing is started."""

    async def look(store: PoolStore, nodes: list[Any]) -> None:
        head, _ = nodes
        for asked in (store.for_client(), store.for_node(head)):
            with pytest.raises(UsageError, match=r"'train' has no collections.*cluster=False.*Leave cluster= out"):
                await asked
        assert [] == head.asked

    _in_pool(look, _two, Options(cluster=False))


def test_a_head_that_has_no_server_says_what_to_do() -> None:
    """The next task tries again."""

    async def none(asked: dict[str, Any]) -> dict[str, Any]:
        return {"failed": "no valkey-server, and no network"}

    async def look(store: PoolStore, nodes: list[Any]) -> None:
        head, _ = nodes
        head.starts = none
        with pytest.raises(ProvisionError, match=r"node 0 has no server .*no network.*Image\(apt=\['valkey-server'"):
            await store.for_client()
        head.starts = head.start
        assert b"PING" == await said_back((await store.for_client()).path, b"ping")

    _in_pool(look)


def test_a_start_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """With an error that names the limit."""
    monkeypatch.setattr(room, "STARTS_WITHIN", 0.05)

    async def hang(asked: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(1000)
        raise AssertionError

    async def look(store: PoolStore, nodes: list[Any]) -> None:
        head, _ = nodes
        head.starts = hang
        with pytest.raises(ProvisionError, match=r"was not there within 0.05 s"):
            await store.for_client()

    _in_pool(look)


def test_a_head_that_is_lost_meanwhile_is_not_waited_for() -> None:
    """The next node that takes calls is the head."""

    async def look(store: PoolStore, nodes: list[Any]) -> None:
        head, other = nodes
        head.starts = head.lost
        place = await store.for_node(other)
        assert place.path == f"{other.directory}/store-2.sock"
        assert 1 == store.node

    _in_pool(look)


def test_without_a_head_the_next_one_is_waited_for() -> None:
    """As while a lost one is being replaced."""

    async def look(store: PoolStore, nodes: list[Any]) -> None:
        asked = asyncio.ensure_future(store.for_client())
        await asyncio.sleep(0.02)
        assert not asked.done()
        with node_directory() as directory:
            nodes.append(StandIn(directory))
            store.node_ready()
            assert b"PING" == await said_back((await asked).path, b"ping")
            await store.close()

    _in_pool(look, lambda directory: [])


def test_the_loss_of_the_head_is_the_loss_of_the_store(caplog: pytest.LogCaptureFixture) -> None:
    """Those that know it are notified, connections break off, and the next one that asks gets a new, empty one."""

    async def look(store: PoolStore, nodes: list[Any]) -> None:
        head, other = nodes
        store.said(other, Where().encode())
        await soon(lambda: other.said)
        (first,) = other.said
        reader, writer = await asyncio.open_unix_connection(first.path)
        writer.write(b"ping")
        await reader.readexactly(4)
        head.leaving = True
        store.node_gone(head)
        assert [first, StoreGone(first.generation)] == other.said
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        writer.close()
        place = await store.for_node(other)
        assert place.generation != first.generation
        assert place.password != first.password
        assert place.path == f"{other.directory}/store-2.sock"

    with caplog.at_level(logging.WARNING):
        _in_pool(look)
    assert "The store of the collections of pool 'train' is lost" in caplog.text


def test_a_store_that_is_lost_while_a_way_to_it_is_opened_is_in_no_answer() -> None:
    """The node is answered with the next one, and nothing of the first is left."""

    async def look(store: PoolStore, nodes: list[Any]) -> None:
        head, other = nodes
        ask, asked, go_on = other.ask, asyncio.Event(), asyncio.Event()

        async def slowly(question: dict[str, Any]) -> dict[str, Any]:
            asked.set()
            await go_on.wait()
            return await ask(question)  # type: ignore[no-any-return]

        other.ask = slowly
        store.said(other, Where().encode())
        store.said(other, Where().encode())
        await asked.wait()
        store.said(head, ServerEnded(1, "SIGKILL").encode())
        head.end()
        go_on.set()
        await soon(lambda: other.said)
        (place,) = other.said
        assert f"{other.directory}/store-2.in" == place.path
        assert b"PING" == await said_back(place.path, b"ping")

    _in_pool(look)


def test_a_server_that_ends_is_a_lost_store() -> None:
    """As when the kernel kills it for lack of memory."""

    async def look(store: PoolStore, nodes: list[Any]) -> None:
        head, other = nodes
        place = await store.for_node(head)
        store.said(other, ServerEnded(1, "not its server").encode())
        store.said(head, ServerEnded(7, "an older one").encode())
        assert place == await store.for_node(head)
        store.said(head, ServerEnded(1, "SIGKILL").encode())
        head.end()
        assert place.generation != (await store.for_node(head)).generation

    _in_pool(look)


def test_a_node_that_is_lost_loses_its_way_alone() -> None:
    """Others, and the one that takes its place, are led to the same store."""

    async def look(store: PoolStore, nodes: list[Any]) -> None:
        _, other = nodes
        place = await store.for_node(other)
        store.node_gone(other)
        with node_directory() as directory:
            stands_in: Any = StandIn(directory, 1)
            again = await store.for_node(stands_in)
            assert place.generation == again.generation
            assert b"PING" == await said_back(again.path, b"ping")
            await store.close()
            stands_in.end()

    _in_pool(look)


def test_a_node_is_answered_with_a_place_or_a_reason() -> None:
    """Its task raises that."""

    async def none(asked: dict[str, Any]) -> dict[str, Any]:
        return {"failed": "no server"}

    async def look(store: PoolStore, nodes: list[Any]) -> None:
        head, _ = nodes
        head.starts = none
        for kind in (ProvisionError, StorePlace):
            store.said(head, Where().encode())
            await soon(lambda: head.said)
            assert kind is type(head.said.pop())
            head.starts = head.start

    _in_pool(look)


@pytest.mark.parametrize("body", [b"", b"{}", b'{"said": "ended", "number": "1", "why": ""}'])
def test_what_makes_no_sense_is_refused(body: bytes) -> None:
    """It costs the node its link."""

    async def look(store: PoolStore, nodes: list[Any]) -> None:
        head, _ = nodes
        with pytest.raises(ProtocolError):
            store.said(head, body)

    _in_pool(look)


def test_a_closed_pool_starts_none() -> None:
    """Neither a new one, nor one that is being started."""

    async def hang(asked: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(1000)
        raise AssertionError

    async def look(store: PoolStore, nodes: list[Any]) -> None:
        head, _ = nodes
        head.starts = hang
        asked = asyncio.ensure_future(store.for_client())
        await asyncio.sleep(0.02)
        await store.close()
        for each in (asked, store.for_client()):
            with pytest.raises(PoolClosedError, match=r"'train' is closed"):
                await each

    _in_pool(look)


def test_a_task_that_is_cancelled_leaves_the_start_to_the_others() -> None:
    """An interrupt of one program's thread is not another's."""

    async def look(store: PoolStore, nodes: list[Any]) -> None:
        head, _ = nodes
        begun = asyncio.Event()

        async def slowly(asked: dict[str, Any]) -> dict[str, Any]:
            begun.set()
            await asyncio.sleep(0.05)
            return await head.start(asked)  # type: ignore[no-any-return]

        head.starts = slowly
        one, other = (asyncio.ensure_future(store.for_client()) for _ in range(2))
        await begun.wait()
        one.cancel()
        assert b"PING" == await said_back((await other).path, b"ping")
        with pytest.raises(asyncio.CancelledError):
            await one
        assert 1 == len(head.asked)

    _in_pool(look)
