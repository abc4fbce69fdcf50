"""The process that keeps a node's volumes, with a real object store, real rclone and real FUSE."""

# ruff: noqa: ASYNC240  # small files, in a loop in which nothing else runs
from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from skyward.node.volumes.keeper_process import KeeperProcess
from skyward.node.volumes.mount_point import can_mount, mounted
from skyward.node.volumes.rclone_search import NAMED, find_rclone
from skyward.node.volumes.volume_order import VolumeOrder
from skyward_storage import Storage
from tests.storage.proxy import Asked, Fault, Proxy
from tests.storage.stores import SECRET_KEY, Server
from tests.volumes.site import Site, refused, run
from tests.waiting import until

pytestmark = pytest.mark.slow

NEEDS_FUSE = pytest.mark.skipif(not can_mount(), reason="needs /dev/fuse and fusermount")
KINDS = [pytest.param(False, id="mounted", marks=NEEDS_FUSE), pytest.param(True, id="copied")]


def read_while_it_dies(order: VolumeOrder) -> None:
    """Read a file whose mount's process is killed meanwhile."""
    with open(Path(order.mount, "a"), "rb") as file:
        assert b"one" == file.read(3)
        (process,) = rclones(order)
        os.kill(process, signal.SIGKILL)
        while file.read(1 << 20):
            pass


