"""Files come back from an object store as they went there, whatever their size and whichever way they are checked."""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from boto3.s3.transfer import TransferConfig
from hypothesis import HealthCheck, given, settings, strategies as st

from skyward.errors import ChecksumError, NoSuchKeyError
from skyward_storage import Storage
from tests.storage.proxy import Fault, Proxy, waited
from tests.storage.stores import MIB, Server, checking, content_of, storage_at

PART = 5 * MIB

Make = Callable[..., Path]
Behind = Callable[..., Storage]


@pytest.fixture(params=["moto", *(pytest.param(name, marks=pytest.mark.slow) for name in checking(__name__))])
def server(request: pytest.FixtureRequest, servers: Callable[[str], Server]) -> Server:
    """Return each kind of server in turn; the one that checks what it receives takes seconds to start."""
    return servers(request.param)


@pytest.mark.slow
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.integers(0, 3), off=st.integers(-2, 2), checksum=st.sampled_from(["CRC32", "MD5", None]))
def test_a_file_of_any_size_comes_back_as_it_was(
    server: Server, bucket: str, parts: int, off: int, checksum: object
) -> None:
    """Around the borders of parts, and with each kind of checksum."""
    size = max(0, parts * PART + off)
    with tempfile.TemporaryDirectory() as folder, storage_at(server.url, checksum=checksum) as store:
        source, target = Path(folder, "there"), Path(folder, "back")
        source.write_bytes(content_of(size))
        store.upload(bucket, source, key="some/key.bin")
        store.download(bucket, "some/key.bin", target)
        assert source.read_bytes() == target.read_bytes()
        assert ["back", "there"] == sorted(path.name for path in Path(folder).iterdir())


@pytest.mark.parametrize("size", [0, 1, 100_000, PART, PART + 1])
def test_a_file_goes_there_and_back(store: Storage, bucket: str, file: Make, tmp_path: Path, size: int) -> None:
    """Empty, small, as large as a part, larger."""
    source = file(size)
    store.upload(bucket, source)
    store.download(bucket, "source.bin", tmp_path / "new folder" / "back.bin")
    assert source.read_bytes() == (tmp_path / "new folder" / "back.bin").read_bytes()


def test_an_object_that_comes_into_a_folder_keeps_its_name(
    store: Storage, bucket: str, file: Make, tmp_path: Path
) -> None:
    """A folder that is there, and one that is written with a slash."""
    store.upload(bucket, file(10), key="a/b.bin")
    store.download(bucket, "a/b.bin", tmp_path)
    store.download(bucket, "a/b.bin", f"{tmp_path}/new/")
    assert (tmp_path / "b.bin").read_bytes() == (tmp_path / "new" / "b.bin").read_bytes()


def test_progress_counts_every_byte_once(store: Storage, bucket: str, file: Make, tmp_path: Path) -> None:
    """Up and down; the last call has all of them."""
    seen: list[tuple[int, int, str]] = []
    store.upload(bucket, file(2 * PART + 5), key="k", progress=lambda *step: seen.append(step))
    assert (2 * PART + 5, 2 * PART + 5, "k") == seen[-1]
    assert [step[0] for step in seen] == sorted({step[0] for step in seen})
    store.download(bucket, "k", tmp_path / "back", progress=lambda *step: seen.append(step))
    assert (2 * PART + 5, 2 * PART + 5, "k") == seen[-1]


def test_what_progress_raises_ends_the_transfer(store: Storage, bucket: str, file: Make) -> None:
    """As itself."""

    def refuse(*_: object) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.upload(bucket, file(2 * PART), key="k", progress=refuse)
    assert not store.exists(bucket, "k")


def test_a_finished_transfer_is_one_line_in_the_log(
    store: Storage, bucket: str, file: Make, caplog: pytest.LogCaptureFixture
) -> None:
    """With the bucket and the bytes, and no key of ours."""
    with caplog.at_level(logging.INFO, "skyward.storage"):
        store.upload(bucket, file(10))
    assert f"upload.done bucket={bucket} objects=1 bytes=10" in caplog.text


