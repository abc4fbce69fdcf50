"""Files and folders on their way to an object store: small ones whole, large ones in parts that survive a failure."""

from __future__ import annotations

import io
import logging
import os
import time
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from attrs import frozen

from skyward.errors import ConfigError, SkywardError, StorageError, StorageUnavailableError
from skyward_storage.bucket_transfer import BucketTransfer
from skyward_storage.checksum import METADATA, crc_text, of_request, whole_crc
from skyward_storage.given import object_key
from skyward_storage.parts import Begun, Part, Sent, begun_upload, etag_of_parts, kept, part_size_for, parts_of
from skyward_storage.transfer import Deadline, Transfer

__all__ = ["LocalFile", "Uploader", "files_of"]

WHOLE = 64 * 1024
"""Bytes up to which a body goes at once, without waiting for the server's word that it will take it."""

_GONE = ("NoSuchUpload", "InvalidPart", "InvalidPartOrder")

_log = logging.getLogger("skyward.storage")


@frozen(kw_only=True)
class LocalFile:
    """
    Hold a file that is to be uploaded.

    Args:
        path: Where it is.
        key: The object that it becomes.
        size: Its bytes.
    """

    path: Path
    key: str
    size: int


class Body(io.BytesIO):
    """
    Hold the bytes of a request, which are taken in pieces so that each has a time limit.

    Args:
        content: The bytes.
        check: Called before each piece; raises where no more is to be sent.
    """

    def __init__(self, content: bytes, check: Callable[[], None]) -> None:
        super().__init__(content)
        self._check = check

    def read(self, size: int | None = -1, /) -> bytes:
        """
        Return the next bytes.

        Args:
            size: How many at most.
        """
        self._check()
        return super().read(size)


def files_of(source: Path, key: str | None) -> list[LocalFile]:
    """
    List the files that a file or folder consists of, with the objects that they become.

    Links to files count as the files that they lead to, and so do links to folders, but for those that lead to a folder
    which holds them.

    Args:
        source: The file or folder.
        key: The object, or what the keys of a folder begin with; None for the name of `source`.

    Raises:
        ConfigError: If a name cannot be a key, or a folder holds no file.
    """
    if source.is_file():
        wanted = key or source.name
        name = f"{wanted}{source.name}" if wanted.endswith("/") else wanted
        return [LocalFile(path=source, key=object_key(name), size=source.stat().st_size)]
    prefix = source.resolve().name if key is None else key
    prefix = f"{prefix.rstrip('/')}/" if prefix else ""
    found = [
        LocalFile(path=path, key=object_key(f"{prefix}{path.relative_to(source).as_posix()}"), size=path.stat().st_size)
        for path in _walked(source, (source.resolve(),))
    ]
    if not found:
        raise ConfigError(f"The folder {str(source)!r} holds no file.", hint="Object stores keep no empty folders.")
    return found


def _walked(folder: Path, above: tuple[Path, ...]) -> list[Path]:
    """List the files of a folder and of those in it, in the order of their names."""
    found: list[Path] = []
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            real = path.resolve()
            if real not in above:
                found += _walked(path, (*above, real))
        elif path.is_file():
            found.append(path)
        else:
            _log.warning("file.skipped path=%s reason=it is no file, or a link that leads nowhere", path)
    return found


