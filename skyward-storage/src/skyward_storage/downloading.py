"""Objects on their way to files: ranges side by side, checked, and put in their place when they are whole."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import shutil
import time
import zlib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from attrs import frozen

from skyward.errors import ChecksumError, ConfigError, NoSuchKeyError, StorageError
from skyward_storage.bucket_transfer import BucketTransfer
from skyward_storage.checksum import Declared, declared
from skyward_storage.given import paths_below
from skyward_storage.listing import listed
from skyward_storage.part_file import PartFile, write_whole
from skyward_storage.parts import Part, parts_of
from skyward_storage.transfer import Deadline

__all__ = ["Downloader"]

CHUNK = 256 * 1024
"""Bytes that are read from a connection at once."""

_CHANGED = ("PreconditionFailed", "412", "InvalidRange", "416")

_log = logging.getLogger("skyward.storage")


@frozen(kw_only=True)
class Facts:
    """
    Hold what a server says of an object before its bytes.

    Args:
        size: Its bytes.
        etag: What tells its versions apart.
        checksum: What its bytes amount to; None if that is not declared.
        step: Bytes of the ranges that it is fetched in.
    """

    size: int
    etag: str
    checksum: Declared | None
    step: int


@frozen(kw_only=True)
class Downloader:
    """
    Download objects of a bucket.

    Args:
        at: The bucket, and how its objects are transferred.
    """

    at: BucketTransfer

    def download(self, key: str, target: Path) -> None:
        """
        Download an object.

        Args:
            key: The object.
            target: The file that it becomes.

        Raises:
            NoSuchKeyError: If it is not there.
            ChecksumError: If the bytes are not those that the server declares.
            StorageError: If it could not be downloaded.
        """
        began = time.monotonic()
        facts = self._facts(key)
        self.at.transfer.expect(facts.size)
        self._check_space(target.parent, facts.size)
        if facts.size <= self.at.part_size:
            self._whole(key, target)
        else:
            self._large(key, target, facts)
        self.at.done("download", 1, facts.size, began)

    def download_below(self, prefix: str, folder: Path) -> None:
        """
        Download all objects of a prefix into a folder, the small ones side by side, then the large ones.

        Args:
            prefix: What their keys begin with; ends with a slash.
            folder: Where they are written; it is made if it is not there.

        Raises:
            NoSuchKeyError: If there are none.
            ConfigError: If one would be written outside of the folder; nothing was written then.
            StorageError: If one could not be downloaded.
        """
        began = time.monotonic()
        rows = {
            each.key: each.size
            for page in listed(self.at.line, self.at.transfer, self.at.bucket, prefix)
            for each in page
        }
        if not rows:
            raise NoSuchKeyError(
                f"s3://{self.at.bucket}/{prefix} holds no object.",
                endpoint=self.at.line.endpoint,
                bucket=self.at.bucket,
                key=prefix,
                hint="List what is there with ls().",
            )
        targets = {key: folder / path for key, path in paths_below(prefix, rows).items()}
        _check_inside(folder, targets)
        total = sum(rows[key] for key in targets)
        self.at.transfer.expect(total)
        self._check_space(folder, total)
        self.at.run(
            [(key, rows[key]) for key in targets],
            lambda key: self._whole(key, targets[key]),
            lambda key: self._large(key, targets[key], self._facts(key)),
        )
        folder.mkdir(parents=True, exist_ok=True)
        self.at.done("download", len(targets), total, began)

    def _facts(self, key: str) -> Facts:
        """Ask what an object is."""
        answer = self.at.line.call(self.at.transfer, "head_object", Bucket=self.at.bucket, Key=key, **self._asking())
        size, checksum, step = int(answer["ContentLength"]), declared(answer), self.at.part_size
        if checksum is not None and checksum.parts and size > self.at.part_size:
            # It is made of the checksums of parts, so ranges have to be those.
            first = self.at.line.call(self.at.transfer, "head_object", Bucket=self.at.bucket, Key=key, PartNumber=1)
            length = int(first["ContentLength"])
            if 0 < length < size and -(-size // length) == checksum.parts:
                step = length
            else:
                checksum = None
        return Facts(size=size, etag=str(answer["ETag"]), checksum=checksum, step=step)

    def _asking(self) -> Mapping[str, Any]:
        """Return what makes a server declare checksums; some refuse the question."""
        return {"ChecksumMode": "ENABLED"} if self.at.checksum == "CRC32" else {}

    def _whole(self, key: str, target: Path) -> None:
        """Download an object with one request."""

        def fetch(client: Any) -> tuple[bytes, Declared | None]:
            answer = client.get_object(Bucket=self.at.bucket, Key=key, **self._asking())
            size = int(answer["ContentLength"])
            with contextlib.closing(answer["Body"]) as body:
                deadline, found = Deadline(size, self.at.line.timeout), []
                while chunk := body.read(CHUNK):
                    found.append(chunk)
                    self.at.transfer.check()
                    deadline.check()
            content = b"".join(found)
            if len(content) != size:
                raise ConnectionError(f"{len(content)} of {size} bytes arrived")
            return content, declared(answer)

        try:
            content, checksum = self.at.line.attempt(
                self.at.transfer, "get_object", {"Bucket": self.at.bucket, "Key": key}, fetch
            )
        except StorageError as error:
            # botocore compares what it can, too.
            if error.code != "FlexibleChecksumError":
                raise
            raise self._wrong(key) from error
        if checksum is not None and not _amounts(content, checksum):
            raise self._wrong(key)
        write_whole(target, content)
        self.at.transfer.advance(len(content), key)

    def _large(self, key: str, target: Path, facts: Facts) -> None:
        """Download an object in ranges, those that are in NAME.part already left out."""
        try:
            return self._in_ranges(key, target, facts)
        except StorageError as error:
            if error.code not in _CHANGED:
                raise
        # It was replaced meanwhile, so that it begins again.
        self.at.transfer.restart(key)
        return self._in_ranges(key, target, self._facts(key))

    def _in_ranges(self, key: str, target: Path, facts: Facts) -> None:
        ranges = [*parts_of(facts.size, facts.step)]
        file = PartFile(target, [facts.etag, facts.size, facts.step], ranges)
        try:
            there = dict(file.there)
            if there:
                count, all_of_them = len(there), len(ranges)
                _log.info("download.resumed bucket=%s key=%s ranges=%d of=%d", self.at.bucket, key, count, all_of_them)
            self.at.transfer.advance(sum(ranges[number - 1].length for number in there), key)
            missing = [part for part in ranges if part.number not in there]
            fetched = self.at.transfer.run([partial(self._range, key, facts.etag, file, part) for part in missing])
            crcs = there | {part.number: crc for part, crc in zip(missing, fetched, strict=True)}
            fits = _fits(file, [(crcs[part.number], part.length) for part in ranges], facts.checksum)
        except BaseException as error:
            if isinstance(error, StorageError) and error.code in _CHANGED:
                file.discard()
            else:
                file.keep()
            raise
        if not fits:
            file.discard()
            raise self._wrong(key)
        file.finish()

    def _range(self, key: str, etag: str, file: PartFile, part: Part) -> int:
        """Download a range into its place, and return its CRC."""
        end = part.offset + part.length

        def fetch(client: Any) -> int:
            answer = client.get_object(
                Bucket=self.at.bucket, Key=key, Range=f"bytes={part.offset}-{end - 1}", IfMatch=etag
            )
            if int(answer["ContentLength"]) != part.length:
                raise StorageError(
                    f"{self.at.line.endpoint} sends other bytes of s3://{self.at.bucket}/{key} than a range asks for.",
                    endpoint=self.at.line.endpoint,
                    bucket=self.at.bucket,
                    key=key,
                    code="InvalidRange",
                )
            deadline, offset, crc = Deadline(part.length, self.at.line.timeout), part.offset, 0
            with contextlib.closing(answer["Body"]) as body:
                while chunk := body.read(CHUNK):
                    self.at.transfer.check()
                    deadline.check()
                    file.write(chunk, offset)
                    offset, crc = offset + len(chunk), zlib.crc32(chunk, crc)
            if offset != end:
                raise ConnectionError(f"{offset - part.offset} of {part.length} bytes arrived")
            return crc

        crc = self.at.line.attempt(self.at.transfer, "get_object", {"Bucket": self.at.bucket, "Key": key}, fetch)
        file.record(part, crc)
        self.at.transfer.advance(part.length, key)
        return crc

    def _check_space(self, folder: Path, size: int) -> None:
        """Refuse what the disk has no room for."""
        there = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
        free = shutil.disk_usage(there).free
        if free < size:
            raise StorageError(
                f"The disk of {str(folder)!r} has {free} bytes free, and {size} are to be written.",
                endpoint=self.at.line.endpoint,
                bucket=self.at.bucket,
                hint="Free some, or write elsewhere.",
            )

    def _wrong(self, key: str) -> ChecksumError:
        return ChecksumError(
            f"The bytes of s3://{self.at.bucket}/{key} that arrived are not those that {self.at.line.endpoint}"
            " declares.",
            endpoint=self.at.line.endpoint,
            bucket=self.at.bucket,
            key=key,
            hint="Nothing was written. Download it again; if that fails too, the object is damaged: upload it again.",
        )


def _amounts(content: bytes, checksum: Declared) -> bool:
    """Return whether bytes amount to what is declared; for those of several parts that is unknown here."""
    if checksum.algorithm != "crc32":
        return hashlib.new(checksum.algorithm, content, usedforsecurity=False).digest() == checksum.value
    return checksum.parts > 1 or checksum.fits([(zlib.crc32(content), len(content))])


def _fits(file: PartFile, crcs: Sequence[tuple[int, int]], checksum: Declared | None) -> bool:
    """Return whether a file amounts to what is declared, if anything is."""
    if checksum is None:
        return True
    if checksum.algorithm == "crc32":
        return checksum.fits(crcs)
    digest = hashlib.new(checksum.algorithm, usedforsecurity=False)
    for chunk in file.chunks():
        digest.update(chunk)
    return digest.digest() == checksum.value


def _check_inside(folder: Path, targets: Mapping[str, Path]) -> None:
    """Refuse what a link in the folder would lead out of it."""
    home = folder.resolve()
    for key, path in targets.items():
        if not path.parent.resolve().is_relative_to(home):
            raise ConfigError(
                f"The object {key!r} would be written outside of {str(folder)!r}, where a link leads.",
                hint="Nothing was written. Take the link away, or download into another folder.",
            )
