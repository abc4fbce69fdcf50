"""Large buffers are beside the pickle, and smaller ones where there are many."""

from __future__ import annotations

import numpy as np
import pytest

from skyward.link.payload import load
from skyward.link.payload_making import dump
from skyward.link.pickling import MANY, MOST_BUFFERS, OUT_OF_BAND, OUT_OF_BAND_OF_MANY, Pickler


def beside(*sizes: int) -> list[int]:
    """Tell which of some arrays are beside their pickle."""
    buffers: list[memoryview] = []
    Pickler([], buffers).dump([np.ones(size, np.uint8) for size in sizes])
    return [len(buffer) for buffer in buffers]


def test_a_few_small_arrays_are_in_the_pickle() -> None:
    """A part of its own costs more than the copy."""
    assert beside(OUT_OF_BAND - 1, OUT_OF_BAND, OUT_OF_BAND_OF_MANY) == [OUT_OF_BAND]


def test_of_many_small_arrays_most_are_beside_it() -> None:
    """Each byte is copied once instead of three times."""
    size = OUT_OF_BAND_OF_MANY
    assert len(beside(*[size] * 3000)) == 3000 - MANY // size
    assert beside(*[size - 1] * 300) == []


def test_the_buffers_beside_a_pickle_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their table has to fit into a frame."""
    assert 2 + 9 * (MOST_BUFFERS + 1) < 1 << 20
    monkeypatch.setattr("skyward.link.pickling.MOST_BUFFERS", 10)
    assert len(beside(*[OUT_OF_BAND] * 20)) == 10


def test_many_arrays_survive() -> None:
    """In order."""
    arrays = [np.full(size, size % 251, np.uint8) for size in range(15_000, 18_000)]
    found = load(dump(arrays))
    assert all((one == other).all() for one, other in zip(arrays, found, strict=True))
