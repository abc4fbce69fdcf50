"""Values that are put once and used by many calls: what stands for one, and how it travels."""

from __future__ import annotations

import mmap
import os
import pickle
import sys
import weakref
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from skyward.errors import RefError, ResultError
from skyward.link.absent import AGAIN, Absent, returned
from skyward.link.payload_making import Keep, Pickled
from skyward.link.pickling import OUT_OF_BAND
from skyward.link.segment import Segment, aligned, write_segment

if TYPE_CHECKING:
    from skyward.model.spec.trust_setting import Data

__all__ = ["HERE", "INSIDE", "Here", "Ref", "Refs"]

T = TypeVar("T")

_NAME = 32
# Memory that stands for what is at a node is never touched, and may be more than this machine has: MAP_NORESERVE of
# linux/mman.h, which Python names from 3.13 on.
_UNRESERVED = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)


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
        Return the value here, a fresh one each time; one that a task put is fetched from its node the first time.

        Raises:
            RefError: If it was freed, its pool is closed, or it was lost with its node.
            ResultError: If a task put it and it cannot be opened here.
        """
        shown = self._held()
        absent = shown.kept.segment
        if not isinstance(absent, Absent):
            value: T = _restore(memoryview(_copy_of(shown)), self._sizes)
            return value
        absent.bring()
        try:
            value = _opened(absent.map(), self._sizes, absent.trust)
        except Exception as error:
            raise ResultError(
                f"The value of a Ref that {absent.origin.where} made cannot be opened here: "
                f"{type(error).__name__}: {error}. Put plain values, arrays or tables; or list its class, "
                "trust=sky.Data(MyResult)."
            ) from error
        return value

    def free(self) -> None:
        """Release the value, here and on the nodes; calls that were made before have it still."""
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
        made_here = self._home() is HERE
        if made_here and home is HERE:
            return returned, (pickle.PickleBuffer(shown), self._sizes)
        if self._home() is not home and not (made_here and home is INSIDE):
            raise RefError(
                "This Ref is of another pool than the call: its value is on the nodes of the pool that it was put in.",
                hint="Put the value in this pool too, or pass `ref.get()`.",
            )
        absent = shown.kept.segment
        if isinstance(absent, Absent):
            if absent.lost:
                raise RefError(absent.why_lost(), hint=AGAIN)
            if absent.trust is not None:
                return _opened, (pickle.PickleBuffer(shown), self._sizes, absent.trust)
        return _restore, (pickle.PickleBuffer(shown), self._sizes)

    def __reduce__(self) -> tuple[Any, ...]:
        return self._reduced(None)

    def __repr__(self) -> str:
        state = "freed" if self._shown is None else f"{self.nbytes / (1 << 20):.1f} MiB"
        return f"<Ref, {state}>"


class _Shown(mmap.mmap):
    """The memory of a Ref, which says under which name nodes keep it."""

    kept: Keep


def _written(made: Pickled, least: int = 0) -> tuple[_Shown, Segment, tuple[int, ...]]:
    """Write a pickled value into a segment, of so many bytes at least, and map it; the sizes are those of its parts."""
    pieces, buffers = made.streams[-1], made.buffers
    sizes = (sum(map(len, pieces)), *map(len, buffers))
    padding = bytes(max(0, least - sum(map(aligned, sizes))))
    segment = write_segment([pieces, *([buffer] for buffer in buffers), [padding]])
    shown = _Shown(segment.fd, segment.size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    return shown, segment, sizes


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
        shown, segment, sizes = _written(made)
        shown.kept = Keep(os.urandom(_NAME), segment)
        ref: Ref[Any] = Ref(shown, sizes, self)
        self._made.add(ref)
        return ref

    def add(self, absent: Absent, sizes: tuple[int, ...]) -> Ref[Any]:
        """Make a Ref of what is at a node."""
        shown = _Shown(-1, absent.size, flags=mmap.MAP_PRIVATE | _UNRESERVED, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        shown.kept = Keep(absent.name, absent)
        ref: Ref[Any] = Ref(shown, sizes, self)
        self._made.add(ref)
        return ref

    def clear(self) -> None:
        """End all of them."""
        for ref in list(self._made):
            ref.free()


class Here:
    """What the Refs that tasks of this process made belong to."""

    def put(self, made: Pickled) -> Ref[Any]:
        """
        Make a Ref of a value that was pickled, which stays in this machine's memory.

        Args:
            made: The one value.

        Raises:
            OSError: If the machine has no room for it.
        """
        # Never so small that a pickle has it inside.
        shown, segment, sizes = _written(made, least=OUT_OF_BAND)
        shown.kept = Keep(b"", segment, there=True)
        return Ref(shown, sizes, self)


HERE: Final = Here()
"""Stands for results of this process, which name what tasks put."""

INSIDE: Final = Here()
"""Stands for values that tasks put, which contain what they refer to."""


def _copy_of(shown: _Shown) -> mmap.mmap:
    """Map the memory once more, so that what is written there stays out of the Ref."""
    found = shown.kept.segment.map().obj
    assert isinstance(found, mmap.mmap)
    return found


def _restore(memory: Any, sizes: tuple[int, ...]) -> Any:
    """Unpickle a value from what nodes have of it: its stream, and its buffers behind that."""
    found = _cut(memory, sizes)
    return pickle.loads(found[0], buffers=found[1:])


def _opened(memory: Any, sizes: tuple[int, ...], trust: Data | None) -> Any:
    """Open a value that a task put, as data where its pool's results are: it may be of another node."""
    if trust is None:
        return _restore(memory, sizes)
    from skyward.link.data.allowed_names import names_of
    from skyward.link.data.opener import open_data

    found = _cut(memory, sizes)
    return open_data(found[0], names_of(trust), buffers=found[1:])


def _cut(memory: Any, sizes: tuple[int, ...]) -> list[memoryview]:
    whole = memoryview(memory)
    found = []
    at = 0
    for size in sizes:
        found.append(whole[at : at + size])
        at += aligned(size)
    return found
