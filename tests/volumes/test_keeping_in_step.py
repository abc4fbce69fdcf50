"""A copied bucket is kept in step both ways, with a real object store and real rclone."""

# ruff: noqa: ASYNC240  # small files, in a loop in which nothing else runs
from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from skyward.node.volumes import bucket_fetch
from skyward.node.volumes.keeper import VolumeKeeper
from skyward.node.volumes.volume_order import VolumeOrder
from skyward_storage import Storage
from tests.storage.proxy import Asked, Fault, Proxy
from tests.volumes.site import Site, run
from tests.waiting import until_async

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """List the bucket more often than usual."""
    monkeypatch.setattr(bucket_fetch, "FETCH_EVERY", 0.3)
    monkeypatch.setattr(bucket_fetch, "LISTING_SHARE", 1.0)


@pytest.fixture
def copied(order: VolumeOrder, proxy: Proxy) -> VolumeOrder:
    """Return a volume that is copied, and written to."""
    return evolve(order, synced=True, read_only=False, endpoint=proxy.url)


@pytest.fixture
def remove(store: Storage, bucket: str) -> Callable[[str], None]:
    """Return a function that removes an object as others do."""

    def removed(key: str) -> None:
        store.rm(bucket, key)

    return removed


@contextlib.asynccontextmanager
async def keeping(site: Site, order: VolumeOrder) -> AsyncIterator[VolumeKeeper]:
    """Keep a volume in this process."""
    keeper = VolumeKeeper()
    try:
        said = await keeper.open(
            {"orders": [order.to_dict()], "folder": site.folder, "tools": site.tools, "packages": False}
        )
        assert "failed" not in said, said
        yield keeper
    finally:
        await keeper.close()


async def flushed(keeper: VolumeKeeper) -> None:
    """Wait until all is in the bucket."""
    while (await keeper.flush(10.0))["unwritten"]:
        pass


def listings(proxy: Proxy) -> int:
    """Count how often the bucket was listed."""
    return proxy.count(lambda asked: asked.method == "GET" and "prefix=" in asked.path)


def contents(order: VolumeOrder) -> dict[str, bytes]:
    """Return the files of a volume."""
    return {
        str(path.relative_to(order.mount)): path.read_bytes() for path in Path(order.mount).rglob("*") if path.is_file()
    }


@pytest.mark.parametrize("read_only", [True, False])
def test_what_others_do_in_the_bucket_is_done_on_the_node(
    site: Site, copied: VolumeOrder, put: Callable[..., None], remove: Callable[[str], None], read_only: bool
) -> None:
    """Objects that are added, changed or removed; also to a volume that is only read."""
    put(kept=b"one", changed=b"two", gone=b"three", b__c=b"four")
    volume = evolve(copied, read_only=read_only)

    async def body() -> None:
        async with keeping(site, volume):
            put(changed=b"longer", made=b"five", b__d__e=b"six")
            remove("gone")
            there = {"kept": b"one", "changed": b"longer", "b/c": b"four", "made": b"five", "b/d/e": b"six"}
            await until_async(lambda: there == contents(volume))

    run(body())


def test_a_volume_may_be_on_a_disk_of_its_own(
    site: Site, copied: VolumeOrder, put: Callable[..., None], remove: Callable[[str], None], tmp_path: Path
) -> None:
    """What is on its way passes through a hidden folder there, which is no part of the bucket and gone afterwards."""
    if not os.access("/dev/shm", os.W_OK) or os.stat("/dev/shm").st_dev == tmp_path.stat().st_dev:
        pytest.skip("needs two filesystems")
    put(changed=b"two", gone=b"three")

    async def body() -> None:
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            site.folder = f"{folder}/keeper"
            async with keeping(site, copied) as keeper:
                put(changed=b"longer", made__one=b"five")
                remove("gone")
                there = {"changed": b"longer", "made/one": b"five"}
                await until_async(lambda: there == contents(copied))
                await flushed(keeper)
                assert ["changed", "made"] == sorted(os.listdir(copied.mount))

    run(body())


def test_a_bucket_that_is_empty_is_believed_the_second_time(
    site: Site, copied: VolumeOrder, put: Callable[..., None], remove: Callable[[str], None], proxy: Proxy
) -> None:
    """An answer of another place would look the same."""
    put(a=b"one", b=b"two")

    async def body() -> None:
        async with keeping(site, copied):
            proxy.asked.clear()
            remove("a")
            remove("b")
            await until_async(lambda: not contents(copied))
            assert listings(proxy) >= 2

    run(body())


def test_a_bucket_as_it_was_costs_one_listing_a_period(
    site: Site, copied: VolumeOrder, put: Callable[..., None], proxy: Proxy
) -> None:
    """And none for its files, whatever was fetched or sent before."""
    put(**{f"file-{number}": b"one" for number in range(30)})

    async def body() -> None:
        async with keeping(site, copied):
            put(made=b"two")
            Path(copied.mount, "mine").write_bytes(b"three")
            await until_async(lambda: {"made", "mine"} <= contents(copied).keys())
            await until_async(lambda: proxy.count(lambda asked: asked.method == "PUT") > 0)
            settled = listings(proxy) + 3
            await until_async(lambda: listings(proxy) >= settled)
            proxy.asked.clear()
            await until_async(lambda: len(proxy.asked) >= 4)
            assert len(proxy.asked) == listings(proxy)

    run(body())


