"""What a bucket holds: its objects page by page, whether one is there, and their removal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from attrs import frozen

from skyward.errors import NoSuchBucketError, NoSuchKeyError, StorageError
from skyward_storage.line import Line
from skyward_storage.transfer import Transfer

__all__ = ["Listed", "found", "listed", "removed", "removed_below"]

PAGES = 100_000
"""Pages after which a list counts as one without an end."""


@frozen(kw_only=True)
class Listed:
    """
    Hold what a list says of an object.

    Args:
        key: Its key.
        size: Its bytes.
    """

    key: str
    size: int


def listed(line: Line, transfer: Transfer, bucket: str, prefix: str) -> Iterator[list[Listed]]:
    """
    Yield the objects of a bucket page by page, in the order of their keys.

    Args:
        line: The store.
        transfer: The operation that it is part of.
        bucket: The bucket.
        prefix: What the keys begin with.

    Raises:
        NoSuchBucketError: If there is no such bucket.
        StorageError: If a page leads to itself.
    """
    more: dict[str, str] = {}
    for _ in range(PAGES):
        answer = line.call(transfer, "list_objects_v2", Bucket=bucket, Prefix=prefix, **more)
        if "IsTruncated" not in answer and "Name" not in answer:
            raise StorageError(
                f"{line.endpoint} answered ListObjectsV2 of s3://{bucket}/{prefix} with what is not what S3 answers.",
                endpoint=line.endpoint,
                bucket=bucket,
                key=prefix,
                hint="Check the endpoint.",
            )
        yield [Listed(key=str(row["Key"]), size=int(row.get("Size", 0))) for row in answer.get("Contents", ())]
        token = answer.get("NextContinuationToken")
        if not answer.get("IsTruncated") or not token:
            return
        if more.get("ContinuationToken") == token:
            break
        more = {"ContinuationToken": str(token)}
    raise StorageError(
        f"{line.endpoint} lists s3://{bucket}/{prefix} without an end.",
        endpoint=line.endpoint,
        bucket=bucket,
        key=prefix,
    )


def found(line: Line, transfer: Transfer, bucket: str, key: str) -> bool:
    """
    Return whether an object is there; for a prefix that ends with a slash, whether any is below it.

    Args:
        line: The store.
        transfer: The operation that it is.
        bucket: The bucket.
        key: The object.

    Raises:
        NoSuchBucketError: If there is no such bucket.
        AccessDeniedError: If the keys may not look.
    """
    if key.endswith("/"):
        answer = line.call(transfer, "list_objects_v2", Bucket=bucket, Prefix=key, MaxKeys=1)
        return bool(answer.get("Contents"))
    try:
        line.call(transfer, "head_object", Bucket=bucket, Key=key)
    except NoSuchKeyError:
        # An answer to HEAD does not say which of the two is missing.
        try:
            line.call(transfer, "head_bucket", Bucket=bucket)
        except NoSuchBucketError:
            raise
        except StorageError:
            return False
        return False
    return True


def removed(line: Line, transfer: Transfer, bucket: str, key: str) -> None:
    """
    Remove an object; one that is not there is no error, as S3 has it.

    Args:
        line: The store.
        transfer: The operation that it is.
        bucket: The bucket.
        key: The object.

    Raises:
        NoSuchBucketError: If there is no such bucket.
        StorageError: If it is refused.
    """
    try:
        line.call(transfer, "delete_object", Bucket=bucket, Key=key)
    except NoSuchKeyError:
        return


def removed_below(line: Line, transfer: Transfer, bucket: str, prefix: str) -> None:
    """
    Remove all objects below a prefix, a thousand with each request.

    Args:
        line: The store.
        transfer: The operation that it is.
        bucket: The bucket.
        prefix: What their keys begin with; ends with a slash.

    Raises:
        NoSuchBucketError: If there is no such bucket.
        StorageError: If one could not be removed.
    """
    keys = [each.key for page in listed(line, transfer, bucket, prefix) for each in page]
    batches = [keys[at : at + 1000] for at in range(0, len(keys), 1000)]
    transfer.run([partial(_remove_batch, line, transfer, bucket, batch) for batch in batches])


def _remove_batch(line: Line, transfer: Transfer, bucket: str, keys: Sequence[str]) -> None:
    """Remove objects with one request, or one by one where a server has no such request."""
    wanted: dict[str, Any] = {"Objects": [{"Key": key} for key in keys], "Quiet": True}
    try:
        answer = line.call(transfer, "delete_objects", Bucket=bucket, Delete=wanted)
    except StorageError as error:
        if error.code not in ("NotImplemented", "MethodNotAllowed", "InvalidArgument", "MalformedXML", "405", "501"):
            raise
        for key in keys:
            removed(line, transfer, bucket, key)
        return
    refused = [row for row in answer.get("Errors", ()) if row.get("Code") != "NoSuchKey"]
    if refused:
        first = refused[0]
        raise StorageError(
            f"{line.endpoint} could not remove {len(refused)} objects of s3://{bucket}, such as {first.get('Key')!r}: "
            f"{first.get('Code')}: {first.get('Message')}.",
            endpoint=line.endpoint,
            bucket=bucket,
            key=str(first.get("Key")),
            code=str(first.get("Code")),
            hint="The keys need the permission s3:DeleteObject on each of them.",
        )