@frozen(kw_only=True)
class Uploader:
    """
    Upload files to a bucket.

    Args:
        at: The bucket, and how its objects are transferred.
        resume: Whether parts of an earlier upload are used, and kept where this one fails.
    """

    at: BucketTransfer
    resume: bool

    def upload(self, files: Sequence[LocalFile]) -> None:
        """
        Upload files, the small ones side by side, then the large ones one after the other.

        Args:
            files: The files.

        Raises:
            StorageError: If one could not be uploaded.
        """
        began, size = time.monotonic(), sum(file.size for file in files)
        self.at.transfer.expect(size)
        self.at.run([(file, file.size) for file in files], self._whole, self._large)
        self.at.done("upload", len(files), size, began)

    def _whole(self, file: LocalFile) -> None:
        """Upload a file with one request."""
        content = file.path.read_bytes()
        facts = of_request(content, self.at.checksum)
        if self.at.checksum == "MD5":
            # Such servers declare no checksum when the object is downloaded.
            facts["Metadata"] = {METADATA: f"{zlib.crc32(content):08x}"}
        self._send("put_object", content, Key=file.key, **facts)
        self.at.transfer.advance(file.size, file.key)

    def _large(self, file: LocalFile) -> None:
        """Upload a file in parts, those that an earlier upload has sent left out."""
        begun = self._begun(file.key) if self.resume else None
        if begun is not None:
            try:
                return self._in_parts(file, begun)
            except StorageError as error:
                if error.code not in _GONE:
                    raise
                self.at.transfer.restart(file.key)
        return self._in_parts(file, self._created(file.key))

    def _in_parts(self, file: LocalFile, begun: Begun) -> None:
        """Send what is missing of an upload, and complete it."""
        parts = [*parts_of(file.size, part_size_for(file.size, self.at.part_size))]
        try:
            with file.path.open("rb") as stream:
                before = _state(stream.fileno())
                jobs = [partial(self._part, file, stream.fileno(), begun, part) for part in parts]
                sent = self.at.transfer.run(jobs)
                if _state(stream.fileno()) != before or before[0] != file.size:
                    raise _changed(file)
            self._complete(file, begun, parts, sent)
        except BaseException as error:
            if not self.resume or not _goes_on(error):
                self._abort(file.key, begun)
            elif isinstance(error, StorageError):
                error.hint = f"{error.hint or ''} What was sent is kept: upload again, and it goes on there.".strip()
            raise

    def _part(self, file: LocalFile, handle: int, begun: Begun, part: Part) -> tuple[Sent, int]:
        """Send a part unless the server has it."""
        self.at.transfer.check()
        content = _read(handle, part.offset, part.length)
        if len(content) != part.length:
            raise _changed(file)
        crc = zlib.crc32(content)
        there = begun.parts.get(part.number)
        if there is None or not kept(part, there, content, crc):
            facts = of_request(content, self.at.checksum)
            answer = self._send(
                "upload_part", content, Key=file.key, UploadId=begun.upload_id, PartNumber=part.number, **facts
            )
            there = Sent(etag=str(answer["ETag"]), size=part.length)
        self.at.transfer.advance(part.length, file.key)
        return there, crc

    def _send(self, operation: str, content: bytes, **parameters: Any) -> Any:
        """Send a request with a body, which takes no longer than its size explains."""
        parameters["Bucket"] = self.at.bucket

        def send(client: Any) -> Any:
            deadline = Deadline(len(content), self.at.line.timeout)

            def check() -> None:
                self.at.transfer.check()
                deadline.check()

            body = content if len(content) <= WHOLE else Body(content, check)
            return getattr(client, operation)(Body=body, **parameters)

        return self.at.line.attempt(self.at.transfer, operation, parameters, send)

    def _begun(self, key: str) -> Begun | None:
        """Find an earlier upload of an object that was broken off; None where there is none, or none may be listed."""
        try:
            answer = self.at.line.call(self.at.transfer, "list_multipart_uploads", Bucket=self.at.bucket, Prefix=key)
            upload_id = begun_upload(answer.get("Uploads") or (), key, self.at.checksum)
            if upload_id is None:
                return None
            parts: dict[int, Sent] = {}
            marker = 0
            while True:
                answer = self.at.line.call(
                    self.at.transfer,
                    "list_parts",
                    Bucket=self.at.bucket,
                    Key=key,
                    UploadId=upload_id,
                    PartNumberMarker=marker,
                )
                for row in answer.get("Parts") or ():
                    crc = str(row.get("ChecksumCRC32") or "")
                    parts[int(row["PartNumber"])] = Sent(etag=str(row["ETag"]), size=int(row["Size"]), crc=crc)
                after = int(answer.get("NextPartNumberMarker") or 0)
                if not answer.get("IsTruncated") or after <= marker:
                    break
                marker = after
        except StorageUnavailableError:
            raise
        except SkywardError as error:
            _log.debug("upload.not-listed bucket=%s key=%s reason=%s", self.at.bucket, key, error)
            return None
        _log.info("upload.resumed bucket=%s key=%s parts=%d", self.at.bucket, key, len(parts))
        return Begun(upload_id=upload_id, parts=parts)

    def _created(self, key: str) -> Begun:
        facts = {"ChecksumAlgorithm": "CRC32", "ChecksumType": "FULL_OBJECT"} if self.at.checksum == "CRC32" else {}
        answer = self.at.line.call(self.at.transfer, "create_multipart_upload", Bucket=self.at.bucket, Key=key, **facts)
        return Begun(upload_id=str(answer["UploadId"]))

    def _complete(self, file: LocalFile, begun: Begun, parts: Sequence[Part], sent: Sequence[tuple[Sent, int]]) -> None:
        rows: list[dict[str, Any]] = []
        for part, (there, crc) in zip(parts, sent, strict=True):
            row: dict[str, Any] = {"PartNumber": part.number, "ETag": there.etag}
            rows.append({**row, "ChecksumCRC32": crc_text(crc)} if self.at.checksum == "CRC32" else row)
        facts = {}
        if self.at.checksum == "CRC32":
            crc = whole_crc((crc, part.length) for part, (_, crc) in zip(parts, sent, strict=True))
            facts = {"ChecksumCRC32": crc_text(crc), "ChecksumType": "FULL_OBJECT"}
        try:
            self.at.line.call(
                self.at.transfer,
                "complete_multipart_upload",
                Bucket=self.at.bucket,
                Key=file.key,
                UploadId=begun.upload_id,
                MultipartUpload={"Parts": rows},
                **facts,
            )
        except StorageError as error:
            # The answer to a first request may have been lost.
            if error.code != "NoSuchUpload" or not self._is_there(file, [there.etag for there, _ in sent]):
                raise

    def _is_there(self, file: LocalFile, etags: Sequence[str]) -> bool:
        """Return whether the object is what was to be completed."""
        try:
            answer = self.at.line.call(self.at.transfer, "head_object", Bucket=self.at.bucket, Key=file.key)
        except StorageError:
            return False
        return bool(answer["ContentLength"] == file.size and answer.get("ETag") == etag_of_parts(etags))

    def _abort(self, key: str, begun: Begun) -> None:
        """Abort an upload, so that the server deletes what was sent; where it does not, the rules of the bucket do."""
        try:
            self.at.line.call(
                Transfer(), "abort_multipart_upload", Bucket=self.at.bucket, Key=key, UploadId=begun.upload_id
            )
        except SkywardError as error:
            _log.debug("upload.not-aborted bucket=%s key=%s reason=%s", self.at.bucket, key, error)


def _goes_on(error: BaseException) -> bool:
    """Return whether a later upload may go on where this one failed: it was broken off, and not refused."""
    return isinstance(error, StorageUnavailableError) or not isinstance(error, SkywardError)


def _state(handle: int) -> tuple[int, int]:
    """Return what tells that a file was written to."""
    facts = os.fstat(handle)
    return facts.st_size, facts.st_mtime_ns


def _read(handle: int, offset: int, length: int) -> bytes:
    """Read a part of a file, as much as there is."""
    found = bytearray()
    while len(found) < length and (piece := os.pread(handle, length - len(found), offset + len(found))):
        if not found and len(piece) == length:
            return piece
        found += piece
    return bytes(found)


def _changed(file: LocalFile) -> StorageError:
    return StorageError(
        f"The file {str(file.path)!r} was written to while it was uploaded.",
        key=file.key,
        hint="Upload it again when it is whole.",
    )
