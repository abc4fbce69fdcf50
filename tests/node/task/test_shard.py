import array
import collections
import subprocess
import sys
import types
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, strategies as st

from skyward.errors import ConfigError
from skyward.node.task import task_context
from skyward.node.task.shard import order, shard


class Frame:
    """A table whose rows are reached through `iloc`, as a data frame's are."""

    def __init__(self, rows):
        self.rows = list(rows)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, column):
        raise KeyError(column)

    @property
    def iloc(self):
        return Rows(self.rows)


class Rows:
    def __init__(self, rows):
        self.rows = rows

    def __getitem__(self, index):
        return Frame(self.rows[index] if isinstance(index, slice) else [self.rows[place] for place in index])


class Songs(collections.abc.Sequence):
    """A sequence that cannot be built from items."""

    def __init__(self, *, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, place):
        if isinstance(place, slice):
            raise TypeError("no slices")
        if place >= self.count:
            raise IndexError(place)
        return f"song {place}"


class Names(list):
    pass


def parts(*arrays, total, **settings):
    return [shard(*arrays, node=node, total_nodes=total, **settings) for node in range(total)]


@given(
    items=st.lists(st.integers()),
    total=st.integers(1, 12),
    shuffle=st.booleans(),
    seed=st.none() | st.integers(),
)
def test_parts_are_disjoint_and_complete(items, total, shuffle, seed):
    """
    Every item is in exactly one part, and sizes differ by one at most.
    """
    numbered = list(enumerate(items))
    got = parts(numbered, total=total, shuffle=shuffle, seed=seed)
    assert sorted(numbered) == sorted(item for part in got for item in part)
    sizes = [len(part) for part in got]
    assert max(sizes) - min(sizes) <= 1


