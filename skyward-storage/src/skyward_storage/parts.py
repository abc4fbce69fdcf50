"""Parts of a large object: where they begin and end, and which of them are at the server already."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import field, frozen

from skyward_storage.checksum import Checksum, crc_text

__all__ = ["LARGEST_PART", "MIB", "Begun", "Part", "Sent", "begun_upload", "etag_of_parts", "kept", "part_size_for"]
__all__ += ["parts_of"]

MIB = 1024 * 1024

MOST_PARTS = 10_000
"""Parts that S3 takes for one object."""

LARGEST_PART = 5 * 1024 * MIB
"""Bytes of the largest part that S3 takes."""


@frozen
class Part:
    """
    Say which bytes of an object are one part.

    Args:
        number: Counted from 1.
        offset: Where it begins.
        length: Its bytes.
    """

    number: int
    offset: int
    length: int


@frozen(kw_only=True)
class Sent:
    """
    Hold what a server has of a part.

    Args:
        etag: As the server calls it.
        size: Its bytes.
        crc: Its CRC32 as S3 writes it; empty where the server keeps none.
    """

    etag: str
    size: int
    crc: str = ""


@frozen(kw_only=True)
class Begun:
    """
    Hold an upload in parts that has begun.

    Args:
        upload_id: As the server calls it.
        parts: What was sent, by number.
    """

    upload_id: str
    parts: Mapping[int, Sent] = field(factory=dict)


def part_size_for(size: int, wanted: int) -> int:
    """
    Return how large the parts of an object are.

    Args:
        size: Its bytes.
        wanted: The usual size of a part, which grows where there would be too many.

    >>> part_size_for(20 * MIB, 8 * MIB) // MIB, part_size_for(200_000 * MIB, 8 * MIB) // MIB
    (8, 20)
    """
    least = -(-size // MOST_PARTS)
    return wanted if least <= wanted else -(-least // MIB) * MIB


def parts_of(size: int, step: int) -> Iterator[Part]:
    """
    Yield the parts of an object, each as long as the others but the last.

    Args:
        size: Its bytes.
        step: Bytes of a part.

    >>> list(parts_of(5, 2))
    [Part(number=1, offset=0, length=2), Part(number=2, offset=2, length=2), Part(number=3, offset=4, length=1)]
    """
    for number, offset in enumerate(range(0, size, step), 1):
        yield Part(number, offset, min(step, size - offset))


def begun_upload(uploads: Sequence[Mapping[str, Any]], key: str, checksum: Checksum | None) -> str | None:
    """
    Return the id of the newest upload of an object that can be continued; None if there is none.

    Args:
        uploads: What the server lists.
        key: The object.
        checksum: What requests carry; an upload that was begun with another checksum takes no parts of ours.
    """
    ours = {"CRC32": ("", "CRC32")}.get(checksum or "", ("",))
    fitting = [
        row
        for row in uploads
        if row.get("Key") == key
        and (row.get("ChecksumAlgorithm") or "") in ours
        and (row.get("ChecksumType") or "FULL_OBJECT") == "FULL_OBJECT"
    ]
    newest = max(fitting, key=lambda row: str(row.get("Initiated", "")), default=None)
    return None if newest is None else str(newest["UploadId"])


def kept(part: Part, sent: Sent | None, content: bytes, crc: int) -> bool:
    """
    Return whether the server has a part as it is here.

    Args:
        part: The part.
        sent: What the server has of it.
        content: Its bytes here.
        crc: Their CRC32.
    """
    if sent is None or sent.size != part.length:
        return False
    if sent.crc:
        return sent.crc == crc_text(crc)
    return sent.etag.strip('"') == hashlib.md5(content, usedforsecurity=False).hexdigest()


def etag_of_parts(etags: Sequence[str]) -> str | None:
    """
    Return the ETag that an object has by those of its parts; None if the server makes them otherwise.

    Args:
        etags: Those of the parts, in order.
    """
    try:
        digests = b"".join(bytes.fromhex(etag.strip('"')) for etag in etags)
    except ValueError:
        return None
    return f'"{hashlib.md5(digests, usedforsecurity=False).hexdigest()}-{len(etags)}"'
