"""Transfers that were broken off go on where they were, if what is there is still right."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from skyward.errors import AccessDeniedError, StorageError, StorageUnavailableError
from skyward_storage import Storage
from tests.storage.proxy import Asked, Fault, Proxy
from tests.storage.stores import CHECKING, MIB, Server, checking, content_of

PART = 5 * MIB

Make = Callable[..., Path]
Behind = Callable[..., Storage]


@pytest.fixture(params=["moto", *(pytest.param(name, marks=pytest.mark.slow) for name in checking(__name__))])
def server(request: pytest.FixtureRequest, servers: Callable[[str], Server]) -> Server:
    """Return each kind of server in turn; the one that checks what it receives takes seconds to start."""
    return servers(request.param)


def part(number: int) -> Callable[[Asked], bool]:
    """Return what finds requests that bring one part."""
    return lambda asked: asked.is_part and f"partNumber={number}&" in f"{asked.path}&"


def begins_at(offset: int) -> Callable[[Asked], bool]:
    """Return what finds requests for the range that begins at an offset."""
    return lambda asked: asked.headers.get("Range", "").startswith(f"bytes={offset}-")


@pytest.fixture
def broken_off(behind: Behind, proxy: Proxy, bucket: str, file: Make) -> Path:
    """Upload three parts, of which the last never arrives, and return the file."""
    source = file(3 * PART)
    proxy.add(Fault(meets=part(3), times=100, refuse=(500, "InternalError")))
    with pytest.raises(StorageUnavailableError, match=r"What was sent is kept: upload again") as caught:
        behind().upload(bucket, source, key="k")
    assert "k" == caught.value.key
    proxy.faults.clear()
    proxy.asked.clear()
    return source


@pytest.mark.slow
def test_an_upload_sends_only_the_parts_that_are_missing(
    behind: Behind, proxy: Proxy, store: Storage, bucket: str, broken_off: Path, tmp_path: Path
) -> None:
    """Nothing is recorded here: the server lists what it has."""
    steps: list[tuple[int, int, str]] = []
    behind().upload(bucket, broken_off, key="k", progress=lambda *step: steps.append(step))
    assert [0, 0, 1] == [proxy.count(part(number)) for number in (1, 2, 3)]
    assert (3 * PART, 3 * PART, "k") == steps[-1]
    store.download(bucket, "k", tmp_path / "back")
    assert broken_off.read_bytes() == (tmp_path / "back").read_bytes()


@pytest.mark.slow
def test_a_part_that_was_changed_here_is_sent_again(
    behind: Behind, proxy: Proxy, store: Storage, bucket: str, broken_off: Path, tmp_path: Path
) -> None:
    """Its size is the same, its checksum is not."""
    content = bytearray(broken_off.read_bytes())
    content[7] ^= 1
    broken_off.write_bytes(content)
    behind().upload(bucket, broken_off, key="k")
    assert [1, 0, 1] == [proxy.count(part(number)) for number in (1, 2, 3)]
    store.download(bucket, "k", tmp_path / "back")
    assert content == (tmp_path / "back").read_bytes()


@pytest.mark.slow
def test_another_file_of_the_same_name_is_sent_whole(
    behind: Behind, proxy: Proxy, store: Storage, bucket: str, broken_off: Path, tmp_path: Path
) -> None:
    """What the server has of an earlier one is of no use."""
    broken_off.write_bytes(content_of(2 * PART, seed=9))
    behind().upload(bucket, broken_off, key="k")
    assert [1, 1] == [proxy.count(part(number)) for number in (1, 2)]
    store.download(bucket, "k", tmp_path / "back")
    assert content_of(2 * PART, seed=9) == (tmp_path / "back").read_bytes()


@pytest.mark.slow
def test_an_upload_may_begin_without_what_was_kept(behind: Behind, proxy: Proxy, bucket: str, broken_off: Path) -> None:
    """`resume=False` neither looks for parts nor keeps them."""
    behind().upload(bucket, broken_off, key="k", resume=False)
    assert [1, 1, 1] == [proxy.count(part(number)) for number in (1, 2, 3)]
    assert 0 == proxy.count(lambda asked: asked.method == "GET")


def test_an_upload_that_is_refused_leaves_no_parts(
    behind: Behind, proxy: Proxy, store: Storage, bucket: str, file: Make
) -> None:
    """They would be billed, and nobody would come for them."""
    proxy.add(Fault(meets=part(2), refuse=(403, "AccessDenied")))
    with pytest.raises(AccessDeniedError, match="s3:PutObject"):
        behind().upload(bucket, file(2 * PART), key="k")
    assert () == tuple(store._line.client().list_multipart_uploads(Bucket=bucket).get("Uploads", ()))


@pytest.mark.slow
@pytest.mark.parametrize("server", CHECKING, indirect=True)
def test_an_upload_whose_parts_are_gone_begins_again(
    behind: Behind, proxy: Proxy, store: Storage, bucket: str, file: Make
) -> None:
    """Another client may have completed or aborted what was listed a moment ago."""
    client = store._line.client()
    begun = client.create_multipart_upload(Bucket=bucket, Key="k")["UploadId"]
    gone = Fault(
        meets=part(1),
        then=lambda: client.abort_multipart_upload(Bucket=bucket, Key="k", UploadId=begun),
    )
    proxy.add(gone)
    steps: list[tuple[int, int, str]] = []
    behind().upload(bucket, file(2 * PART), key="k", progress=lambda *step: steps.append(step))
    assert (2 * PART, 2 * PART, "k") == steps[-1]
    assert store.exists(bucket, "k")


def test_an_answer_to_the_end_that_was_lost_is_no_failure(
    behind: Behind, proxy: Proxy, store: Storage, bucket: str, file: Make, tmp_path: Path
) -> None:
    """The upload is gone by then, and the object is there."""
    source = file(2 * PART)
    proxy.add(Fault(meets=lambda asked: asked.method == "POST" and "uploadId=" in asked.path, lose_answer=True))
    behind().upload(bucket, source, key="k")
    store.download(bucket, "k", tmp_path / "back")
    assert source.read_bytes() == (tmp_path / "back").read_bytes()


def test_an_upload_goes_on_where_lists_are_not_allowed(
    behind: Behind, proxy: Proxy, store: Storage, bucket: str, file: Make
) -> None:
    """A key that may only write writes all of it."""
    listing = Fault(meets=lambda asked: "uploads" in asked.path and asked.method == "GET", refuse=(403, "AccessDenied"))
    proxy.add(listing)
    behind().upload(bucket, file(2 * PART), key="k")
    assert store.exists(bucket, "k")


def test_a_file_that_is_written_to_meanwhile_is_refused(
    behind: Behind, proxy: Proxy, store: Storage, bucket: str, file: Make
) -> None:
    """What would arrive was never in the file at one time."""
    source = file(2 * PART)

    def write() -> None:
        with source.open("ab") as stream:
            stream.write(b"more")

    proxy.add(Fault(meets=part(1), then=write))
    with pytest.raises(StorageError, match="was written to while it was uploaded"):
        behind().upload(bucket, source, key="k")
    assert not store.exists(bucket, "k")


@pytest.mark.slow
@pytest.mark.parametrize("server", CHECKING, indirect=True)
def test_a_part_that_was_damaged_on_the_way_is_sent_again(
    behind: Behind, proxy: Proxy, store: Storage, bucket: str, file: Make, tmp_path: Path
) -> None:
    """The server refuses it by its checksum."""
    source = file(2 * PART)
    proxy.add(Fault(meets=part(2), damage_request=True))
    behind().upload(bucket, source, key="k")
    store.download(bucket, "k", tmp_path / "back")
    assert source.read_bytes() == (tmp_path / "back").read_bytes()


@pytest.mark.slow
def test_a_download_fetches_only_what_is_missing(
    behind: Behind,
    proxy: Proxy,
    store: Storage,
    bucket: str,
    file: Make,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What arrived is in NAME.part, and checked before it counts."""
    source, target = file(3 * PART), tmp_path / "back"
    store.upload(bucket, source, key="k")
    proxy.add(Fault(meets=begins_at(2 * PART), times=100, cut_after=1000))
    with pytest.raises(StorageUnavailableError, match=rf"GetObject of s3://{bucket}/k 4 times"):
        behind().download(bucket, "k", target)
    assert ["back.part", "back.part.done", "source.bin"] == sorted(path.name for path in tmp_path.iterdir())
    proxy.faults.clear()
    proxy.asked.clear()
    with caplog.at_level(logging.INFO, "skyward.storage"):
        behind().download(bucket, "k", target)
    assert "download.resumed" in caplog.text
    assert [0, 0, 1] == [proxy.count(begins_at(number * PART)) for number in (0, 1, 2)]
    assert source.read_bytes() == target.read_bytes()
    assert ["back", "source.bin"] == sorted(path.name for path in tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["part", "record"])
