"""What rclone's words mean for the user of a volume: which error, and what to do."""

from __future__ import annotations

import re
from typing import NamedTuple

from skyward.node.volumes.volume_order import VolumeOrder
from skyward.plain import plain_line

__all__ = ["VolumeFailure", "failure_of", "last_words", "no_fuse"]

_STAMP = re.compile(r"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d ", re.MULTILINE)
_SAID = 400


class VolumeFailure(NamedTuple):
    """
    Why a volume cannot be had.

    Args:
        kind: Name of the error that the client raises.
        message: What failed and why.
        hint: What to do about it.
    """

    kind: str
    message: str
    hint: str | None = None


class _Row(NamedTuple):
    pattern: str
    kind: str
    why: str
    hint: str


_ROWS = (
    _Row("NoSuchBucket|directory not found|bucket does not exist", "NoSuchBucketError", "there is no such bucket",
         "Make the bucket, or correct bucket= or the endpoint of storage=."),
    _Row("InvalidAccessKeyId|SignatureDoesNotMatch|InvalidToken|ExpiredToken|InvalidClientTokenId", "AccessDeniedError",
         "its keys are refused", "Give the keys of this store in storage=."),
    _Row("PermanentRedirect|AuthorizationHeaderMalformed|MovedPermanently|IllegalLocationConstraint|BucketRegionError",
         "StorageError", "it is in another region", "Give storage= the bucket's own region."),
    _Row("no EC2 IMDS role found|NoCredentialProviders|failed to refresh cached credentials|no valid credential",
         "AccessDeniedError", "the machine has no role of its own that opens it",
         "Give the machines an instance profile that may read the bucket, or keys with storage=."),
    _Row("AccessDenied|Access Denied|Forbidden|StatusCode: 403|status code: 403|AllAccessDisabled", "AccessDeniedError",
         "its keys may not do that", "Allow them to list, read and, for read_only=False, write and delete."),
    _Row("no space left on device|too big for remaining disk|disk quota exceeded", "ConfigError",
         "the node's disk is full",
         'Ask for a larger one with disk_gb=, narrow prefix=, or write type="mount".'),
    _Row("no such host|server misbehaving|name resolution", "StorageUnavailableError", "its endpoint has no address",
         "Correct the endpoint of storage=."),
    _Row("connection refused|network is unreachable|no route to host|i/o timeout|context deadline exceeded"
         "|connection reset|EOF|Client.Timeout", "StorageUnavailableError", "its endpoint does not answer",
         "Correct the endpoint of storage=, or let nodes reach it."),
    _Row("x509|tls: |HTTP response to HTTPS client|malformed HTTP", "StorageUnavailableError",
         "its endpoint does not speak as its address says", "Correct the endpoint of storage=: https:// or http://."),
)  # fmt: skip

_NO_FUSE = re.compile(
    "fusermount|fuse device not found|/dev/fuse|mount helper error|operation not permitted|failed to mount",
    re.IGNORECASE,
)


def failure_of(order: VolumeOrder, text: str) -> VolumeFailure:
    """
    Return what rclone's errors mean; what is not known is passed on as it is.

    Args:
        order: The volume.
        text: What rclone wrote.

    >>> order = VolumeOrder(bucket="b-1", mount="/d", endpoint="http://h:1", region="x")
    >>> failure_of(order, "ERROR : error listing: directory not found").kind
    'NoSuchBucketError'
    """
    said = last_words(text)
    for row in _ROWS:
        if re.search(row.pattern, text, re.IGNORECASE):
            # What the store says itself helps where the row is broad.
            return VolumeFailure(row.kind, f"{_title(order)}: {row.why}. The store's words: {said}", row.hint)
    return VolumeFailure("StorageError", f"{_title(order)}: {said or 'rclone said nothing'}")


def no_fuse(text: str) -> bool:
    """
    Return whether rclone says that nothing can be mounted here, as in a container.

    >>> no_fuse("Fatal error: failed to mount FUSE fs: fusermount: exec: not found")
    True
    """
    return _NO_FUSE.search(text) is not None


def last_words(text: str) -> str:
    """
    Return the last entry of an output that says something, in one line and without its time.

    >>> last_words("2026/11/25 23:00:00 ERROR : a: b\\n\\n")
    'ERROR : a: b'
    """
    entries = [" ".join(entry.split()) for entry in _STAMP.split(text) if entry.strip()]
    return plain_line(entries[-1])[:_SAID] if entries else ""


def _title(order: VolumeOrder) -> str:
    title = order.title
    return f"{title[0].upper()}{title[1:]} cannot be had from {order.endpoint}"
