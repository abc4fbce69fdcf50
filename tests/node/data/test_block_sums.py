"""Checksums do not depend on how the bytes were cut."""

from __future__ import annotations

import random
import zlib

import pytest

from skyward.node.data.block_sums import BLOCK, BlockSums
from tests.seeds import seeds


def sums_of(pieces: list[bytes]) -> list[int]:
    """Return the checksums of pieces that come one behind the other."""
    with BlockSums() as sums:
        for piece in pieces:
            sums.feed(memoryview(piece))
        return sums.finish()


@pytest.mark.parametrize("size", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 4 * BLOCK + 17])
def test_there_is_one_for_each_block(size: int) -> None:
    """The last block may be shorter; of nothing there is none."""
    data = random.Random(size).randbytes(size)
    assert [zlib.crc32(data[at : at + BLOCK]) for at in range(0, size, BLOCK)] == sums_of([data])


@pytest.mark.parametrize("seed", seeds("cuts of blocks", 3))
def test_cuts_make_no_difference(seed: int) -> None:
    """Pieces of any size give what the whole gives."""
    drawing = random.Random(seed)
    data = drawing.randbytes(3 * BLOCK + drawing.randrange(BLOCK))
    cuts = sorted(drawing.randrange(len(data)) for _ in range(20))
    pieces = [data[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    assert sums_of([data]) == sums_of(pieces)
