"""
What the tests of volumes share: an object store that is not ours, a bucket of their own, rclone, and folders.

The store is SeaweedFS, whose wheel is for one kind of machine only; elsewhere it is moto's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from skyward.node.volumes.mount_point import mounted
from skyward.node.volumes.volume_order import VolumeOrder
from skyward_storage import Storage
from tests.storage.fixtures import bucket, proxy, servers, store
from tests.storage.stores import ACCESS_KEY, SECRET_KEY, SERVERS, Server
from tests.volumes.site import Site
from tests.waiting import until

__all__ = ["bucket", "got", "mount", "order", "proxy", "put", "server", "servers", "site", "store"]


@pytest.fixture(scope="session")
def server(servers: Callable[[str], Server]) -> Server:
    """Return a server that runs."""
    return servers("seaweedfs" if "seaweedfs" in SERVERS else "moto")


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


@pytest.fixture
def order(server: Server, bucket: str, mount: str) -> VolumeOrder:
    """Return a volume of the test's bucket."""
    return VolumeOrder(
        bucket=bucket,
        mount=mount,
        endpoint=server.url,
        region="us-east-1",
        access_key=ACCESS_KEY,
        secret_key=SECRET_KEY,
    )


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """Return what keepers of the test are asked with."""
    return Site(tmp_path)
