"""Checksums of a long sequence of bytes, block by block, while it is written or read."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Final, Self

__all__ = ["BLOCK", "BlockSums"]

BLOCK: Final = 8 << 20
"""Bytes that one checksum covers."""

_THREADS: Final = 2
_BEHIND: Final = 2
"""Blocks that may wait for their checksum; what they hold stays in memory as long."""


class BlockSums:
    """
    Compute the CRC-32 of each block in threads beside the caller's, which write or read meanwhile.

    >>> with BlockSums() as sums:
    ...     sums.feed(memoryview(b"sky"))
    ...     sums.feed(memoryview(b"ward"))
    ...     sums.finish() == [zlib.crc32(b"skyward")]
    True
    """

    def __init__(self) -> None:
        self._block: list[memoryview] = []
        self._room = BLOCK
        self._sums: list[Future[int]] = []
        self._threads: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)

    def feed(self, piece: memoryview) -> None:
        """Take the next bytes, which stay as they are until `finish`."""
        while len(piece):
            part = piece[: self._room]
            piece = piece[self._room :]
            self._block.append(part)
            self._room -= len(part)
            if not self._room:
                self._begin()

    def finish(self) -> list[int]:
        """Return the checksum of each block; the last one may be shorter."""
        last = [_sum(self._block)] if self._block else []
        return [each.result() for each in self._sums] + last

    def _begin(self) -> None:
        block, self._block, self._room = self._block, [], BLOCK
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="skyward-checksum")
        self._sums.append(self._threads.submit(_sum, block))
        if len(self._sums) > _BEHIND:
            self._sums[-1 - _BEHIND].result()


def _sum(block: Sequence[memoryview]) -> int:
    found = 0
    for piece in block:
        found = zlib.crc32(piece, found)
    return found