@pytest.mark.parametrize("size", [1000, PART + 1000])
def test_an_object_that_was_damaged_on_the_way_is_refused(
    behind: Behind, proxy: Proxy, bucket: str, file: Make, tmp_path: Path, size: int
) -> None:
    """Nothing is left where the file should be, nor beside it; what stood there stays."""
    store = behind()
    store.upload(bucket, file(size), key="k")
    target = tmp_path / "back" / "file"
    target.parent.mkdir()
    target.write_text("before")
    proxy.add(Fault(meets=lambda asked: asked.method == "GET", damage=True))
    with pytest.raises(ChecksumError, match=rf"s3://{bucket}/k that arrived are not those that http") as caught:
        store.download(bucket, "k", target)
    assert (bucket, "k") == (caught.value.bucket, caught.value.key)
    assert "before" == target.read_text()
    assert [target] == [*target.parent.iterdir()]
    store.download(bucket, "k", target)
    assert content_of(size) == target.read_bytes()


def test_a_small_object_with_the_checksum_of_http_is_checked_too(
    behind: Behind, proxy: Proxy, bucket: str, file: Make, tmp_path: Path
) -> None:
    """Its metadata has one for servers that declare none."""
    store = behind(checksum="MD5")
    store.upload(bucket, file(1000), key="k")
    proxy.add(Fault(meets=lambda asked: asked.method == "GET", damage=True))
    with pytest.raises(ChecksumError):
        store.download(bucket, "k", tmp_path / "back")


@pytest.mark.parametrize("damaged", [False, True])
def test_an_object_in_parts_of_another_client_is_checked(
    behind: Behind, proxy: Proxy, store: Storage, bucket: str, file: Make, tmp_path: Path, damaged: bool
) -> None:
    """Its parts are larger than ours, and its checksum is made of theirs."""
    source, client = file(15 * MIB), store._line.client()
    config = TransferConfig(multipart_threshold=6 * MIB, multipart_chunksize=6 * MIB)
    client.upload_file(str(source), bucket, "k", Config=config, ExtraArgs={"ChecksumAlgorithm": "CRC32"})
    if damaged:
        proxy.add(Fault(meets=lambda asked: asked.is_range, damage=True))
        with pytest.raises(ChecksumError):
            behind().download(bucket, "k", tmp_path / "back")
    else:
        behind().download(bucket, "k", tmp_path / "back")
        assert source.read_bytes() == (tmp_path / "back").read_bytes()


def test_what_is_not_there_says_so(store: Storage, bucket: str, tmp_path: Path) -> None:
    """An object, and a prefix without any; nothing is made here."""
    with pytest.raises(NoSuchKeyError, match=rf"s3://{bucket}/none.*List what is there") as caught:
        store.download(bucket, "none", tmp_path / "back")
    assert ("none", store.endpoint) == (caught.value.key, caught.value.endpoint)
    with pytest.raises(NoSuchKeyError, match=rf"s3://{bucket}/none/ holds no object"):
        store.download(bucket, "none/", tmp_path / "back")
    assert [] == [*tmp_path.iterdir()]


def test_async_twins_do_the_same(store: Storage, bucket: str, file: Make, tmp_path: Path) -> None:
    """Side by side, in one event loop."""

    async def scenario() -> None:
        async with store:
            source = file(1000)
            await asyncio.gather(*(store.upload_async(bucket, source, key=f"k/{at}") for at in range(5)))
            assert [f"k/{at}" for at in range(5)] == await store.ls_async(bucket)
            await store.download_async(bucket, "k/", tmp_path / "back")
            assert await store.exists_async(bucket, "k/3")
            await store.rm_async(bucket, "k/", recursive=True)
            assert not await store.exists_async(bucket, "k/3")

    asyncio.run(scenario())
    assert 5 == len([*(tmp_path / "back").iterdir()])


def test_a_cancelled_upload_stops(behind: Behind, proxy: Proxy, bucket: str, file: Make) -> None:
    """Its threads end, and no part begins after that."""
    store, source = behind(), file(4 * PART)
    proxy.add(Fault(meets=lambda asked: asked.is_part, times=100, stall=0.3))

    async def scenario() -> None:
        task = asyncio.create_task(store.upload_async(bucket, source, key="k"))
        assert await asyncio.to_thread(waited, lambda: proxy.count(lambda asked: asked.is_part) > 0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    assert not store.exists(bucket, "k")