def test_what_the_node_wrote_stays_and_goes_to_the_bucket(
    site: Site,
    copied: VolumeOrder,
    put: Callable[..., None],
    got: Callable[[str], bytes],
    proxy: Proxy,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Where both changed a file the node's wins, and the user is told."""
    put(both=b"one")
    fault = Fault(meets=lambda asked: asked.method == "PUT", times=100_000, refuse=(503, "SlowDown"))
    proxy.add(fault)
    said: list[str] = []

    def noted() -> bool:
        said.append(capsys.readouterr().out)
        return "both changed on the node and in the bucket; what the node wrote is kept" in "".join(said)

    async def body() -> None:
        async with keeping(site, copied) as keeper:
            Path(copied.mount, "both").write_bytes(b"mine")
            put(both=b"of others")
            await until_async(noted)
            assert {"both": b"mine"} == contents(copied)
            fault.times = 0
            await flushed(keeper)

    run(body())
    assert b"mine" == got("both")


def test_what_others_make_of_a_file_that_was_sent_is_fetched(
    site: Site, copied: VolumeOrder, put: Callable[..., None], got: Callable[[str], bytes]
) -> None:
    """Also of the same size, and before the bucket was listed since: then checksums are compared."""

    def is_there() -> bool:
        with contextlib.suppress(Exception):
            return bool(got("a"))
        return False

    async def body() -> None:
        async with keeping(site, copied):
            Path(copied.mount, "a").write_bytes(b"mine")
            await until_async(is_there)
            put(a=b"ours")
            await until_async(lambda: {"a": b"ours"} == contents(copied))

    run(body())


def test_what_the_node_removes_is_not_fetched_again(
    site: Site, copied: VolumeOrder, put: Callable[..., None], proxy: Proxy, store: Storage, bucket: str
) -> None:
    """Neither before it is removed from the bucket, nor afterwards."""
    put(a=b"one", b=b"two")
    fault = Fault(meets=lambda asked: asked.method == "DELETE", times=100_000, refuse=(503, "SlowDown"))
    proxy.add(fault)

    async def body() -> None:
        async with keeping(site, copied) as keeper:
            Path(copied.mount, "a").unlink()
            later = listings(proxy) + 3
            await until_async(lambda: listings(proxy) >= later)
            assert {"b": b"two"} == contents(copied)
            fault.times = 0
            await flushed(keeper)

    run(body())
    assert ["b"] == store.ls(bucket)


def test_a_listing_that_fails_removes_nothing(
    site: Site, copied: VolumeOrder, put: Callable[..., None], proxy: Proxy, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is tried again, and the user is told."""
    put(a=b"one")
    said: list[str] = []

    def noted() -> bool:
        said.append(capsys.readouterr().out)
        return "what others changed in the bucket was not fetched" in "".join(said)

    async def body() -> None:
        async with keeping(site, copied):
            fault = Fault(meets=lambda asked: asked.method == "GET", times=100_000, refuse=(403, "AccessDenied"))
            proxy.add(fault)
            await until_async(noted)
            assert {"a": b"one"} == contents(copied)
            fault.times = 0
            put(b=b"two")
            await until_async(lambda: {"a": b"one", "b": b"two"} == contents(copied))

    run(body())


def test_what_is_cut_off_on_its_way_is_in_no_file(
    site: Site, copied: VolumeOrder, put: Callable[..., None], proxy: Proxy
) -> None:
    """A file is what it was, or whole."""
    old, new = b"one", os.urandom(3 << 20)
    put(a=old)
    seen: set[bytes] = set()

    async def body() -> None:
        async with keeping(site, copied):
            meets: Callable[[Asked], bool] = lambda asked: asked.method == "GET" and "/a" in asked.path
            proxy.add(Fault(meets=meets, times=5, cut_after=100_000))
            put(a=new)

            def is_new() -> bool:
                seen.add(Path(copied.mount, "a").read_bytes())
                return new in seen

            await until_async(is_new)

    run(body())
    assert {old, new} == seen


def test_a_name_that_can_be_no_file_is_passed_over(
    site: Site, copied: VolumeOrder, put: Callable[..., None], proxy: Proxy
) -> None:
    """As one below a file; the others are fetched, and it is not asked for again and again."""
    put(a=b"one")
    below: Callable[[Any], bool] = lambda asked: "/a/b" in asked.path

    async def body() -> None:
        async with keeping(site, copied):
            put(a__b=b"two", made=b"three")
            await until_async(lambda: {"a": b"one", "made": b"three"} == contents(copied))
            later, asked = listings(proxy) + 3, proxy.count(below)
            await until_async(lambda: listings(proxy) >= later)
            assert asked == proxy.count(below)

    run(body())
