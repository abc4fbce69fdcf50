"""What is written to a copied bucket arrives whole, and costs no more requests than it has files."""

# ruff: noqa: ASYNC240  # small files, in a loop in which nothing else runs
from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve

from skyward.node.volumes.volume_order import VolumeOrder
from tests.storage.proxy import Asked, Fault, Proxy
from tests.storage.stores import Server
from tests.volumes.site import Site, run

pytestmark = pytest.mark.slow


@pytest.fixture
def behind(order: VolumeOrder, proxy: Proxy) -> VolumeOrder:
    """Return a volume that is copied, and written to, through the proxy."""
    return evolve(order, read_only=False, synced=True, endpoint=proxy.url)


async def written(site: Site, volume: VolumeOrder, **contents: bytes) -> None:
    """Write files to a volume, and wait until they are in the bucket."""
    async with site.keeping(volume) as keeper:
        for name, content in contents.items():
            Path(volume.mount, name).write_bytes(content)
        while (await keeper.ask({"do": "flush", "within": 10.0}))["unwritten"]:
            pass


def test_a_file_costs_one_request(site: Site, behind: VolumeOrder, proxy: Proxy) -> None:
    """The answer to it has the checksum of what arrived."""
    run(written(site, behind, **{f"file-{number}": b"one" for number in range(20)}))
    of_files: Callable[[Asked], bool] = lambda asked: "/file-" in asked.path
    assert 20 == proxy.count(of_files)


def test_what_arrives_damaged_is_sent_again(
    server: Server, site: Site, behind: VolumeOrder, proxy: Proxy, got: Callable[[str], bytes]
) -> None:
    """Each request has the checksum of its file, which the store compares."""
    if server.name == "moto":
        pytest.skip("moto takes what it gets")
    content = os.urandom(100_000)
    damage = Fault(meets=lambda asked: asked.method == "PUT", times=1, damage_request=True)
    proxy.add(damage)
    run(written(site, behind, a=content))
    assert 0 == damage.times
    assert content == got("a")


def test_an_answer_that_is_lost_leaves_a_file_unwritten_until_it_is_sent_again(
    site: Site, behind: VolumeOrder, proxy: Proxy, got: Callable[[str], bytes]
) -> None:
    """Whatever the store has of it by then."""
    proxy.add(Fault(meets=lambda asked: asked.method == "PUT", times=2, lose_answer=True))
    run(written(site, behind, a=b"one"))
    assert b"one" == got("a")
    assert 3 == proxy.count(lambda asked: asked.method == "PUT")
