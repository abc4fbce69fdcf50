"""A Ref travels as a name, and only with calls of its pool."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from typing import Any

import cloudpickle
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from skyward.errors import RefError
from skyward.link.payload import load
from skyward.link.payload_making import MAX_STORED, dump, pickled
from skyward.link.payload_parts import Place
from skyward.link.refs import Ref, Refs
from tests.descriptors import memory_descriptors


def put(refs: Refs, value: Any) -> Ref[Any]:
    """Put a value as a pool does."""
    return refs.put(pickled((value,), refs=refs))


@pytest.mark.parametrize(
    "value",
    [1, "text", {"a": [1, 2]}, b"x" * 300_000, "y" * (2 << 20), list(range(200_000))],
    ids=["int", "text", "dict", "bytes", "long text", "list"],
)
def test_a_ref_becomes_its_value(value: Any) -> None:
    """Alone and inside others, and here."""
    refs = Refs()
    ref = put(refs, value)
    assert ref.get() == value
    one, two = load(dump([ref, {"deep": (ref,)}], refs=refs))
    assert one == value
    assert two["deep"][0] is one


def test_it_travels_as_a_name() -> None:
    """The same one each time; its bytes are not in the payload."""
    refs = Refs()
    ref = put(refs, {"array": np.arange(1 << 20), "texts": ["a"] * 1000})
    names = set()
    for number in range(3):
        payload = dump(((number, ref), {}), refs=refs)
        assert len(payload.inline) < 1000
        assert payload.segment is None
        [kept] = [part for part in payload.parts if part.place == Place.STORED]
        names.add(kept.digest)
    assert len(names) == 1


def test_arrays_of_a_ref_are_the_functions_own() -> None:
    """It may write to them; the next call sees what was put."""
    refs, array = Refs(), np.zeros(1 << 20)
    ref = put(refs, array)
    array[:] = 5
    for _ in range(2):
        found = load(dump(ref, refs=refs))
        assert found.sum() == 0
        found[:] = 7
        assert ref.get().sum() == 0
        ref.get()[:] = 3


@pytest.mark.parametrize("count", [MAX_STORED + 20])
def test_more_refs_than_a_frame_has_descriptors_for(count: int) -> None:
    """The rest is copied."""
    refs = Refs()
    made = [put(refs, np.full(1 << 16, number)) for number in range(count)]
    found = load(dump(made, refs=refs))
    assert [array[0] for array in found] == list(range(count))


def test_a_ref_inside_a_value_that_is_put() -> None:
    """Is a part of it."""
    refs = Refs()
    inner = put(refs, np.arange(1 << 18))
    outer = put(refs, {"inner": inner})
    inner.free()
    assert (outer.get()["inner"] == np.arange(1 << 18)).all()


@pytest.mark.parametrize("pickler", [pickle.dumps, cloudpickle.dumps, copy.copy, dump])
def test_it_is_pickled_by_calls_only(pickler: Any) -> None:
    """And says what to do instead."""
    ref = put(Refs(), 1)
    with pytest.raises(RefError, match=r"ref\.get\(\)"):
        pickler(ref)


def test_a_ref_of_another_pool_is_refused() -> None:
    """Its value is on other nodes."""
    one, other = Refs(), Refs()
    with pytest.raises(RefError, match="another pool"):
        dump(put(one, 1), refs=other)


def test_a_ref_that_was_freed_is_refused() -> None:
    """Freeing it twice does no harm."""
    refs = Refs()
    ref = put(refs, 1)
    payload = dump(ref, refs=refs)
    ref.free()
    ref.free()
    assert repr(ref) == "<Ref, freed>"
    with pytest.raises(RefError, match="Put the value again"):
        dump(ref, refs=refs)
    with pytest.raises(RefError, match="Put the value again"):
        ref.get()
    assert load(payload) == 1


def test_refs_end_with_their_pool() -> None:
    """All of them at once."""
    refs = Refs()
    made = [put(refs, number) for number in range(3)]
    refs.clear()
    for ref in made:
        with pytest.raises(RefError, match="its pool is closed"):
            ref.get()


def test_the_last_reference_frees_the_memory() -> None:
    """No descriptor is left."""
    gc.collect()
    refs, before = Refs(), memory_descriptors()
    ref = put(refs, np.ones(1 << 20))
    segment = weakref.ref(ref._shown.kept.segment)
    assert memory_descriptors() > before
    del ref
    gc.collect()
    assert segment() is None
    assert memory_descriptors() == before


@given(st.lists(st.integers(1, 200_000), max_size=6), st.booleans())
@settings(deadline=None, max_examples=30)
def test_values_of_any_shape_survive(sizes: list[int], apart: bool) -> None:
    """Each buffer lies where it is looked for."""
    refs = Refs()
    value = [np.full(size, size % 251, np.uint8) for size in sizes] + [b"z" * size for size in sizes]
    found = load(dump([put(refs, one) for one in value] if apart else put(refs, value), refs=refs))
    assert [bytes(one) for one in found] == [bytes(one) for one in value]
