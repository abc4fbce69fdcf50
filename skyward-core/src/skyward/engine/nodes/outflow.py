"""How far a node may be behind with the items of input streams that it was sent, whatever it credits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol
from weakref import WeakSet

from skyward.link.windows import OVERHEAD
from skyward.node.worker.streams import WINDOW_BYTES

MOST: Final = 2 * WINDOW_BYTES
"""Bytes of items that may be on their way to a node, over all of its calls, those that are over included."""


class RoomWaiter(Protocol):
    """What waits for room."""

    def wake(self) -> None:
        """Look again whether there is any."""


class Outflow:
    """
    Count the bytes of items that a node has not confirmed to have; lives in the engine's loop, apart from `full`.

    Credit says what a function consumed, and a node may say that of what it never read; the link confirms only what
    it has written.

    >>> outflow = Outflow()
    >>> confirm = outflow.sent(MOST)
    >>> outflow.full
    True
    >>> confirm()
    >>> outflow.full
    False
    """

    __slots__ = ("_feeders", "_unconfirmed")

    def __init__(self) -> None:
        self._unconfirmed = 0
        self._feeders: WeakSet[RoomWaiter] = WeakSet()

    @property
    def full(self) -> bool:
        """Return whether no more items may be sent now."""
        return self._unconfirmed >= MOST

    def join(self, feeder: RoomWaiter) -> None:
        """Add a feeder, which resumes when there is room again."""
        self._feeders.add(feeder)

    def sent(self, size: int) -> Callable[[], None]:
        """
        Count an item of so many bytes.

        Returns:
            What is to be called when the node has it.
        """
        cost = size + OVERHEAD
        self._unconfirmed += cost
        return lambda: self._confirmed(cost)

    def _confirmed(self, cost: int) -> None:
        full = self.full
        self._unconfirmed -= cost
        if full and not self.full:
            for feeder in list(self._feeders):
                feeder.wake()
