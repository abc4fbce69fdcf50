"""Where a request names the bucket is what the storage says, and a store that knows one way only answers to it."""

# ruff: noqa: ASYNC240  # small files, in a loop in which nothing else runs
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve

from skyward.node.volumes.volume_order import VolumeOrder
from tests.storage.proxy import Proxy
from tests.storage.stores import NAME, Server
from tests.volumes.site import Site, run

pytestmark = pytest.mark.slow


@pytest.fixture
def named(server: Server, order: VolumeOrder, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> VolumeOrder:
    """Return a volume of a store with a name, which the proxy finds."""
    if server.name == "moto":
        pytest.skip("moto takes no names below this one")
    monkeypatch.setenv("http_proxy", proxy.url)
    return evolve(order, endpoint=f"http://{NAME}", synced=True, read_only=False)


@pytest.mark.parametrize("path_style", [True, False])
def test_the_bucket_stands_in_the_path_or_in_the_host(
    site: Site,
    named: VolumeOrder,
    proxy: Proxy,
    put: Callable[..., None],
    got: Callable[[str], bytes],
    path_style: bool,
) -> None:
    """Objects are read and written either way."""
    put(a=b"one")

    async def body() -> None:
        async with site.keeping(evolve(named, path_style=path_style)) as keeper:
            assert b"one" == Path(named.mount, "a").read_bytes()
            Path(named.mount, "b").write_bytes(b"two")
            while (await keeper.ask({"do": "flush", "within": 10.0}))["unwritten"]:
                pass

    run(body())
    assert b"two" == got("b")
    host = NAME if path_style else f"{named.bucket}.{NAME}"
    assert {host} == {asked.headers["Host"] for asked in proxy.asked}


@pytest.mark.parametrize("host", ["storage.googleapis.com", "s3.us-east-1.amazonaws.com"])
def test_stores_that_rclone_knows_are_asked_by_paths_as_well(
    site: Site, named: VolumeOrder, proxy: Proxy, put: Callable[..., None], host: str
) -> None:
    """No certificate is for a host with the dots of a bucket's name in it."""
    put(a=b"one")
    volume = evolve(named, endpoint=f"http://{host}", path_style=True, read_only=True)

    async def body() -> None:
        async with site.keeping(volume):
            assert b"one" == Path(volume.mount, "a").read_bytes()

    run(body())
    assert {host} == {asked.headers["Host"] for asked in proxy.asked}
