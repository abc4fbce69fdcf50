"""`sky.put`: a value is sent to nodes once, for any number of calls."""

from __future__ import annotations

import os
from typing import Any, TypeVar, cast

from skyward.errors import NoPoolError
from skyward.link.refs import Ref
from skyward.node.agent.descendants import MARK
from skyward.node.task.runtime import put_from_task
from skyward.pending import current_pool

__all__ = ["put"]

T = TypeVar("T")


def put(value: T) -> Ref[T]:
    """
    Keep a value for calls of the active pool; the same as `pool.put(value)`.

    It is pickled once, and sent once to each node that a call of it runs on.
    In a task it stays at the task's node: the Ref is returned in its place, and goes into later calls.

    Args:
        value: Anything that can be an argument. It may change afterwards: what was put stays as it was.

    Returns:
        What stands for it, as an argument or inside other values; functions get the value itself.

    Raises:
        NoPoolError: If no pool is open here.
        RefError: If it is called in a task, and the node has no memory for the value.
        SerializationError: If it cannot be pickled.

    >>> import skyward as sky
    >>> @sky.function
    ... def count(words: dict[str, int], word: str) -> int:
    ...     return words.get(word, 0)
    >>> with sky.Compute(console="silent"):
    ...     words = sky.put({"a": 3, "the": 5})
    ...     [count(words, word) >> sky for word in ("a", "an", "the")]
    [3, 0, 5]
    """
    try:
        pool = current_pool.get()
    except LookupError:
        if MARK in os.environ:
            return cast("Ref[T]", put_from_task(value))
        raise NoPoolError(
            "sky.put keeps a value for the calls of a pool, and no pool is open here.",
            hint="Call it inside `with sky.Compute(...)`, or use `pool.put(value)`.",
        ) from None
    return cast("Ref[T]", cast("Any", pool).put(value))
