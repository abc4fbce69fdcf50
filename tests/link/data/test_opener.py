"""A pickle that is opened as data makes values, and runs nothing: a corpus of hostile ones, and any bytes at all."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
import time
import traceback
import tracemalloc
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from skyward.link.data.allowed_names import DataNames
from skyward.link.data.maker import Refused
from skyward.link.data.opener import open_data
from tests.link.data import hostile
from tests.link.data.mutation import PIECES, mutated
from tests.link.data.values import VALUES, pickled, same
from tests.link.data.watching import known_names, opened

HARMLESS = {
    "a frame of an exabyte",
    "a memory of 32 GiB",
    "lists in lists",
    "marks in marks",
}
"""What is odd and makes a value all the same, quickly."""


@pytest.fixture(scope="module")
def names() -> DataNames:
    """Names of libraries that are loaded, so that none is imported while audit events are recorded."""
    return known_names()


@pytest.mark.parametrize("data", hostile.all_of_them().values(), ids=list(hostile.all_of_them()))
def test_a_hostile_pickle_is_refused(data: bytes, names: DataNames, request: pytest.FixtureRequest) -> None:
    """Soon, without running anything, and without more memory than it has bytes."""
    tracemalloc.start()
    began = time.process_time()
    value, did = opened(data, names)
    spent, (_, peak) = time.process_time() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [] == did
    assert isinstance(value, Refused | ValueError) or request.node.callspec.id in HARMLESS, value
    assert spent < 20.0
    assert peak < 300 * len(data) + (1 << 20)


@pytest.mark.parametrize(
    ("module", "found"),
    [("os", "system"), ("builtins", "eval"), ("numpy", "load"), ("torch", "load"), ("pandas", "eval"), ("a.b", "C.d")],
)
def test_what_is_refused_is_named(module: str, found: str, names: DataNames) -> None:
    """As it is called in the pickle, whether it is there or not."""
    with pytest.raises(Refused, match=rf"^{module}\.{found}$"):
        open_data(hostile.whole(hostile.name(module, found)), names)


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="a tuple keeps its hash from Python 3.14 on")
def test_the_corpus_has_something_to_hold_against() -> None:
    """The key that is refused keeps Python's own unpickler busy for ever."""
    data = hostile.BOMBS["a key that takes for ever to hash"]
    script = f"import pickle; pickle.loads({data!r})"
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run([sys.executable, "-c", script], timeout=2.0, check=False)


def test_what_it_refers_to_outside_is_a_number() -> None:
    """An exception of a chain is named by its place, and by nothing that takes long to look up."""
    assert "other" == open_data(hostile.whole(hostile.plain(3), b"Q"), DataNames(), chained={3: "other"}.__getitem__)
    bomb = hostile.whole(hostile.doubled(60), b"Q")
    with pytest.raises(ValueError, match="outside it"):
        open_data(bomb, DataNames(), chained={3: "other"}.__getitem__)


def test_an_import_error_imports_nothing_when_it_is_printed() -> None:
    """Python looks into a module for what a name may have been meant to be: which one is not for a node to say."""
    state = hostile.plain({"name": "this", "path": "x", "name_from": "y"})
    error = open_data(hostile.whole(hostile.call("builtins", "ImportError", "no"), state, hostile.BUILD), DataNames())
    assert ("this", "x") == (error.name, error.path)
    sys.modules.pop("this", None)
    text = "".join(traceback.format_exception(error))
    assert "ImportError: no" in text
    assert "this" not in sys.modules


# Plain data is what pickle makes of it.

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(max_size=20)
    | st.dates()
    | st.datetimes()
    | st.timedeltas()
    | st.decimals(allow_nan=False)
    | st.uuids()
    | st.fractions()
    | st.complex_numbers(allow_nan=False)
    | st.sampled_from([..., NotImplemented, int, dict]),
    lambda inside: (
        st.lists(inside)
        | st.lists(inside).map(tuple)
        | st.dictionaries(st.text() | st.integers() | st.tuples(st.integers(), st.text()), inside)
        | st.sets(st.integers())
        | st.frozensets(st.text())
    ),
    max_leaves=30,
)


@given(plain, st.sampled_from([4, 5]))
@settings(suppress_health_check=[HealthCheck.too_slow])
@example([*range(300)], 5)
@example([0.5] * 1000 + [1, 70_000, -1], 5)
def test_plain_data_comes_out_as_it_went_in(value: Any, protocol: int) -> None:
    """With its types."""
    found = open_data(pickle.dumps(value, protocol=protocol), DataNames())
    assert value == found
    assert type(value) is type(found)


# Their texts may hold addresses and times, which differ from worker to worker.
@pytest.mark.parametrize(
    "value", VALUES, ids=[f"{type(value).__name__}-{number}" for number, value in enumerate(VALUES)]
)
def test_a_value_of_the_standard_library_comes_out_as_it_went_in(value: Any) -> None:
    """Of its own type."""
    assert same(value, open_data(pickled(value), DataNames()))


def test_references_are_kept() -> None:
    """One object twice is one object here, also one that holds itself."""
    shared: list[Any] = [1]
    found = open_data(pickle.dumps([shared, shared], 5), DataNames())
    assert found[0] is found[1]
    shared.append(shared)
    found = open_data(pickle.dumps(shared, 5), DataNames())
    assert found[1] is found


def test_buffers_are_not_copied() -> None:
    """What came beside the pickle is what the value goes on to use."""
    buffer = bytearray(b"content")
    data = pickle.dumps(pickle.PickleBuffer(buffer), protocol=5, buffer_callback=lambda _: False)
    found = open_data(data, DataNames(), buffers=[memoryview(buffer)])
    buffer[:1] = b"C"
    assert b"Content" == bytes(found)


def test_a_long_pickle_is_not_copied() -> None:
    """It is read where it lies; what it holds is cut out of it once."""
    value = [bytes(4 << 20), "x" * (1 << 20), [0.5] * 1000]
    data = memoryview(pickle.dumps(value, 5))
    assert value == open_data(data, DataNames())


# Random bytes.


@pytest.mark.parametrize("seed", range(20))
def test_no_bytes_run_anything(seed: int, names: DataNames) -> None:
    """Whatever is made of the corpus and of honest pickles is a value or refused, and nothing is run."""
    draw = random.Random(seed)
    for _ in range(150):
        data = mutated(draw, draw.choice(PIECES))
        _, did = opened(data, names)
        assert [] == did, data
