"""
What the tests of volumes share: an object store that is not ours, a bucket of their own, rclone, and folders.

The store is SeaweedFS, whose wheel is for one kind of machine only; elsewhere it is moto's.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from skyward.node.volumes.mount_point import mounted
from skyward_storage import Storage
from tests.storage.proxy import Proxy
from tests.storage.stores import SERVERS, Server, storage_at
from tests.waiting import until


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Return a server that runs."""
    name = "seaweedfs" if "seaweedfs" in SERVERS else "moto"
    with contextlib.ExitStack() as stack:
        yield Server(name, SERVERS[name](stack, tmp_path_factory.mktemp(name)))


@pytest.fixture
def store(server: Server) -> Iterator[Storage]:
    """Return the server as a storage."""
    with storage_at(server.url) as storage:
        yield storage


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    """Return a proxy in front of the server."""
    proxy = Proxy(server.url)
    yield proxy
    proxy.close()


@pytest.fixture
def bucket(store: Storage) -> Iterator[str]:
    """Return a bucket that is the test's alone."""
    name = f"test-{random.SystemRandom().getrandbits(48):x}"
    client = store._line.client()
    client.create_bucket(Bucket=name)
    yield name
    for key in store.ls(name):
        client.delete_object(Bucket=name, Key=key)
    client.delete_bucket(Bucket=name)


@pytest.fixture
def put(store: Storage, bucket: str) -> Callable[..., None]:
    """Return a function that puts objects, each with its content."""

    def fill(**contents: bytes) -> None:
        client = store._line.client()
        for key, content in contents.items():
            client.put_object(Bucket=bucket, Key=key.replace("__", "/"), Body=content)

    return fill


@pytest.fixture
def got(store: Storage, bucket: str) -> Callable[[str], bytes]:
    """Return a function that reads an object."""

    def read(key: str) -> bytes:
        content: Any = store._line.client().get_object(Bucket=bucket, Key=key)["Body"].read()
        return bytes(content)

    return read


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[str]:
    """Return a folder for a volume, which is free again at the end."""
    folder = tmp_path / "volume"
    yield str(folder)
    until(lambda: not mounted(str(folder)))
    assert not folder.exists()
