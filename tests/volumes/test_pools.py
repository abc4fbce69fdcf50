"""Volumes of whole pools: on this machine, and on others over real SSH."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from skyward.node.volumes.mount_point import can_mount, mounted
from skyward.node.volumes.rclone_search import NAMED, find_rclone
from skyward_storage import Storage
from tests.hosts import SSHD, hosts
from tests.storage.proxy import Fault, Proxy
from tests.storage.stores import storage_at
from tests.waiting import until

pytestmark = pytest.mark.slow

NEEDS_SSHD = pytest.mark.skipif(not Path(SSHD).exists(), reason="needs an OpenSSH server")
NEEDS_FUSE = pytest.mark.skipif(not can_mount(), reason="needs /dev/fuse and fusermount")


@sky.function
def read(path: str) -> bytes:
    return Path(path).read_bytes()


@sky.function
def write(path: str, content: bytes) -> int:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    return Path(path).write_bytes(content)


@sky.function
def names(path: str) -> list[str]:
    return sorted(os.listdir(path))


@sky.function
def kept_open(path: str) -> None:
    """Write to a file that is closed when its process ends, and not before."""
    global _kept
    _kept = open(path, "w")  # noqa: SIM115  # that is the point
    _kept.write("written at the end")
    _kept.flush()


def compute(**settings: Any) -> sky.Compute:
    """Return a pool that is quiet."""
    return sky.Compute(**{"console": "silent", "logging": False, **settings})


def test_on_this_machine_a_volume_may_be_a_folder(tmp_path: Path, mount: str) -> None:
    """All nodes have it; it is a link, gone with the pool."""
    folder = tmp_path / "buckets" / "my-data" / "sets"
    folder.mkdir(parents=True)
    (folder / "a").write_text("one")
    volume = sky.Volume("my-data", mount, prefix="sets", read_only=False, storage=tmp_path / "buckets")
    with compute(nodes=2, volumes=[volume]) as pool:
        assert [b"one", b"one"] == read(f"{mount}/a") @ pool
        write(f"{mount}/b", b"two") >> pool
    assert "two" == (folder / "b").read_text()


@sky.function(retries=1)
def counted() -> list[int]:
    saved = sky.checkpoint()
    seen: list[int] = [*saved.load([]), os.getpid()]
    saved.save(seen)
    if len(seen) == 1:
        os._exit(1)
    return seen


def test_checkpoints_are_on_a_volume_that_survives_nodes(tmp_path: Path, mount: str) -> None:
    """Where a call names no place, and a file on the volume is durable at once."""
    (tmp_path / "buckets" / "my-data").mkdir(parents=True)
    volume = sky.Volume("my-data", mount, read_only=False, storage=tmp_path / "buckets")
    with compute(volumes=[volume]) as pool:
        assert 2 == len(set(counted() >> pool))
    assert list((tmp_path / "buckets" / "my-data" / "skyward-checkpoints").rglob("*.checkpoint"))


def test_a_folder_that_is_not_there_is_refused_before_any_node(tmp_path: Path, mount: str) -> None:
    """As a bucket would be."""
    volume = sky.Volume("my-data", mount, storage=tmp_path)
    with (
        pytest.raises(sky.NoSuchBucketError, match=r"There is no folder .*/my-data for the volume 'my-data'"),
        compute(volumes=volume),
    ):
        pass


def test_a_bucket_without_a_store_is_refused_before_any_node(mount: str) -> None:
    """With what to write."""
    with (
        pytest.raises(sky.ConfigError, match=r"Nothing says where the bucket .* Write storage=sky\.storage\.S3"),
        compute(volumes=[sky.Volume("my-data", mount)]),
    ):
        pass


@pytest.mark.parametrize("kind", [pytest.param("mount", marks=NEEDS_FUSE), "sync"])
def test_on_this_machine_a_volume_may_be_the_bucket(
    store: Storage, bucket: str, put: Callable[..., None], got: Callable[[str], bytes], mount: str, kind: Any
) -> None:
    """Its nodes share the folder, whose changes are in the bucket when the pool has been left."""
    put(a=b"one")
    volume = sky.Volume(bucket, mount, read_only=False, storage=store, type=kind)
    with compute(nodes=2, volumes=[volume]) as pool:
        assert [b"one", b"one"] == read(f"{mount}/a") @ pool
        write(f"{mount}/made/b", b"two") >> pool
    assert b"two" == got("made/b")


def test_a_bucket_that_is_not_there_ends_the_pool_at_once(store: Storage, mount: str) -> None:
    """It is not tried on one machine after the other."""
    volume = sky.Volume("nowhere-to-be-found", mount, storage=store)
    began = time.monotonic()
    with (
        pytest.raises(sky.NoSuchBucketError, match=r"'nowhere-to-be-found' at .* there is no such bucket"),
        compute(volumes=[volume]),
    ):
        pass
    assert time.monotonic() - began < 30


@NEEDS_SSHD
@pytest.mark.parametrize("kind", [pytest.param("mount", marks=NEEDS_FUSE), "sync"])
def test_another_machine_has_the_bucket(
    server: Any, bucket: str, put: Callable[..., None], got: Callable[[str], bytes], mount: str, kind: Any
) -> None:
    """Keys may come from coroutines; what tasks wrote is in the bucket, also in files that were never closed."""
    put(a=b"one")

    async def key() -> str:
        return str(storage_at(server.url).secret_key)

    store = storage_at(server.url)
    store = sky.Storage(store.endpoint, store.access_key, key, path_style=True, region="us-east-1")
    volume = sky.Volume(bucket, mount, read_only=False, storage=store, type=kind)
    with (
        hosts(1, env=_rclone()) as (made, private),
        compute(
            provider=sky.SSH(
                hosts=[f"{made[0].address}:{made[0].port}"],
                key=str(private),
                known_hosts=str(private.with_name("known_hosts")),
            ),
            volumes=[volume],
            ttl=60,
        ) as pool,
    ):
        assert b"one" == read(f"{mount}/a") >> pool
        assert ["a"] == names(mount) >> pool
        write(f"{mount}/b", b"two" * 1000) >> pool
        kept_open(f"{mount}/c") >> pool
        pool_left = made[0]
    assert (b"two" * 1000, b"written at the end") == (got("b"), got("c"))
    assert not mounted(mount)
    assert [] == list(pool_left.cache.glob("nodes/*"))


@NEEDS_SSHD
def test_what_cannot_be_written_is_raised_when_the_pool_is_left(
    bucket: str,
    got: Callable[[str], bytes],
    proxy: Proxy,
    mount: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After the machine was kept for `ttl` seconds, with a log of what, where and how to reach it."""
    from skyward.engine.volumes import pool_volumes

    monkeypatch.setattr(pool_volumes, "STALLED", 1.0)
    monkeypatch.setattr(pool_volumes, "FLUSH_ROUND", 1.0)
    fault = Fault(meets=lambda asked: asked.method == "PUT", times=100_000, refuse=(403, "AccessDenied"))
    proxy.add(fault)
    volume = sky.Volume(bucket, mount, read_only=False, storage=storage_at(proxy.url), type="sync")
    with hosts(1, env=_rclone()) as (made, private):
        provider = sky.SSH(
            hosts=[f"{made[0].address}:{made[0].port}"],
            key=str(private),
            known_hosts=str(private.with_name("known_hosts")),
        )
        with (
            pytest.raises(sky.StorageError, match=r"1 file of the volume .* \(b\) could not be written"),
            compute(provider=provider, volumes=[volume], ttl=3) as pool,
        ):
            write(f"{mount}/b", b"two") >> pool
        # The machine is the user's, and goes on trying for a while.
        fault.times = 0
        until(lambda: not Path(mount).exists())
    assert b"two" == got("b")
    said = next(record.getMessage() for record in caplog.records if "is kept, and billed" in record.getMessage())
    assert "(b)" in said
    assert "AccessDenied" in said
    assert "is reached with `ssh -p" in said
    assert "sky down" in said


def _rclone() -> dict[str, str]:
    """Return the variable by which a host finds the rclone of this machine."""
    refused: list[str] = []
    from skyward.engine.source.environment import cache_entry

    found = find_rclone(str(cache_entry("tools")), refused, packages=False)
    assert found is not None, refused
    return {NAMED: found.path}
