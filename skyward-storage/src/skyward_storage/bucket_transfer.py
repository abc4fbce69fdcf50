"""What an upload and a download of a bucket's objects have in common."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from attrs import frozen

from skyward_storage.checksum import Checksum
from skyward_storage.line import Line
from skyward_storage.transfer import Transfer

__all__ = ["BucketTransfer"]

T = TypeVar("T")

_log = logging.getLogger("skyward.storage")


@frozen(kw_only=True)
class BucketTransfer:
    """
    Say between which bucket and this machine an operation transfers objects, and how.

    Args:
        line: The store.
        transfer: The operation that it is.
        bucket: The bucket.
        part_size: Bytes from which an object goes in parts, and of each part.
        checksum: What requests carry, and ask for.
    """

    line: Line
    transfer: Transfer
    bucket: str
    part_size: int
    checksum: Checksum | None

    def run(self, sizes: Sequence[tuple[T, int]], whole: Callable[[T], object], large: Callable[[T], object]) -> None:
        """
        Transfer objects, the small ones side by side, then the large ones one after the other.

        Args:
            sizes: The objects, each with its bytes.
            whole: Transfers one with a single request.
            large: Transfers one in parts, which go side by side.
        """
        self.transfer.run([partial(whole, each) for each, size in sizes if size <= self.part_size])
        for each, size in sizes:
            if size > self.part_size:
                large(each)

    def done(self, what: str, count: int, size: int, began: float) -> None:
        """Log the end of an operation that began at a time of the monotonic clock."""
        seconds = time.monotonic() - began
        _log.info("%s.done bucket=%s objects=%d bytes=%d seconds=%.1f", what, self.bucket, count, size, seconds)
