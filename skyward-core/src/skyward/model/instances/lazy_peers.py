"""
The nodes of a pool, looked up when they are first looked at.

This module imports nothing of attrs: a worker makes one for each version of the membership before any task asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, overload

__all__ = ["Peers"]

T = TypeVar("T")


class Peers(Sequence[T]):
    """
    Be the tuple of a pool's nodes, in the order of their ranks; it is made when anything but its length is asked for.

    It equals that tuple, and arrives as one where it is pickled.

    Args:
        count: How many nodes there are.
        find: Returns private and public address of each, in order; called once, and may have to wait.
        make: Makes a node of its rank and its two addresses.

    >>> peers = Peers(1, lambda: [("10.0.0.1", None)], lambda rank, private, public: (rank, private))
    >>> len(peers), peers[0], peers == tuple(peers)
    (1, (0, '10.0.0.1'), True)
    """

    __slots__ = ("_count", "_find", "_found", "_make")

    def __init__(
        self,
        count: int,
        find: Callable[[], Iterable[tuple[str, str | None]]],
        make: Callable[[int, str, str | None], T],
    ) -> None:
        self._count = count
        self._find = find
        self._make = make
        self._found: tuple[T, ...] | None = None

    def __len__(self) -> int:
        return self._count if self._found is None else len(self._found)

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...

    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        return self._all()[index]

    def __add__(self, other: object) -> tuple[Any, ...]:
        return self._all() + tuple(other) if isinstance(other, (tuple, Peers)) else NotImplemented

    def __eq__(self, other: object) -> bool:
        if other is self:
            return True
        if not isinstance(other, (tuple, Peers)):
            return NotImplemented
        return len(self) == len(other) and self._all() == tuple(other)

    def __hash__(self) -> int:
        return hash(self._all())

    def __repr__(self) -> str:
        return repr(self._all())

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (list(self._all()),)

    def _all(self) -> tuple[T, ...]:
        if self._found is None:
            self._found = tuple(self._make(rank, *addresses) for rank, addresses in enumerate(self._find()))
        return self._found
