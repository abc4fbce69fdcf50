"""A storage is an argument of a call like any other: functions on nodes use it with the keys that it brings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import skyward as sky
from skyward_storage import Storage
from tests.storage.stores import Server, checking


@pytest.fixture(params=["moto", *(pytest.param(name, marks=pytest.mark.slow) for name in checking(__name__))])
def server(request: pytest.FixtureRequest, servers: Callable[[str], Server]) -> Server:
    """Return each kind of server in turn; the one that checks what it receives takes seconds to start."""
    return servers(request.param)


@pytest.mark.slow
def test_a_function_uploads_what_it_made(store: Storage, bucket: str, tmp_path: Path) -> None:
    """And this program downloads it."""

    @sky.function
    def make(storage: Storage, place: str) -> list[str]:
        Path("made.txt").write_text("made on a node")
        storage.upload(place, "made.txt", key="results/made.txt")
        return storage.ls(place)

    with sky.Compute(console="silent") as pool:
        assert ["results/made.txt"] == make(store, bucket) >> pool
    store.download(bucket, "results/made.txt", tmp_path / "made.txt")
    assert "made on a node" == (tmp_path / "made.txt").read_text()
