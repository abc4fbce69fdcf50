"""Large buffers are beside the pickle, and smaller ones where there are many."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from skyward.link.payload import load
from skyward.link.payload_making import dump
from skyward.link.payload_parts import MOST_BUFFERS
from skyward.link.pickling import MANY, OUT_OF_BAND, OUT_OF_BAND_OF_MANY, Pickler


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


def test_arrays_are_pickled_as_numpy_pickles_them() -> None:
    """Each as if it was alone, whatever came before it: other dtypes and orders, views, objects, subclasses."""
    rows = np.arange(12.0).reshape(3, 4)
    arrays = [
        rows,
        rows.T,
        rows[:, ::2],
        rows[1],
        np.asfortranarray(rows),
        np.zeros(()),
        np.zeros((0, 3)),
        rows.astype(">f8"),
        np.array(["2026-01-01"], "M8[D]"),
        np.array([{}, None]),
        np.array([(1, 2.5)], dtype=[("a", "i4"), ("b", "f8")]),
        np.ma.masked_array([1.0, 2.0], [True, False]),
        rows.view(np.matrix),
        rows,
        np.arange(3, dtype=np.uint8),
    ]
    for array, back in zip(arrays * 2, load(dump(arrays * 2)), strict=True):
        alone = pickle.loads(pickle.dumps(array, 5))
        assert type(back) is type(array)
        assert (back.dtype, back.shape, back.strides) == (array.dtype, array.shape, alone.strides)
        assert (back == array).all()