def rclones(order: VolumeOrder) -> list[int]:
    """List the processes of rclone that serve a volume."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if order.mount.encode() in words and b"rclone" in words[0]:
                found.append(int(path.parent.name))
    return found


@pytest.mark.parametrize("synced", KINDS)
def test_objects_are_files(site: Site, order: VolumeOrder, put: Callable[..., None], synced: bool) -> None:
    """Also those below others; and the folder is gone with the process."""
    put(a=b"one", b__c=b"two")

    async def body() -> None:
        async with site.keeping(evolve(order, synced=synced)):
            assert {"a", "b"} == set(os.listdir(order.mount))
            assert (b"one", b"two") == (Path(order.mount, "a").read_bytes(), Path(order.mount, "b/c").read_bytes())

    run(body())
    assert not Path(site.folder).exists()


@pytest.mark.parametrize("synced", KINDS)
def test_a_prefix_is_the_whole_folder(
    site: Site, order: VolumeOrder, put: Callable[..., None], got: Callable[[str], bytes], synced: bool
) -> None:
    """What is written goes below it."""
    put(a=b"one", b__c=b"two")

    async def body() -> None:
        async with site.keeping(evolve(order, prefix="b/", read_only=False, synced=synced)) as keeper:
            assert ["c"] == os.listdir(order.mount)
            Path(order.mount, "d").write_bytes(b"three")
            said = await keeper.ask({"do": "flush", "within": 30.0})
            assert {} == said["unwritten"]

    run(body())
    assert b"three" == got("b/d")


@pytest.mark.parametrize("synced", KINDS)
def test_what_is_written_is_in_the_bucket_at_the_end(
    site: Site, order: VolumeOrder, put: Callable[..., None], got: Callable[[str], bytes], synced: bool
) -> None:
    """New files, changed ones, large ones; and what is removed is gone."""
    put(old=b"one", gone=b"two")
    large = os.urandom(12 << 20)

    async def body() -> None:
        async with site.keeping(evolve(order, read_only=False, synced=synced)) as keeper:
            folder = Path(order.mount)
            (folder / "old").write_bytes(b"changed")
            (folder / "gone").unlink()
            (folder / "made").mkdir()
            (folder / "made" / "large").write_bytes(large)
            (folder / "empty").write_bytes(b"")
            while (said := await keeper.ask({"do": "flush", "within": 30.0}))["unwritten"]:
                assert not said["why"]

    run(body())
    assert (b"changed", large, b"") == (got("old"), got("made/large"), got("empty"))
    with pytest.raises(Exception, match="NoSuchKey"):
        got("gone")


@NEEDS_FUSE
def test_a_read_only_volume_refuses_writes(site: Site, order: VolumeOrder, put: Callable[..., None]) -> None:
    """With the error of any other such folder."""
    put(a=b"one")

    async def body() -> None:
        async with site.keeping(order):
            with pytest.raises(OSError, match=r"Read-only|not permitted|denied"):
                Path(order.mount, "a").write_bytes(b"two")

    run(body())


@pytest.mark.parametrize("synced", KINDS)
def test_no_key_is_in_a_process_list_or_a_file(
    site: Site, order: VolumeOrder, put: Callable[..., None], synced: bool
) -> None:
    """Only in environments, which this user and root alone can read."""
    put(a=b"one")

    async def body() -> None:
        async with site.keeping(evolve(order, synced=synced, read_only=False)):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with contextlib.suppress(OSError):
                    assert SECRET_KEY.encode() not in path.read_bytes()
            for path in Path(site.folder).rglob("*"):
                if path.is_file():
                    assert SECRET_KEY.encode() not in path.read_bytes()

    run(body())
    assert SECRET_KEY not in repr(order)


def test_a_bucket_that_is_not_there_is_one_error(site: Site, order: VolumeOrder) -> None:
    """It names bucket and endpoint, and what to do."""
    said = run(refused(site, evolve(order, bucket="nowhere-to-be-found")))
    assert "NoSuchBucketError" == said["kind"]
    assert "'nowhere-to-be-found'" in said["failed"]
    assert order.endpoint in said["failed"]
    assert "Make the bucket" in said["hint"]
    assert not Path(order.mount).exists()


@pytest.mark.parametrize("wrong", [{"access_key": "AKIANOTTHERE00000000"}, {"secret_key": "another"}])
def test_keys_that_are_refused_are_one_error(
    server: Server, site: Site, order: VolumeOrder, wrong: dict[str, str]
) -> None:
    """And are in no message."""
    if server.name == "moto":
        pytest.skip("moto takes any key")
    said = run(refused(site, evolve(order, **wrong)))
    assert "AccessDeniedError" == said["kind"]
    assert "storage=" in said["hint"]
    assert "another" not in str(said)


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:1", "http://nowhere.invalid", "https://127.0.0.1:{port}"])
def test_a_wrong_endpoint_is_one_error(server: Server, site: Site, order: VolumeOrder, endpoint: str) -> None:
    """It is closed, has no address, or speaks otherwise."""
    address = endpoint.format(port=server.url.rpartition(":")[2])
    said = run(refused(site, evolve(order, endpoint=address)))
    assert "StorageUnavailableError" == said["kind"]
    assert address in said["failed"]
    assert "Correct the endpoint" in said["hint"]


def test_a_folder_with_files_in_it_is_refused(site: Site, order: VolumeOrder, tmp_path: Path) -> None:
    """They would be hidden; they stay."""
    folder = tmp_path / "full"
    folder.mkdir()
    (folder / "mine").write_text("mine")
    said = run(refused(site, evolve(order, mount=str(folder))))
    assert ("ConfigError", f"The folder {folder} is not empty: it has 'mine' in it.") == (said["kind"], said["failed"])
    assert "mine" == (folder / "mine").read_text()


@NEEDS_FUSE
def test_a_folder_where_something_is_mounted_is_refused(
    site: Site, order: VolumeOrder, tmp_path: Path, put: Callable[..., None]
) -> None:
    """By another pool, for example; that goes on."""
    put(a=b"one")
    other = Site(tmp_path / "other")

    async def body() -> None:
        async with site.keeping(order):
            said = await refused(other, order)
            assert "ConfigError" == said["kind"]
            assert f"Something is mounted at {order.mount} (fuse.rclone)" in said["failed"]
            assert b"one" == Path(order.mount, "a").read_bytes()

    run(body())


def test_one_that_cannot_be_had_takes_the_others_along(
    site: Site, order: VolumeOrder, tmp_path: Path, put: Callable[..., None]
) -> None:
    """A node has all of its volumes or none."""
    put(a=b"one")
    missing = evolve(order, bucket="nowhere-to-be-found", mount=str(tmp_path / "other"))
    said = run(refused(site, order, missing))
    assert "NoSuchBucketError" == said["kind"]
    assert not Path(order.mount).exists()
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("read_only", [True, False])
def test_where_nothing_can_be_mounted_it_is_copied(
    site: Site,
    order: VolumeOrder,
    tmp_path: Path,
    put: Callable[..., None],
    got: Callable[[str], bytes],
    monkeypatch: pytest.MonkeyPatch,
    read_only: bool,
) -> None:
    """As in a container; the user is warned, and what is written is copied back."""
    put(a=b"one")
    refused: list[str] = []
    rclone = find_rclone(str(tmp_path / "tools"), refused, packages=False)
    assert rclone is not None, refused
    monkeypatch.setenv(NAMED, rclone.path)
    monkeypatch.setenv("PATH", "/nowhere")

    async def body() -> None:
        keeper = KeeperProcess(asyncio.get_running_loop(), site.notes.append, site.broken.append)
        said = await site.open(keeper, evolve(order, read_only=read_only))
        assert ["/dev/fuse or fusermount is missing" in note for note in said["notes"]] == [True]
        assert read_only is ("copied back" not in said["notes"][0])
        assert b"one" == Path(order.mount, "a").read_bytes()
        Path(order.mount, "b").write_bytes(b"two")
        keeper.close()
        await keeper.wait(30.0)

    run(body())
    if not read_only:
        assert b"two" == got("b")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a folder with room for 1 MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", folder], check=True)
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_copy_that_finds_no_room_is_one_error(
    site: Site, order: VolumeOrder, small_disk: Path, put: Callable[..., None]
) -> None:
    """With what to do; nothing of it stays."""
    put(large=os.urandom(4 << 20))
    said = run(refused(site, evolve(order, mount=str(small_disk / "volume"), synced=True)))
    assert "ConfigError" == said["kind"], said
    assert "the node's disk is full" in said["failed"]
    assert "disk_gb=" in said["hint"]
    assert [] == list(small_disk.iterdir())


@NEEDS_FUSE
def test_a_mount_whose_process_dies_is_mounted_again(site: Site, order: VolumeOrder, put: Callable[..., None]) -> None:
    """A reader has an OSError; the next one reads, and the user is notified."""
    put(a=b"one" * (4 << 20))

    async def body() -> None:
        async with site.keeping(order):
            with pytest.raises(OSError, match=r"not connected|Input/output|abort"):
                read_while_it_dies(order)
            await asyncio.to_thread(until, lambda: site.notes)
            assert b"one" == Path(order.mount, "a").read_bytes()[:3]

    run(body())
    assert "it is mounted again" in site.notes[0]
    assert [] == site.broken


@NEEDS_FUSE
def test_what_a_dead_process_had_not_written_is_written_by_the_next(
    site: Site, order: VolumeOrder, proxy: Proxy, got: Callable[[str], bytes]
) -> None:
    """It is in the cache."""
    fault = Fault(meets=lambda asked: asked.method == "PUT", times=1000, refuse=(503, "SlowDown"))
    proxy.add(fault)

    async def body() -> None:
        async with site.keeping(evolve(order, read_only=False, endpoint=proxy.url)) as keeper:
            Path(order.mount, "a").write_bytes(b"one")
            said = await keeper.ask({"do": "flush", "within": 2.0})
            assert {evolve(order).title: ["a"]} == said["unwritten"]
            (process,) = rclones(order)
            fault.times = 0
            os.kill(process, signal.SIGKILL)
            await asyncio.to_thread(until, lambda: site.notes)
            while (await keeper.ask({"do": "flush", "within": 5.0}))["unwritten"]:
                pass

    run(body())
    assert b"one" == got("a")


@pytest.mark.parametrize("synced", KINDS)
def test_a_store_that_refuses_writes_is_reported_with_the_files(
    site: Site, order: VolumeOrder, proxy: Proxy, synced: bool
) -> None:
    """And with its reason."""
    fault = Fault(meets=lambda asked: asked.method == "PUT", times=100_000, refuse=(403, "AccessDenied"))
    proxy.add(fault)
    volume = evolve(order, read_only=False, endpoint=proxy.url, synced=synced)

    async def body() -> None:
        async with site.keeping(volume) as keeper:
            Path(order.mount, "made").write_bytes(b"one")
            said: dict[str, Any] = {}
            while not said.get("why"):
                said = await keeper.ask({"do": "flush", "within": 3.0})
                assert {order.title: ["made"]} == said["unwritten"]
            assert "AccessDenied" in said["why"]
            fault.times = 0
            while (await keeper.ask({"do": "flush", "within": 5.0}))["unwritten"]:
                pass

    run(body())


@pytest.mark.parametrize("synced", KINDS)
def test_answers_that_are_cut_off_cost_nothing_but_time(
    site: Site, order: VolumeOrder, proxy: Proxy, put: Callable[..., None], synced: bool
) -> None:
    """Rclone asks again."""
    content = os.urandom(8 << 20)
    put(large=content)
    meets: Callable[[Asked], bool] = lambda asked: asked.method == "GET" and asked.path.endswith("/large")
    proxy.add(Fault(meets=meets, times=2, cut_after=100_000))

    async def body() -> None:
        async with site.keeping(evolve(order, endpoint=proxy.url, synced=synced)):
            assert content == await asyncio.to_thread(Path(order.mount, "large").read_bytes)

    run(body())


@pytest.mark.parametrize("synced", KINDS)
def test_a_slow_store_costs_nothing_but_time(
    site: Site,
    order: VolumeOrder,
    proxy: Proxy,
    put: Callable[..., None],
    got: Callable[[str], bytes],
    synced: bool,
) -> None:
    """Whichever way the bytes go."""
    put(a=b"one")
    for method in ("GET", "PUT"):
        proxy.add(Fault(meets=lambda asked, method=method: asked.method == method, times=2, stall=1.5))

    async def body() -> None:
        async with site.keeping(evolve(order, read_only=False, endpoint=proxy.url, synced=synced)) as keeper:
            assert b"one" == await asyncio.to_thread(Path(order.mount, "a").read_bytes)
            Path(order.mount, "b").write_bytes(b"two")
            while (await keeper.ask({"do": "flush", "within": 10.0}))["unwritten"]:
                pass

    run(body())
    assert b"two" == got("b")


@pytest.mark.parametrize("synced", KINDS)
def test_the_end_of_the_client_writes_what_is_left(
    site: Site, order: VolumeOrder, got: Callable[[str], bytes], synced: bool
) -> None:
    """And takes the volume away."""

    async def body() -> None:
        keeper = KeeperProcess(asyncio.get_running_loop(), site.notes.append, site.broken.append)
        said = await site.open(keeper, evolve(order, read_only=False, synced=synced))
        assert "failed" not in said, said
        Path(order.mount, "a").write_bytes(b"one")
        keeper.close()
        await keeper.wait(60.0)

    run(body())
    assert b"one" == got("a")
    assert not mounted(order.mount)
    assert not Path(site.folder).exists()


@pytest.mark.parametrize("synced", KINDS)
def test_two_volumes_of_one_bucket_write_beside_each_other(
    site: Site, order: VolumeOrder, tmp_path: Path, store: Storage, bucket: str, synced: bool
) -> None:
    """Of one file the last that arrives wins, whole, and the files of both are there."""
    first = evolve(order, read_only=False, synced=synced)
    second = evolve(first, mount=str(tmp_path / "second"))
    other = Site(tmp_path / "other")

    async def body() -> None:
        async with site.keeping(first) as one, other.keeping(second) as two:
            for volume, name in ((first, "a"), (second, "b")):
                Path(volume.mount, name).write_text(name)
                Path(volume.mount, "both").write_text(name)
            for keeper in (one, two):
                while (await keeper.ask({"do": "flush", "within": 10.0}))["unwritten"]:
                    pass

    run(body())
    assert ["a", "b", "both"] == store.ls(bucket)
    assert store._line.client().get_object(Bucket=bucket, Key="both")["Body"].read() in (b"a", b"b")


@pytest.mark.parametrize("synced", KINDS)
def test_keys_that_end_are_asked_for_on_the_machine(
    site: Site, order: VolumeOrder, put: Callable[..., None], got: Callable[[str], bytes], synced: bool
) -> None:
    """By rclone, whenever it needs them: those that were sent last."""
    put(a=b"one")
    soon = time.time() + 3600
    volume = evolve(order, read_only=False, synced=synced, expires_at=soon)

    async def body() -> None:
        async with site.keeping(volume) as keeper:
            assert b"one" == Path(order.mount, "a").read_bytes()
            await keeper.ask({"do": "renew", "orders": [evolve(volume, expires_at=soon + 3600).to_dict()]})
            Path(order.mount, "b").write_bytes(b"two")
            while (await keeper.ask({"do": "flush", "within": 10.0}))["unwritten"]:
                pass

    run(body())
    assert b"two" == got("b")