@given(length=st.integers(0, 50), total=st.integers(1, 12), shuffle=st.booleans())
def test_drop_last_makes_parts_equal(length, total, shuffle):
    """
    With `drop_last` all parts have one size, and only what does not fill a part of all is missing.
    """
    got = parts(range(length), total=total, shuffle=shuffle, drop_last=True)
    assert {length // total} == {len(part) for part in got}
    assert len({item for part in got for item in part}) == length // total * total


@given(length=st.integers(0, 40), total=st.integers(1, 6), seed=st.integers(-5, 5))
def test_arrays_stay_aligned(length, total, seed):
    """
    The same places of all arrays go together, whatever types they have.
    """
    items, text, numbers = list(range(length)), tuple(map(str, range(length))), np.arange(length) * 10
    for one, two, three in parts(items, text, numbers, total=total, shuffle=True, seed=seed):
        assert [str(item) for item in one] == list(two)
        assert [item * 10 for item in one] == three.tolist()


def test_unshuffled_parts_are_blocks_in_order():
    """
    Without shuffling the parts put end to end are the data; the first ones are longer.
    """
    assert parts(list("abcdefg"), total=3) == [["a", "b", "c"], ["d", "e"], ["f", "g"]]


@pytest.mark.parametrize(
    "value",
    [
        [1, 2, 3, 4, 5],
        (1, 2, 3, 4, 5),
        "abcde",
        b"abcde",
        bytearray(b"abcde"),
        collections.deque([1, 2, 3, 4, 5], maxlen=9),
        collections.UserList([1, 2, 3, 4, 5]),
        Names("abcde"),
        array.array("d", [1, 2, 3, 4, 5]),
        np.arange(5),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("shuffle", [False, True])
def test_type_is_kept(value, shuffle):
    """
    A part has the type of the whole, shuffled or not.
    """
    first, second = parts(value, total=2, shuffle=shuffle)
    assert type(value) is type(first) is type(second)
    assert sorted(value) == sorted([*first, *second])


def test_range_is_sliced_and_a_shuffled_one_is_a_list():
    """
    A range stays one as long as it can.
    """
    assert parts(range(5), total=2) == [range(3), range(3, 5)]
    assert type(shard(range(5), shuffle=True, node=0, total_nodes=2)) is list


def test_unknown_sequence_becomes_a_list():
    """
    A sequence that cannot be sliced or built gives a list of its items.
    """
    assert parts(Songs(count=3), total=2) == [["song 0", "song 1"], ["song 2"]]


def test_rows_of_frames_are_taken_by_place():
    """
    A data frame is split by rows, and stays one.
    """
    first, second = parts(Frame("abcde"), total=2)
    assert (first.rows, second.rows) == (["a", "b", "c"], ["d", "e"])
    shuffled = parts(Frame("abcde"), total=2, shuffle=True)
    assert sorted("abcde") == sorted(shuffled[0].rows + shuffled[1].rows)


def test_blocks_of_an_array_are_views():
    """
    Nothing is copied where nothing is shuffled, and only the first dimension is cut.
    """
    whole = np.arange(12).reshape(6, 2)
    part = shard(whole, node=1, total_nodes=3)
    assert np.shares_memory(whole, part)
    assert part.tolist() == [[4, 5], [6, 7]]


def test_torch_dataset_is_not_loaded(monkeypatch):
    """
    A map-style data set of torch gives a subset of it, by index.
    """
    data = types.ModuleType("torch.utils.data")

    class Dataset:
        def __len__(self):
            return 5

        def __getitem__(self, place):
            raise AssertionError("loaded")

    data.Dataset = Dataset
    data.Subset = lambda dataset, indices: (dataset, indices)
    monkeypatch.setitem(sys.modules, "torch.utils.data", data)
    dataset = Dataset()
    assert shard(dataset, node=1, total_nodes=2) == (dataset, [3, 4])


def test_order_is_the_same_with_and_without_numpy():
    """
    A rank where numpy is loaded and one where it is not cut from the same order; the order itself never changes.
    """
    code = (
        "import sys; from skyward.node.task.shard import order; assert 'numpy' not in sys.modules; print(order(10, 42))"
    )
    plain = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert str(order(10, 42).tolist()) == plain.strip()
    assert plain.strip() == "[8, 9, 4, 0, 3, 2, 6, 7, 5, 1]"


def test_seeds_make_different_orders():
    """
    Another seed is another order, and None is the seed 0.
    """
    settings = {"shuffle": True, "node": 0, "total_nodes": 2}
    assert shard(range(50), seed=1, **settings) != shard(range(50), seed=2, **settings)
    assert shard(range(50), seed=None, **settings) == shard(range(50), seed=0, **settings)


def test_rank_comes_from_the_task():
    """
    In a task the global rank decides; outside there is one part, which is everything.
    """
    facts = {"node": 1, "worker": 1, "workers_per_node": 2}
    context = task_context.TaskContext(call_id=1, function="f", facts=facts, membership={"total_nodes": 2})
    token = task_context.set_context(context)
    try:
        assert shard(list(range(8))) == [6, 7]
        assert shard(list(range(8)), node=0) == [0, 1]
    finally:
        task_context.reset_context(token)
    assert shard(list(range(8))) == list(range(8))


def test_numpy_is_not_imported():
    """
    Splitting lists costs no import of numpy.
    """
    code = (
        "import sys; from skyward.node.task.shard import shard; "
        "shard([1, 2], shuffle=True); print('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


class Point(NamedTuple):
    x: list
    y: list


@pytest.mark.parametrize(
    ("arrays", "settings", "message"),
    [
        ((), {}, "nothing to split"),
        (([1, 2], [1]), {}, r"lengths \[2, 1\]"),
        (({"x": [1]},), {}, "Array 0 is a dict, which has no order; pass its values"),
        (([1], {1}), {}, "Array 1 is a set"),
        ((iter([1]),), {}, "list_iterator, which is no sequence"),
        ((np.array(1.0),), {}, "ndarray without dimensions"),
        ((Point([1], [2]),), {}, "Point, which has fields"),
        (([1],), {"node": 2, "total_nodes": 2}, "node=2 is out of range; with total_nodes=2 it must be from 0 to 1"),
        (([1],), {"node": -1, "total_nodes": 2}, "node=-1 is out of range"),
        (([1],), {"node": 0, "total_nodes": 0}, "total_nodes=0 is out of range"),
        (([1],), {"node": "0", "total_nodes": 2}, "node='0' is no whole number"),
        (([1],), {"shuffle": True, "seed": 1.5}, "seed=1.5 is no whole number"),
    ],
)
def test_what_cannot_be_split_is_named(arrays, settings, message):
    """
    The error says which value cannot be used and what can.
    """
    with pytest.raises(ConfigError, match=message):
        shard(*arrays, **settings)
