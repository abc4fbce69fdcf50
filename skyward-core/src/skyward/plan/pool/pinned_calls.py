"""The queues of calls that only one node may run."""

from __future__ import annotations

from collections.abc import Iterable

from skyward.plan.pool.fair_queue import FairQueue
from skyward.plan.pool.lanes import Entry


class PinnedCalls:
    """
    Queue calls for one node each, and remember the nodes where one of them may begin now.

    >>> calls = PinnedCalls()
    >>> calls.push(7, Entry(b"f", 0), node=1, caller=0)
    >>> calls.on(1), list(calls.touched), len(calls)
    ([7], [1], 1)
    >>> calls.remove(7), calls.remove(7)
    (True, False)
    """

    __slots__ = ("_nodes", "_queues", "touched")

    def __init__(self) -> None:
        self._queues: dict[int, FairQueue[Entry]] = {}
        self._nodes: dict[int, int] = {}
        self.touched: dict[int, None] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def push(self, call: int, entry: Entry, *, node: int, caller: int, first: bool = False) -> None:
        """Queue a call, as `FairQueue.push` does."""
        queue = self._queues.get(node)
        if queue is None:
            queue = self._queues[node] = FairQueue()
        queue.push(call, entry, caller, first=first)
        self._nodes[call] = node
        self.touched[node] = None

    def on(self, node: int) -> list[int]:
        """List the calls that wait for a node."""
        return self._queues[node].calls() if node in self._queues else []

    def queues(self) -> Iterable[FairQueue[Entry]]:
        """Return the queue of each node."""
        return self._queues.values()

    def head(self, node: int) -> Entry | None:
        """Return what is known of the call that is a node's next; None if none waits for it."""
        queue = self._queues.get(node)
        if not queue:
            self._queues.pop(node, None)
            return None
        waits = queue.head()
        return waits[1] if waits is not None else None

    def pop(self, node: int) -> tuple[int, Entry]:
        """Take the call that is a node's next."""
        call, entry = self._queues[node].pop()
        del self._nodes[call]
        return call, entry

    def remove(self, call: int) -> bool:
        """Take a call out; return whether it was there."""
        node = self._nodes.pop(call, None)
        if node is None:
            return False
        self._queues[node].remove(call)
        return True

    def clear(self) -> None:
        """Clear all queues."""
        self._queues.clear()
        self._nodes.clear()
