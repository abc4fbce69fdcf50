"""
What the functions of a pool share: `sky.dict`, `sky.set`, `sky.counter`, `sky.queue`, `sky.barrier` and `sky.lock`.

A pool has them as methods, for its client.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, cast

from skyward.errors import NoPoolError
from skyward.node.agent.descendants import MARK
from skyward.node.task.call_collections import task_collections
from skyward.pending import current_pool

if TYPE_CHECKING:
    from skyward.collections.named_collections import Collections, Consistency
    from skyward.collections.shared_barrier import SharedBarrier
    from skyward.collections.shared_counter import SharedCounter
    from skyward.collections.shared_dict import SharedDict
    from skyward.collections.shared_lock import SharedLock
    from skyward.collections.shared_queue import SharedQueue
    from skyward.collections.shared_set import SharedSet

__all__ = ["SharedState", "barrier", "counter", "dict", "lock", "queue", "set"]


class SharedState:
    """Share collections with the functions of a pool; the part of a pool that does."""

    @property
    def _collections(self) -> Collections:
        raise NotImplementedError

    def dict(self, name: str, *, consistency: Consistency | None = None) -> SharedDict:
        """Open a dict that the pool's functions share; see `sky.dict`."""
        return self._collections.dict(name, consistency=consistency)

    def set(self, name: str, *, consistency: Consistency | None = None) -> SharedSet:
        """Open a set that the pool's functions share; see `sky.set`."""
        return self._collections.set(name, consistency=consistency)

    def counter(self, name: str, *, consistency: Consistency | None = None) -> SharedCounter:
        """Open a counter that the pool's functions share; see `sky.counter`."""
        return self._collections.counter(name, consistency=consistency)

    def queue(self, name: str, maxsize: int = 0) -> SharedQueue:
        """Open a queue that the pool's functions share; see `sky.queue`."""
        return self._collections.queue(name, maxsize)

    def barrier(self, name: str, n: int) -> SharedBarrier:
        """Open a barrier that the pool's functions share; see `sky.barrier`."""
        return self._collections.barrier(name, n)

    def lock(self, name: str, timeout: float | None = 30) -> SharedLock:
        """Open a lock that the pool's functions share; see `sky.lock`."""
        return self._collections.lock(name, timeout)


def dict(name: str, *, consistency: Consistency | None = None) -> SharedDict:  # noqa: A001  # as the seeds name it
    """
    Open a dict that all functions of a pool share, by its name.

    In a task it is the task's pool's; elsewhere that of the pool that is open, as is `pool.dict(name)`.

    Args:
        name: Its name, the same wherever it is used.
        consistency: `"strong"`, which is what None is, asks the store for each operation; `"eventual"` answers reads
            from what is known here, and gathers writes.

    Raises:
        NoPoolError: If no pool is open here.
        UsageError: If the name is no name or another collection's, or the pool was opened with `cluster=False`.
        StoreLostError: If the store cannot be reached.

    >>> import skyward as sky
    >>> @sky.function
    ... def note(word: str) -> None:
    ...     sky.dict("lengths")[word] = len(word)
    >>> with sky.Compute(nodes=2, console="silent") as pool:
    ...     _ = pool.map(note, ["a", "bc", "def"])
    ...     sorted(pool.dict("lengths").items())
    [('a', 1), ('bc', 2), ('def', 3)]
    """
    return _here().dict(name, consistency=consistency)


def set(name: str, *, consistency: Consistency | None = None) -> SharedSet:  # noqa: A001  # as the seeds name it
    """
    Open a set that all functions of a pool share; arguments and errors are those of `sky.dict`.

    >>> import skyward as sky
    >>> @sky.function
    ... def note(word: str) -> None:
    ...     sky.set("seen").add(word)
    >>> with sky.Compute(console="silent") as pool:
    ...     _ = pool.map(note, ["a", "b", "a"])
    ...     len(pool.set("seen"))
    2
    """
    return _here().set(name, consistency=consistency)


def counter(name: str, *, consistency: Consistency | None = None) -> SharedCounter:
    """
    Open a counter that all functions of a pool share; arguments and errors are those of `sky.dict`.

    >>> import skyward as sky
    >>> @sky.function
    ... def work(item: int) -> None:
    ...     sky.counter("done").increment()
    >>> with sky.Compute(nodes=2, console="silent") as pool:
    ...     _ = pool.map(work, range(10))
    ...     pool.counter("done").value
    10
    """
    return _here().counter(name, consistency=consistency)


def queue(name: str, maxsize: int = 0) -> SharedQueue:
    """
    Open a first-in, first-out queue that all functions of a pool share.

    What a task takes is acknowledged when it ends well, and delivered again when it fails or dies.

    Args:
        name: Its name, the same wherever it is used.
        maxsize: How many items may wait in it; 0 for any number.

    Raises:
        NoPoolError: If no pool is open here.
        UsageError: If an argument makes no sense, or the pool was opened with `cluster=False`.
        StoreLostError: If the store cannot be reached.

    >>> import skyward as sky
    >>> @sky.function
    ... def take() -> int:
    ...     return sky.queue("jobs").get(timeout=10)
    >>> with sky.Compute(console="silent") as pool:
    ...     pool.queue("jobs").put(7)
    ...     take() >> pool
    7
    """
    return _here().queue(name, maxsize)


def barrier(name: str, n: int) -> SharedBarrier:
    """
    Open a barrier at which functions of a pool wait for each other.

    Args:
        name: Its name, the same wherever it is used.
        n: How many it waits for.

    Raises:
        NoPoolError: If no pool is open here.
        UsageError: If an argument makes no sense, or the pool was opened with `cluster=False`.
        StoreLostError: If the store cannot be reached.

    >>> import skyward as sky
    >>> @sky.function
    ... def meet() -> str:
    ...     sky.barrier("there", 2).wait()
    ...     return "met"
    >>> with sky.Compute(nodes=2, console="silent") as pool:
    ...     meet() @ pool
    ['met', 'met']
    """
    return _here().barrier(name, n)


def lock(name: str, timeout: float | None = 30) -> SharedLock:
    """
    Open a lock that one function of a pool holds at a time.

    Args:
        name: Its name, the same wherever it is used.
        timeout: Seconds to wait for it; None waits for ever.

    Raises:
        NoPoolError: If no pool is open here.
        UsageError: If an argument makes no sense, or the pool was opened with `cluster=False`.
        StoreLostError: If the store cannot be reached.

    >>> import skyward as sky
    >>> @sky.function
    ... def add(n: int) -> None:
    ...     with sky.lock("sum"):
    ...         shared = sky.dict("shared")
    ...         shared["sum"] = shared.get("sum", 0) + n
    >>> with sky.Compute(nodes=2, console="silent") as pool:
    ...     _ = pool.map(add, range(5))
    ...     pool.dict("shared")["sum"]
    10
    """
    return _here().lock(name, timeout)


def _here() -> SharedState | Collections:
    """Return the collections of the pool that is open here, or of the task that this is."""
    try:
        return cast("SharedState", current_pool.get())
    except LookupError:
        if MARK in os.environ:
            return task_collections()
    raise NoPoolError(
        "Collections are shared by the functions of a pool, and no pool is open here.",
        hint='Use them in a task, inside `with sky.Compute(...)`, or as pool.dict("name").',
    ) from None
