"""Parts cover an object, no more of them than S3 takes, and are used again only where they are right."""

from __future__ import annotations

import hashlib
import zlib

from hypothesis import given, strategies as st

from skyward_storage.checksum import crc_text
from skyward_storage.parts import (
    MIB,
    MOST_PARTS,
    Part,
    Sent,
    begun_upload,
    etag_of_parts,
    kept,
    part_size_for,
    parts_of,
)


@given(size=st.integers(0, 60_000 * 8 * MIB), wanted=st.integers(5 * MIB, 64 * MIB))
def test_parts_cover_an_object(size: int, wanted: int) -> None:
    """One after the other, each as long as the first but the last."""
    step = part_size_for(size, wanted)
    parts = [*parts_of(size, step)]
    assert len(parts) <= MOST_PARTS
    assert size == sum(part.length for part in parts)
    assert [part.offset for part in parts] == [number * step for number in range(len(parts))]
    assert {part.length for part in parts[:-1]} <= {step}


def row(**facts: object) -> dict[str, object]:
    """Return an upload as a server lists it."""
    return {"Key": "k", "UploadId": "one", "Initiated": "2026-01-01", **facts}


def test_the_newest_upload_is_continued() -> None:
    """Of that key, and of no longer one."""
    rows = [row(), row(UploadId="two", Initiated="2026-01-02"), row(UploadId="three", Initiated="2027", Key="k2")]
    assert "two" == begun_upload(rows, "k", "CRC32")
    assert begun_upload([], "k", "CRC32") is None


def test_an_upload_with_another_checksum_is_left_alone() -> None:
    """The server would refuse our parts."""
    assert "one" == begun_upload([row(ChecksumAlgorithm="CRC32")], "k", "CRC32")
    assert begun_upload([row(ChecksumAlgorithm="CRC32")], "k", "MD5") is None
    assert begun_upload([row(ChecksumAlgorithm="SHA256")], "k", "CRC32") is None
    assert begun_upload([row(ChecksumAlgorithm="CRC32", ChecksumType="COMPOSITE")], "k", "CRC32") is None


def test_a_part_is_kept_where_it_is_right() -> None:
    """By its CRC where the server keeps that, else by its ETag."""
    content = b"content"
    part, crc, md5 = Part(1, 0, 7), zlib.crc32(content), hashlib.md5(content).hexdigest()
    assert kept(part, Sent(etag="x", size=7, crc=crc_text(crc)), content, crc)
    assert kept(part, Sent(etag=f'"{md5}"', size=7), content, crc)
    assert not kept(part, Sent(etag=f'"{md5}"', size=7, crc=crc_text(1)), content, crc)
    assert not kept(part, Sent(etag='"other"', size=7), content, crc)
    assert not kept(part, Sent(etag=f'"{md5}"', size=8), content, crc)
    assert not kept(part, None, content, crc)


def test_the_etag_of_an_object_in_parts() -> None:
    """Known only where ETags are digests."""
    digests = [hashlib.md5(piece).digest() for piece in (b"a", b"b")]
    whole = hashlib.md5(b"".join(digests)).hexdigest()
    assert f'"{whole}-2"' == etag_of_parts([f'"{digest.hex()}"' for digest in digests])
    assert etag_of_parts(['"not-a-digest"']) is None
