"""
What the tests of object stores share: servers, buckets of their own, and a proxy with faults.

Each module says which servers it asks, by a fixture `server`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from skyward_storage import Storage
from tests.storage.fixtures import bucket, proxy, servers, store
from tests.storage.proxy import Proxy
from tests.storage.stores import content_of, storage_at

__all__ = ["behind", "bucket", "file", "proxy", "servers", "store"]


@pytest.fixture
def behind(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Storage]]:
    """Return a function that gives the server behind the proxy as a storage, whose faults are tried again soon."""
    monkeypatch.setattr("skyward_storage.failure._LONGEST_BACK_OFF", 0.1)
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(storage_at(proxy.url, **settings))


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that makes a file of a size."""

    def made(size: int, name: str = "source.bin", seed: int = 0) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content_of(size, seed))
        return path

    return made
