"""
The nodes of a pool, looked up when they are first looked at.

This module imports nothing of attrs: a worker makes one for each version of the membership before any task asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from skyward.model.instances.instance import PeerInfo

__all__ = ["Peers"]


class Peers(Sequence["PeerInfo"]):
    """
    Be the tuple of a pool's nodes, in the order of their ranks; it is made when anything but its length is asked for.

    It equals that tuple, and arrives as one where it is pickled.

    Args:
        count: How many nodes there are.
        find: Gives private and public address of each, in order; called once, and may have to wait.

    >>> peers = Peers(1, lambda: [("10.0.0.1", None)])
    >>> len(peers), peers[0].private_ip, peers == tuple(peers)
    (1, '10.0.0.1', True)
    """

    __slots__ = ("_count", "_find", "_found")

    def __init__(self, count: int, find: Callable[[], Iterable[tuple[str, str | None]]]) -> None:
        self._count = count
        self._find = find
        self._found: tuple[PeerInfo, ...] | None = None

    def __len__(self) -> int:
        return self._count if self._found is None else len(self._found)

    @overload
    def __getitem__(self, index: int) -> PeerInfo: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[PeerInfo, ...]: ...

    def __getitem__(self, index: int | slice) -> PeerInfo | tuple[PeerInfo, ...]:
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

    def _all(self) -> tuple[PeerInfo, ...]:
        if self._found is None:
            from skyward.model.instances.instance import PeerInfo

            self._found = tuple(
                PeerInfo(node=rank, private_ip=private, public_ip=public)
                for rank, (private, public) in enumerate(self._find())
            )
        return self._found
