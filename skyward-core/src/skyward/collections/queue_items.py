"""The items of a queue, as the store has them: put, taken by consumers, acknowledged or delivered again."""

from __future__ import annotations

import time
from typing import NamedTuple

from skyward.collections.holder import Holder
from skyward.collections.store_client import LONGEST_WAIT_S
from skyward.collections.thread_line import Word

__all__ = ["QueueItems", "TakenItem"]

ID = 16
"""Length of an item's id, which stands before it."""


_NOTHING, _WAITS, _TAKES = 0, 1, 2

LOOK_S = 0.5
"""How often a process that takes items looks for those of holders that are gone."""


class TakenItem(NamedTuple):
    """An item that was taken: its id, and what it holds."""

    id: bytes
    data: bytes


class QueueItems:
    """
    Take items of one queue for this process, and settle what becomes of them.

    Args:
        name: The queue's.
        holder: Takes items of it.
    """

    def __init__(self, name: str, holder: Holder) -> None:
        self.holder = holder
        self._store = holder.store
        self._name = name
        self._items = f"sky:queue:{name}"
        # What each consumer took last, which its next one acknowledges.
        self._last: dict[int, bytes] = {}
        self._looked = 0.0
        # Consumers for whose last item the queue was empty before.
        self._waited: set[int] = set()

    def put(self, data: bytes, most: int) -> bool:
        """Append an item; False where the queue is full."""
        return bool(self._store.run_once("put", (), (self._name, most, data)))

    def get(self, consumer: int, seconds: float) -> TakenItem | None:
        """
        Take the first item or wait for one, for a second at most, and acknowledge the one before.

        Args:
            consumer: The thread or coroutine that it is for.
            seconds: What is left of its time; it does not wait where nothing is.
        """
        # Where the last one had to be waited for, the next one most probably has to be, too.
        if consumer in self._waited and seconds > 0:
            self._waited.discard(consumer)
            return self._take_or_wait(consumer, seconds)
        taken = self.take(consumer, follows=_WAITS)
        if taken is None and seconds > 0:
            taken = self._wait(consumer, seconds)
            if taken is not None:
                self._waited.add(consumer)
        return taken

    def take(self, consumer: int, *, follows: int = _NOTHING) -> TakenItem | None:
        """
        Take the first item, and acknowledge the one before.

        Args:
            consumer: The thread or coroutine that it is for.
            follows: What the store is asked next if there is none.
        """
        # May run twice: what the first one took is what the second one finds.
        found: bytes | None = self._store.run("take", (), self._taking(consumer, follows))
        # The one before is acknowledged, whether or not there is another.
        self._last.pop(consumer, None)
        return self._taken(consumer, found)

    def _wait(self, consumer: int, seconds: float) -> TakenItem | None:
        """Wait for an item, for a second at most; only after `take` found none."""
        # Sent again it could take a second item: `take` finds what was moved.
        return self._taken(consumer, self._store.call_once(*self._moving(consumer, seconds)))

    def _take_or_wait(self, consumer: int, seconds: float) -> TakenItem | None:
        """Acknowledge, and take or wait, in one round trip; None also where the connection broke."""
        replies = self._store.run_and_wait("take", self._taking(consumer, _TAKES), *self._moving(consumer, seconds))
        if replies is None:
            return None
        before, found = replies
        self._last.pop(consumer, None)
        if isinstance(before, bytes):
            # Its answer was lost; another one that was moved meanwhile is found by the next `take`.
            return self._taken(consumer, before)
        putters, items = before
        if found and putters:
            self._store.run("room", (), (self._name,))
        if found and not items:
            self._waited.add(consumer)
        return self._taken(consumer, found)

    def _taking(self, consumer: int, follows: int) -> tuple[Word, ...]:
        """Return the arguments of the script that acknowledges and takes; those of gone holders are looked at, too."""
        self.holder.lease.keep()
        now = time.monotonic()
        looks = now - self._looked > LOOK_S
        if looks:
            self._looked = now
        before, lease = self._last.get(consumer, b""), self.holder.lease.milliseconds
        return self._name, self.holder.name, consumer, lease, before, follows, int(looks)

    def _moving(self, consumer: int, seconds: float) -> tuple[Word, ...]:
        """Return the command that moves the first item to a consumer, or waits for one."""
        # Older servers have no BLMOVE.
        bounded = max(0.01, min(LONGEST_WAIT_S, seconds))
        return "BRPOPLPUSH", self._items, f"{self._taken_of}{consumer}", bounded

    def done(self, consumer: int) -> bool:
        """Acknowledge what a consumer took last."""
        item = self._last.pop(consumer, None)
        return item is not None and bool(self._settle(consumer, 0, item))

    def leave(self, consumer: int) -> None:
        """Forget a consumer that has waited without getting anything."""
        self._settle(consumer, 0)

    def restore(self, consumer: int) -> None:
        """Return what a consumer took to the queue, because no caller received it."""
        self._last.pop(consumer, None)
        self._settle(consumer, 1)

    def finish(self, *, ok: bool) -> None:
        """Acknowledge what was received, or not; what was taken besides is delivered again."""
        if self._looked:
            self._settle(b"", 1, *(self._last.values() if ok else ()))
            self._last.clear()

    def _settle(self, consumer: int | bytes, restores: int, *done: bytes) -> int:
        acknowledged: int = self._store.run("settle", (), (self._name, self.holder.name, consumer, restores, *done))
        return acknowledged

    def wait_for_room(self, seconds: float) -> None:
        """Wait until there may be room."""
        self._store.wait(f"sky:queue-room:{self._name}", seconds)

    def count(self) -> int:
        """Count the items that wait."""
        found: int = self._store.call("LLEN", self._items)
        return found

    def clear(self) -> None:
        """Remove the items that wait."""
        self._store.write("DEL", self._items)

    @property
    def _taken_of(self) -> str:
        return f"sky:queue-taken:{self._name}\0{self.holder.name}\0"

    def _taken(self, consumer: int, found: bytes | None) -> TakenItem | None:
        if not found:
            return None
        self._last[consumer] = found[:ID]
        return TakenItem(found[:ID], found[ID:])
