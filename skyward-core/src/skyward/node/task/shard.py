"""
Split data among the ranks of a pool: `shard`.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping, MutableSequence, Sequence, Set as AbstractSet
from typing import Any, TypeVar, overload

from skyward.errors import ConfigError
from skyward.node.task import runtime

__all__ = ["block", "checked_index", "order", "shard"]

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")

_KEY_BYTES = 8


@overload
def shard(
    a: A,
    /,
    *,
    shuffle: bool = ...,
    seed: int | None = ...,
    drop_last: bool = ...,
    node: int | None = ...,
    total_nodes: int | None = ...,
) -> A: ...
@overload
def shard(
    a: A,
    b: B,
    /,
    *,
    shuffle: bool = ...,
    seed: int | None = ...,
    drop_last: bool = ...,
    node: int | None = ...,
    total_nodes: int | None = ...,
) -> tuple[A, B]: ...
@overload
def shard(
    a: A,
    b: B,
    c: C,
    /,
    *,
    shuffle: bool = ...,
    seed: int | None = ...,
    drop_last: bool = ...,
    node: int | None = ...,
    total_nodes: int | None = ...,
) -> tuple[A, B, C]: ...
@overload
def shard(
    a: A,
    b: B,
    c: C,
    d: D,
    /,
    *,
    shuffle: bool = ...,
    seed: int | None = ...,
    drop_last: bool = ...,
    node: int | None = ...,
    total_nodes: int | None = ...,
) -> tuple[A, B, C, D]: ...
@overload
def shard(
    *arrays: Any,
    shuffle: bool = ...,
    seed: int | None = ...,
    drop_last: bool = ...,
    node: int | None = ...,
    total_nodes: int | None = ...,
) -> Any: ...
def shard(
    *arrays: Any,
    shuffle: bool = False,
    seed: int | None = 0,
    drop_last: bool = False,
    node: int | None = None,
    total_nodes: int | None = None,
) -> Any:
    """
    Return this rank's part of the data; the parts of all ranks are disjoint and complete.

    Parts are contiguous blocks, in the order of ranks, and their sizes differ by one at most.
    Where nothing is shuffled, arrays, tensors and data frames are sliced and not copied.
    The type is kept, except where nothing of the type can be built from some of its items (a shuffled `range`): then
    the part is a list.
    A torch `Dataset` gives a `Subset`; nothing of it is loaded.
    Outside a task there is one rank, which gets everything.

    Args:
        arrays: Lists, tuples, arrays, tensors, data frames, or any sequences, all of one length.
        shuffle: Whether blocks are cut from a random order instead; the same one for all arrays and all ranks.
        seed: What that order follows from; None means 0, because all ranks need the same.
        drop_last: Whether items at the end are left out so that all parts have one size.
        node: Which part to give, from 0; by default the rank's own.
        total_nodes: Into how many parts to split; by default as many as there are ranks.

    Returns:
        The part of the one array, or a tuple with the part of each, where the same places belong together.

    Raises:
        ConfigError: If lengths differ, an array has no order, or a number is out of range.

    >>> shard([10, 11, 12, 13, 14], node=0, total_nodes=2)
    [10, 11, 12]
    >>> shard("abcde", (1, 2, 3, 4, 5), node=1, total_nodes=2)
    ('de', (4, 5))
    >>> shard(range(10), node=1, total_nodes=3, drop_last=True)
    range(3, 6)
    """
    if not arrays:
        raise ConfigError("shard() was given nothing to split; pass at least one sequence.")
    lengths = [_length(array, place) for place, array in enumerate(arrays)]
    if len(set(lengths)) > 1:
        raise ConfigError(f"shard() splits arrays of one length, and these have lengths {lengths}.")
    total = checked_index("total_nodes", runtime.instance_info().total_workers if total_nodes is None else total_nodes)
    if total < 1:
        raise ConfigError(f"total_nodes={total} is out of range; it must be at least 1.")
    rank = checked_index("node", runtime.instance_info().global_worker_index if node is None else node)
    if not 0 <= rank < total:
        raise ConfigError(f"node={rank} is out of range; with total_nodes={total} it must be from 0 to {total - 1}.")
    start, stop = block(lengths[0], rank, total, drop_last=drop_last)
    if shuffle:
        places = order(lengths[0], seed)[start:stop]
        parts = tuple(_taken(array, places) for array in arrays)
    else:
        parts = tuple(_sliced(array, start, stop) for array in arrays)
    return parts[0] if len(parts) == 1 else parts


def block(length: int, rank: int, total: int, *, drop_last: bool = False) -> tuple[int, int]:
    """
    Return where a rank's block begins and ends.

    >>> [block(7, rank, 3) for rank in range(3)]
    [(0, 3), (3, 5), (5, 7)]
    """
    size, over = divmod(length, total)
    if drop_last:
        over = 0
    start = rank * size + min(rank, over)
    return start, start + size + (rank < over)


def order(length: int, seed: int | None) -> Any:
    """
    Shuffle the numbers below a length, in the same way wherever the seed is the same.

    Gives an array where numpy is loaded, and a list elsewhere, with the same numbers.

    >>> sorted(int(place) for place in order(5, 0))
    [0, 1, 2, 3, 4]
    """
    start = 0 if seed is None else checked_index("seed", seed)
    # Sorting by random keys gives numpy and plain Python the same order, and takes each the fastest thing it has.
    keys = random.Random(start).randbytes(_KEY_BYTES * length)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        return numpy.argsort(numpy.frombuffer(keys, dtype=numpy.uint64), kind="stable")
    return sorted(range(length), key=memoryview(keys).cast("Q").__getitem__)


def checked_index(name: str, value: object) -> int:
    """
    Take a whole number.

    Args:
        name: The parameter's name.
        value: What was given for it.

    Raises:
        ConfigError: If it is none.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ConfigError(f"{name}={value!r} is no whole number; pass an int.")
    index: int = value.__index__()
    return index


