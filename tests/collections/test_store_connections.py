"""Connections of one process, which its tasks find one after the other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from skyward.collections.named_collections import Collections
from skyward.collections.store_connections import StoreConnections
from skyward.errors import CollectionError, StoreLostError, UsageError
from tests.collections.store_server import StoreServer, address_of


def _task(store: StoreServer, connections: StoreConnections, holder: str, generation: str = "first") -> Collections:
    return Collections(lambda: address_of(store, holder, generation=generation), connections=connections, patience=1)


def _received(store: StoreServer) -> int:
    """Count the connections that the store has ever taken, this one left out."""
    client = store.client()
    try:
        return int(client.info("stats")["total_connections_received"]) - 1
    finally:
        client.close()


def test_the_next_task_connects_no_more(store: StoreServer) -> None:
    """Its first operation is one round trip: it finds a connection, and what the name stands for."""
    connections = StoreConnections()
    first = _task(store, connections, "first")
    first.counter("c").increment()
    first.finish(True)
    before, looks = _received(store), 1
    for number in range(3):
        task = _task(store, connections, f"task {number}")
        assert number + 2 == task.counter("c").increment()
        task.finish(True)
    assert before + looks == _received(store)
    connections.close()


def test_each_thread_has_its_own(store: StoreServer) -> None:
    """Tasks that run side by side do not wait for each other's replies."""
    connections = StoreConnections()
    tasks = [_task(store, connections, f"task {number}") for number in range(4)]

    def count(task: Collections) -> int:
        return max(task.counter("c").increment() for _ in range(100))

    with ThreadPoolExecutor(4) as pool:
        assert 400 == max(pool.map(count, tasks))
    for task in tasks:
        task.finish(True)
    connections.close()


def test_a_task_that_has_ended_is_refused(store: StoreServer) -> None:
    """Although the connection is still there, which others go on with."""
    connections = StoreConnections()
    ended, other = (_task(store, connections, name) for name in ("ended", "other"))
    counter = ended.counter("c")
    counter.increment()
    ended.finish(True)
    with pytest.raises(CollectionError, match="whose task has ended"):
        counter.increment()
    assert 2 == other.counter("c").increment()
    other.finish(True)
    connections.close()


def test_a_new_store_is_the_next_tasks(own_store: StoreServer) -> None:
    """A task that knows the old one is told that it is lost; what names stood for there is forgotten."""
    connections = StoreConnections()
    generation = ["first"]
    old = Collections(
        lambda: address_of(own_store, "old", generation=generation[0]), connections=connections, patience=1
    )
    shared = old.dict("name")
    shared["k"] = 1
    own_store.end()
    own_store.start()
    generation[0] = "second"
    new = _task(own_store, connections, "new", "second")
    assert 1 == new.counter("name").increment()
    with pytest.raises(StoreLostError, match="a new one was started, which is empty"):
        shared["k"]
    new.finish(True)
    connections.close()


def test_a_name_is_one_kind_for_all_tasks_of_a_process(store: StoreServer) -> None:
    """What is known here is refused as what the store knows."""
    connections = StoreConnections()
    first, second = (_task(store, connections, name) for name in ("first", "second"))
    first.counter("c")
    with pytest.raises(UsageError, match="'c' is a counter in this pool, and cannot be a dict"):
        second.dict("c")
    for task in (first, second):
        task.finish(True)
    connections.close()
