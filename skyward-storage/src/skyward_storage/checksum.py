"""Checksums: what an upload carries, what a server declares of an object, and the CRC of parts put together."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

from attrs import frozen

__all__ = ["METADATA", "Checksum", "Declared", "combined", "crc_text", "declared", "of_request", "whole_crc"]

Checksum = Literal["CRC32", "MD5"]
"""What requests carry: S3's own checksum, or the header Content-MD5, which every server knows."""

METADATA = "skyward-crc32"
"""Name of the object's metadata in which an upload with Content-MD5 leaves a checksum for downloads."""

_POLYNOMIAL = 0xEDB88320

Matrix = tuple[int, ...]


@frozen(kw_only=True)
class Declared:
    """
    Hold what a server says an object's bytes amount to.

    Args:
        algorithm: `"crc32"`, or the name of a hash of the standard library.
        value: The checksum.
        parts: Parts whose checksums were put together into it; 0 if it is that of the whole.
        or_whole: Whether it may be that of the whole all the same, because the server does not say which.
    """

    algorithm: str
    value: bytes
    parts: int = 0
    or_whole: bool = False

    def fits(self, crcs: Sequence[tuple[int, int]]) -> bool:
        """
        Return whether pieces of an object amount to it; for `"crc32"` only.

        Args:
            crcs: CRC and length of each piece, in order; those of its parts, if there are `parts`.
        """
        if self.parts:
            joined = b"".join(crc.to_bytes(4, "big") for crc, _ in crcs)
            if len(crcs) == self.parts and self.value == zlib.crc32(joined).to_bytes(4, "big"):
                return True
        return (not self.parts or self.or_whole) and self.value == whole_crc(crcs).to_bytes(4, "big")


def of_request(content: bytes, checksum: Checksum | None) -> dict[str, Any]:
    """
    Return the parameters of a request by which the server checks what it receives.

    Args:
        content: What is sent.
        checksum: How; None for no check.

    >>> of_request(b"abc", "CRC32")
    {'ChecksumAlgorithm': 'CRC32', 'ChecksumCRC32': 'NSRBwg=='}
    >>> of_request(b"abc", "MD5")
    {'ContentMD5': 'kAFQmDzST7DWlj99KOF/cg=='}
    """
    if checksum == "CRC32":
        return {"ChecksumAlgorithm": "CRC32", "ChecksumCRC32": crc_text(zlib.crc32(content))}
    if checksum == "MD5":
        digest = hashlib.md5(content, usedforsecurity=False).digest()
        return {"ContentMD5": base64.b64encode(digest).decode()}
    return {}


def declared(answer: Mapping[str, Any]) -> Declared | None:
    """
    Return what a server declares of an object that can be checked here; None if it declares nothing of the kind.

    Args:
        answer: That of HeadObject or GetObject.

    >>> declared({"ChecksumCRC32": "NSRBwg=="})
    Declared(algorithm='crc32', value=b'5$A\\xc2', parts=0, or_whole=False)
    """
    # Some servers leave out both the number of parts and the type, of which AWS's answers have one at least.
    unsaid = str(answer.get("ETag", "")).strip('"').partition("-")[2] if not answer.get("ChecksumType") else ""
    for algorithm in ("crc32", "sha256", "sha1"):
        text, _, parts = str(answer.get(f"Checksum{algorithm.upper()}") or "").partition("-")
        if text and (not parts or (algorithm == "crc32" and parts.isdigit())):
            value = base64.b64decode(text)
            if algorithm == "crc32" and not parts and unsaid.isdigit():
                return Declared(algorithm=algorithm, value=value, parts=int(unsaid), or_whole=True)
            return Declared(algorithm=algorithm, value=value, parts=int(parts or 0))
    left = str((answer.get("Metadata") or {}).get(METADATA, ""))
    if len(left) == 8:
        return Declared(algorithm="crc32", value=bytes.fromhex(left))
    return None


def crc_text(crc: int) -> str:
    """
    Return a CRC as S3 writes it.

    >>> crc_text(0)
    'AAAAAA=='
    """
    return base64.b64encode(crc.to_bytes(4, "big")).decode()


def whole_crc(crcs: Iterable[tuple[int, int]]) -> int:
    """
    Return the CRC of bytes whose pieces' CRCs are known.

    Args:
        crcs: CRC and length of each piece, in order.

    >>> whole_crc([(zlib.crc32(b"sky"), 3), (zlib.crc32(b"ward"), 4)]) == zlib.crc32(b"skyward")
    True
    """
    total = 0
    for crc, length in crcs:
        total = combined(total, crc, length)
    return total


def combined(first: int, second: int, length: int) -> int:
    """
    Return the CRC of two pieces after each other.

    Args:
        first: The CRC of the first.
        second: The CRC of the second.
        length: Bytes of the second.
    """
    return _times(_zeros(length), first) ^ second if length else first


@lru_cache(maxsize=64)
def _zeros(length: int) -> Matrix:
    """Return what so many bytes of zeros do to a CRC, as a matrix over single bits."""
    power: Matrix = (_POLYNOMIAL, *(1 << at for at in range(31)))
    for _ in range(3):
        # One bit, two, four, eight.
        power = _after(power, power)
    result: Matrix = tuple(1 << at for at in range(32))
    while length:
        if length & 1:
            result = _after(power, result)
        power = _after(power, power)
        length >>= 1
    return result


def _after(second: Matrix, first: Matrix) -> Matrix:
    """Return what two matrices do one after the other."""
    return tuple(_times(second, row) for row in first)


def _times(matrix: Matrix, vector: int) -> int:
    """Apply a matrix to the bits of a number."""
    total, at = 0, 0
    while vector:
        if vector & 1:
            total ^= matrix[at]
        vector >>= 1
        at += 1
    return total