def _length(array: Any, place: int) -> int:
    """Count the items of an array, or say why it cannot be split."""
    kind = type(array).__name__
    if isinstance(array, Mapping):
        raise ConfigError(f"Array {place} is a {kind}, which has no order; pass its values: shard(*data.values()).")
    if isinstance(array, AbstractSet):
        raise ConfigError(f"Array {place} is a {kind}, whose order differs from rank to rank; pass sorted(...).")
    if isinstance(array, tuple) and hasattr(array, "_fields"):
        raise ConfigError(f"Array {place} is a {kind}, which has fields and no items; pass them: shard(*value).")
    shape = getattr(array, "shape", None)
    if isinstance(shape, Sequence):
        if not shape:
            raise ConfigError(f"Array {place} is a {kind} without dimensions, and cannot be split.")
        return int(shape[0])
    if not hasattr(array, "__len__") or not hasattr(array, "__getitem__"):
        raise ConfigError(f"Array {place} is a {kind}, which is no sequence; pass a list, a tuple or an array.")
    return len(array)


def _sliced(array: Any, start: int, stop: int) -> Any:
    """Return a block."""
    if (part := _of_library(array, range(start, stop), slice(start, stop))) is not None:
        return part
    kind = type(array)
    try:
        part = array[start:stop]
    except (TypeError, KeyError, ValueError, IndexError):
        return _built(array, [array[place] for place in range(start, stop)])
    if isinstance(part, kind) or not isinstance(array, Sequence):
        return part
    return _built(array, list(part))


def _taken(array: Any, places: Any) -> Any:
    """Return the items at some places."""
    if (part := _of_library(array, places, places)) is not None:
        return part
    return _built(array, [array[place] for place in map(int, places)])


def _of_library(array: Any, places: Any, index: Any) -> Any:
    """Return a part in the way that the array's library offers, if we know it; None if not."""
    rows = getattr(array, "iloc", None)
    if rows is not None:
        return rows[index]
    # A Hugging Face data set gives a dict of columns for a slice of itself.
    if type(array).__module__.partition(".")[0] == "datasets" and hasattr(array, "select"):
        return array.select([int(place) for place in places] if not isinstance(places, range) else places)
    if isinstance(getattr(array, "shape", None), Sequence) and not isinstance(array, memoryview):
        return array[index]
    data = sys.modules.get("torch.utils.data")
    if data is not None and isinstance(array, data.Dataset):
        return data.Subset(array, [int(place) for place in places])
    return None


def _built(array: Any, items: list[Any]) -> Any:
    """Make something of the array's type from items, if that can be done."""
    kind = type(array)
    if isinstance(array, str):
        return "".join(items)
    if kind is list or kind is range:
        return items
    try:
        if isinstance(array, MutableSequence) or hasattr(array, "extend"):
            part = array[:0] if not hasattr(array, "maxlen") else kind(maxlen=array.maxlen)
            part = part if isinstance(part, kind) else kind()
            part.extend(items)
            return part
        part = kind(items)
    except (TypeError, ValueError, AttributeError, KeyError, IndexError):
        return items
    # A type may take one argument and mean something else by it.
    return part if hasattr(part, "__len__") and len(part) == len(items) else items