def test_what_was_damaged_here_is_fetched_again(
    behind: Behind, proxy: Proxy, store: Storage, bucket: str, file: Make, tmp_path: Path, damage: str
) -> None:
    """By a crash of the machine, as it may be."""
    source, target = file(3 * PART), tmp_path / "back"
    store.upload(bucket, source, key="k")
    proxy.add(Fault(meets=begins_at(2 * PART), times=100, refuse=(403, "AccessDenied")))
    with pytest.raises(AccessDeniedError):
        behind().download(bucket, "k", target)
    proxy.faults.clear()
    if damage == "part":
        content = bytearray((tmp_path / "back.part").read_bytes())
        content[5] ^= 1
        (tmp_path / "back.part").write_bytes(content)
    else:
        record = tmp_path / "back.part.done"
        record.write_text(record.read_text() + "7 zz\n3")
    behind().download(bucket, "k", target)
    assert source.read_bytes() == target.read_bytes()


def test_an_object_that_was_replaced_begins_again(
    behind: Behind, proxy: Proxy, store: Storage, bucket: str, file: Make, tmp_path: Path
) -> None:
    """While it is fetched: no file is ever made of two versions."""
    target, later = tmp_path / "back", file(3 * PART, "later", seed=2)
    store.upload(bucket, file(3 * PART), key="k")
    proxy.add(Fault(meets=begins_at(PART), then=lambda: store.upload(bucket, later, key="k")))
    behind().download(bucket, "k", target)
    assert later.read_bytes() == target.read_bytes()


def test_what_is_left_of_another_version_is_dropped(store: Storage, bucket: str, file: Make, tmp_path: Path) -> None:
    """Its ETag is another."""
    source, target = file(2 * PART), tmp_path / "back"
    store.upload(bucket, source, key="k")
    (tmp_path / "back.part").write_bytes(b"x" * 3 * PART)
    (tmp_path / "back.part.done").write_text('["old", 3, 1]\n1 00000000\n')
    store.download(bucket, "k", target)
    assert source.read_bytes() == target.read_bytes()


def test_two_downloads_to_one_file_keep_apart(
    behind: Behind, proxy: Proxy, store: Storage, bucket: str, file: Make, tmp_path: Path
) -> None:
    """The second one writes to a file of its own, and both are whole."""
    source, target = file(2 * PART), tmp_path / "back"
    store.upload(bucket, source, key="k")
    proxy.add(Fault(meets=begins_at(PART), then=lambda: store.download(bucket, "k", target)))
    behind().download(bucket, "k", target)
    assert source.read_bytes() == target.read_bytes()
    assert ["back", "source.bin"] == sorted(path.name for path in tmp_path.iterdir())
