"""A queue in which callers take turns: a caller with many calls does not keep the others waiting."""

from __future__ import annotations

from collections import OrderedDict
from itertools import islice
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """
    Queue calls, first in first out for each caller, and let callers take turns.

    Every operation takes constant time, however many calls and callers wait.

    >>> queue = FairQueue[str]()
    >>> for call, caller in [(1, 0), (2, 0), (3, 0), (4, 7)]:
    ...     queue.push(call, "f", caller)
    >>> [queue.pop() for _ in range(4)]
    [(1, 'f'), (4, 'f'), (2, 'f'), (3, 'f')]
    """

    __slots__ = ("_callers", "_latest", "_queues")

    def __init__(self) -> None:
        # In the order of their turns.
        self._queues: OrderedDict[int, OrderedDict[int, T]] = OrderedDict()
        self._callers: dict[int, int] = {}
        self._latest: int | None = None

    def __len__(self) -> int:
        return len(self._callers)

    def __contains__(self, call: int) -> bool:
        return call in self._callers

    @property
    def callers(self) -> int:
        """Count the callers whose calls wait."""
        return len(self._queues)

    def push(self, call: int, entry: T, caller: int, *, first: bool = False) -> None:
        """
        Queue a call.

        Args:
            call: Its id.
            entry: What is known of it.
            caller: Which turns it takes.
            first: Whether it goes before its caller's other calls.
        """
        queue = self._queues.get(caller)
        if queue is None:
            queue = self._queues[caller] = OrderedDict()
            if len(self._queues) == 2 and self._latest in self._queues:
                # The other one had the latest turn, while it was alone.
                self._queues.move_to_end(caller, last=False)
        queue[call] = entry
        self._callers[call] = caller
        if first:
            queue.move_to_end(call, last=False)

    def head(self) -> tuple[int, T] | None:
        """Return the call whose turn it is, which stays; None if none waits."""
        if not self._queues:
            return None
        return next(iter(next(iter(self._queues.values())).items()))

    def pop(self) -> tuple[int, T]:
        """
        Take the call whose turn it is; the next turn is another caller's.

        Raises:
            StopIteration: If none waits.
        """
        caller, queue = next(iter(self._queues.items()))
        call, entry = queue.popitem(last=False)
        del self._callers[call]
        self._latest = caller
        if not queue:
            del self._queues[caller]
        elif len(self._queues) > 1:
            self._queues.move_to_end(caller)
        return call, entry

    def remove(self, call: int) -> T | None:
        """Take a call out, wherever it waits; None if it does not."""
        caller = self._callers.pop(call, None)
        if caller is None:
            return None
        queue = self._queues[caller]
        entry = queue.pop(call)
        if not queue:
            del self._queues[caller]
        return entry

    def sample(self, count: int) -> list[T]:
        """List what is known of some of the calls that wait, of each caller its next ones."""
        each = max(1, count // max(1, len(self._queues)))
        entries = (entry for queue in self._queues.values() for entry in islice(queue.values(), each))
        return list(islice(entries, count))

    def calls(self) -> list[int]:
        """List the calls that wait, caller by caller."""
        return [call for queue in self._queues.values() for call in queue]

    def clear(self) -> None:
        """Clear the queue."""
        self._queues.clear()
        self._callers.clear()
