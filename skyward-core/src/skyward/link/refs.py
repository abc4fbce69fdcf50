"""Values that are put once and used by many calls: what stands for one, and how it travels."""

from __future__ import annotations

import mmap
import os
import pickle
import weakref
from typing import Any, Generic, TypeVar

from skyward.errors import RefError
from skyward.link.payload import Keep, Pickled
from skyward.link.segment import aligned, write_segment

__all__ = ["Ref", "Refs"]

T = TypeVar("T")

_NAME = 32


class Ref(Generic[T]):
    """
    Stand for a value that was put: an argument of any calls of its pool, alone or inside other values.

    The function gets the value itself, a fresh one in each call.
    What nodes keep of it goes with the last reference to it, with `free`, or with the pool.

    >>> import skyward as sky
    >>> @sky.function
    ... def largest(numbers: list[int], at_least: int) -> int:
    ...     return max(at_least, *numbers)
    >>> with sky.Compute(console="silent") as pool:
    ...     numbers = pool.put(list(range(1000)))
    ...     [largest(numbers, least) >> pool for least in (5, 5000)]
    [999, 5000]
    """

    __slots__ = ("__weakref__", "_home", "_shown", "_sizes")

    def __init__(self, shown: Any, sizes: tuple[int, ...], home: object) -> None:
        self._shown: Any = shown
        self._sizes = sizes
        self._home = weakref.ref(home)

    @property
    def nbytes(self) -> int:
        """Count the bytes that it takes on this machine, and on each node that a call of it ran on."""
        return sum(map(aligned, self._sizes))

    def get(self) -> T:
        """
        Give the value here, a fresh one each time.

        Raises:
            RefError: If it was freed, or its pool is closed.
        """
        value: T = _restore(memoryview(_copy_of(self._held())), self._sizes)
        return value

    def free(self) -> None:
        """Let go of the value, here and on the nodes; calls that were made before have it still."""
        self._shown = None

    def _held(self) -> Any:
        if self._shown is None:
            raise RefError(
                "This Ref was freed, or its pool is closed: its value is neither here nor on the nodes.",
                hint="Put the value again, in a pool that is open.",
            )
        return self._shown

    def _reduced(self, home: object) -> tuple[Any, ...]:
        """Reduce it to what its pool's nodes have under a name, for a call of that pool."""
        shown = self._held()
        if home is None:
            raise RefError(
                "A Ref travels as an argument of its pool's calls, or as what their functions capture, not otherwise.",
                hint="Use `ref.get()` for the value itself.",
            )
        if self._home() is not home:
            raise RefError(
                "This Ref is of another pool than the call: its value is on the nodes of the pool that it was put in.",
                hint="Put the value in this pool too, or pass `ref.get()`.",
            )
        return _restore, (pickle.PickleBuffer(shown), self._sizes)

    def __reduce__(self) -> tuple[Any, ...]:
        return self._reduced(None)

    def __repr__(self) -> str:
        state = "freed" if self._shown is None else f"{self.nbytes / (1 << 20):.1f} MiB"
        return f"<Ref, {state}>"


class _Shown(mmap.mmap):
    """The memory of a Ref, which says under which name nodes keep it."""

    kept: Keep


class Refs:
    """Make the Refs of one pool, and end them with it."""

    def __init__(self) -> None:
        self._made: weakref.WeakSet[Ref[Any]] = weakref.WeakSet()

    def put(self, made: Pickled) -> Ref[Any]:
        """
        Make a Ref of a value that was pickled.

        Args:
            made: The one value.

        Raises:
            OSError: If the machine has no room for it.
        """
        pieces, buffers = made.streams[-1], made.buffers
        sizes = (sum(map(len, pieces)), *map(len, buffers))
        segment = write_segment([pieces, *([buffer] for buffer in buffers)])
        shown = _Shown(segment.fd, segment.size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        shown.kept = Keep(os.urandom(_NAME), segment)
        ref: Ref[Any] = Ref(shown, sizes, self)
        self._made.add(ref)
        return ref

    def clear(self) -> None:
        """End all of them."""
        for ref in list(self._made):
            ref.free()


def _copy_of(shown: _Shown) -> mmap.mmap:
    """Map the memory once more, so that what is written there stays out of the Ref."""
    found = shown.kept.segment.map().obj
    assert isinstance(found, mmap.mmap)
    return found


def _restore(memory: Any, sizes: tuple[int, ...]) -> Any:
    """Unpickle a value from what nodes have of it: its stream, and its buffers behind that."""
    whole = memoryview(memory)
    found = []
    at = 0
    for size in sizes:
        found.append(whole[at : at + size])
        at += aligned(size)
    return pickle.loads(found[0], buffers=found[1:])
