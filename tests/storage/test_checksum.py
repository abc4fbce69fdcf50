"""Checksums of pieces put together are those of the whole, and what a server declares is read."""

from __future__ import annotations

import base64
import hashlib
import zlib

import pytest
from hypothesis import given, strategies as st

from skyward_storage.checksum import Declared, combined, declared, of_request, whole_crc


@given(st.lists(st.binary(max_size=200), max_size=8))
def test_pieces_amount_to_the_whole(pieces: list[bytes]) -> None:
    """Whatever their lengths."""
    crcs = [(zlib.crc32(piece), len(piece)) for piece in pieces]
    assert zlib.crc32(b"".join(pieces)) == whole_crc(crcs)


def test_a_large_piece_amounts_as_a_small_one() -> None:
    """Lengths beyond 32 bits too, as of zeros without end."""
    megabyte = bytes(1 << 20)
    assert zlib.crc32(megabyte, zlib.crc32(b"a")) == combined(zlib.crc32(b"a"), zlib.crc32(megabyte), 1 << 20)
    twice = combined(combined(1, 2, 1 << 33), 3, 1 << 33)
    assert twice == combined(1, combined(2, 3, 1 << 33), 1 << 34)


def test_a_checksum_of_parts() -> None:
    """S3 puts the checksums of parts together where it has none of the whole."""
    crcs = [(zlib.crc32(part), len(part)) for part in (b"one", b"two")]
    value = zlib.crc32(b"".join(crc.to_bytes(4, "big") for crc, _ in crcs)).to_bytes(4, "big")
    found = declared({"ChecksumCRC32": f"{base64.b64encode(value).decode()}-2"})
    assert found == Declared(algorithm="crc32", value=value, parts=2)
    assert found.fits(crcs)
    assert not found.fits(crcs[:1])
    assert not found.fits([crcs[1], crcs[0]])


def test_a_checksum_of_which_the_server_does_not_say_what_it_is() -> None:
    """An object in parts, by its ETag: that of the parts, or that of the whole."""
    crcs = [(zlib.crc32(part), len(part)) for part in (b"one", b"two")]
    joined = zlib.crc32(b"".join(crc.to_bytes(4, "big") for crc, _ in crcs))
    for value in (joined, zlib.crc32(b"onetwo")):
        text = base64.b64encode(value.to_bytes(4, "big")).decode()
        found = declared({"ChecksumCRC32": text, "ETag": '"0123-2"'})
        assert found is not None
        assert found.fits(crcs)
        assert not found.fits([crcs[1], crcs[0]])
    assert declared({"ChecksumCRC32": text, "ETag": '"0123-2"', "ChecksumType": "FULL_OBJECT"}) == Declared(
        algorithm="crc32", value=zlib.crc32(b"onetwo").to_bytes(4, "big")
    )


@pytest.mark.parametrize(
    ("answer", "algorithm"),
    [
        ({"ChecksumSHA256": base64.b64encode(hashlib.sha256(b"x").digest()).decode()}, "sha256"),
        ({"ChecksumSHA1": base64.b64encode(bytes(20)).decode()}, "sha1"),
        ({"Metadata": {"skyward-crc32": "00c0ffee"}}, "crc32"),
        ({"ChecksumSHA256": "AAAA-3"}, None),
        ({"ChecksumCRC64NVME": "AAAAAAAAAAA="}, None),
        ({"Metadata": {"skyward-crc32": "no"}}, None),
        ({}, None),
    ],
)
def test_what_a_server_declares(answer: dict[str, object], algorithm: str | None) -> None:
    """What cannot be checked here counts as nothing."""
    found = declared(answer)
    assert algorithm == (None if found is None else found.algorithm)


def test_nothing_is_carried_where_nothing_is_wanted() -> None:
    """For a server that knows neither."""
    assert {} == of_request(b"x", None)
