"""
Fixtures of an object store: servers, one of them as a storage, a proxy in front of it, and a bucket.

A `conftest` takes those that its tests use, and says by a fixture `server` which server they ask.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from skyward_storage import Storage
from tests.storage.proxy import Proxy
from tests.storage.stores import SERVERS, Server, storage_at

__all__ = ["bucket", "proxy", "servers", "store"]


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Server]]:
    """Return a function that starts a server once, and gives it."""
    running: dict[str, Server] = {}
    with ExitStack() as stack:

        def start(name: str) -> Server:
            if name not in running:
                running[name] = Server(name, SERVERS[name](stack, tmp_path_factory.mktemp(name)))
            return running[name]

        yield start


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    """Return a proxy in front of the server."""
    proxy = Proxy(server.url)
    yield proxy
    proxy.close()


@pytest.fixture
def store(server: Server) -> Iterator[Storage]:
    """Return the server as a storage."""
    with storage_at(server.url) as storage:
        yield storage


@pytest.fixture
def bucket(store: Storage) -> Iterator[str]:
    """Return a bucket that is the test's alone."""
    name = f"test-{random.SystemRandom().getrandbits(48):x}"
    client = store._line.client()
    client.create_bucket(Bucket=name)
    yield name
    for upload in client.list_multipart_uploads(Bucket=name).get("Uploads", ()):
        client.abort_multipart_upload(Bucket=name, Key=upload["Key"], UploadId=upload["UploadId"])
    for key in store.ls(name):
        client.delete_object(Bucket=name, Key=key)
    client.delete_bucket(Bucket=name)
