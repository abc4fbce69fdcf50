"""`sky.queue`: a first-in, first-out queue that tasks share, and whose items survive the tasks that took them."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from skyward.collections.in_thread import GivenUp, in_thread, in_waiting_thread
from skyward.collections.queue_items import QueueItems, TakenItem
from skyward.collections.store_client import LONGEST_WAIT_S
from skyward.collections.value_encoding import Values

__all__ = ["SharedQueue"]


class SharedQueue:
    """
    Share a first-in, first-out queue between tasks.

    An item is acknowledged when the same thread, or coroutine, takes the next one or calls `done`, and when its task
    ends well. The items of a task that fails or dies are delivered again, in front of the others: so each item is
    delivered at least once, and acknowledged once.

    Each operation is one round trip to the store, which carries them out one after the other; one that waits repeats
    it each second, or as soon as there is something.

    Each method has a twin for coroutines: `put_async`; a `get_async` that is cancelled takes nothing.

    Args:
        name: The queue's.
        maxsize: How many items may wait; 0 for any number. It is that of the process that puts.
    """

    def __init__(self, name: str, maxsize: int, items: QueueItems, values: Values) -> None:
        self.name = name
        self.maxsize = maxsize
        self._items = items
        self._values = values

    def __repr__(self) -> str:
        return f"sky.queue({self.name!r})"

    def __len__(self) -> int:
        return self._items.count()

    def __bool__(self) -> bool:
        return len(self) > 0

    def qsize(self) -> int:
        """Count the items that wait, without those that were taken."""
        return self._items.count()

    def empty(self) -> bool:
        """Return whether no item waits; another task may change it at once."""
        return self._items.count() == 0

    def put(self, item: Any, timeout: float | None = None) -> None:
        """
        Append an item, and wait for room in a queue with a `maxsize`.

        Args:
            item: Anything that can be pickled.
            timeout: For how long to wait, in seconds; None for ever.

        Raises:
            queue.Full: If there is no room in this time.
        """
        data = self._pack(item)
        if not self._items.put(data, self.maxsize):
            try:
                self._put(data, timeout, threading.Event())
            except KeyboardInterrupt as interrupt:
                # Where our code waited when the user pressed Ctrl-C says nothing.
                raise interrupt.with_traceback(None)  # noqa: B904  # it is that very interrupt

    def put_nowait(self, item: Any) -> None:
        """
        Append an item.

        Raises:
            queue.Full: If there is no room.
        """
        if not self._items.put(self._pack(item), self.maxsize):
            raise queue.Full

    def get(self, timeout: float | None = None) -> Any:
        """
        Take the first item, and acknowledge the one that this thread or coroutine took before.

        Args:
            timeout: For how long to wait, in seconds; None for ever.

        Raises:
            queue.Empty: If there is none in this time.
        """
        try:
            taken = self._get(self._items.holder.consumer(), timeout, threading.Event())
        except KeyboardInterrupt as interrupt:
            raise interrupt.with_traceback(None)  # noqa: B904  # as above
        return self._values.open(taken.data)

    def get_nowait(self) -> Any:
        """
        Take the first item, and acknowledge the one before.

        Raises:
            queue.Empty: If there is none.
        """
        return self._values.open(self._get_now(self._items.holder.consumer()))

    def done(self) -> bool:
        """Acknowledge the item that this thread or coroutine took; False if it was delivered again, or was none."""
        return self._items.done(self._items.holder.consumer())

    def clear(self) -> None:
        """Remove the items that wait; those that were taken are not touched."""
        self._items.clear()

    async def len_async(self) -> int:
        """Return `len(q)`."""
        return await in_thread(self._items.count)

    async def qsize_async(self) -> int:
        """Do as `qsize`."""
        return await in_thread(self._items.count)

    async def empty_async(self) -> bool:
        """Do as `empty`."""
        return await in_thread(self.empty)

    async def put_async(self, item: Any, timeout: float | None = None) -> None:
        """Do as `put`; cancelled, it may have put the item."""
        data = await in_thread(self._pack, item)
        await in_waiting_thread(lambda given_up: self._put(data, timeout, given_up))

    async def put_nowait_async(self, item: Any) -> None:
        """Do as `put_nowait`."""
        await in_thread(self.put_nowait, item)

    async def get_async(self, timeout: float | None = None) -> Any:
        """Do as `get`; cancelled, it takes nothing."""
        consumer = self._items.holder.consumer()
        taken = await in_waiting_thread(
            lambda given_up: self._get(consumer, timeout, given_up),
            lambda taken: self._items.restore(consumer),
        )
        return self._values.open(taken.data)

    async def get_nowait_async(self) -> Any:
        """Do as `get_nowait`."""
        return self._values.open(await in_thread(self._get_now, self._items.holder.consumer()))

    async def done_async(self) -> bool:
        """Do as `done`."""
        return await in_thread(self._items.done, self._items.holder.consumer())

    async def clear_async(self) -> None:
        """Do as `clear`."""
        await in_thread(self._items.clear)

    def _pack(self, item: Any) -> bytes:
        return self._values.pack(item, f"item of queue {self.name!r}")

    def _put(self, data: bytes, timeout: float | None, given_up: threading.Event) -> None:
        until(
            lambda: self._items.put(data, self.maxsize) or None,
            self._items.wait_for_room,
            timeout,
            given_up,
            queue.Full,
        )

    def _get(self, consumer: int, timeout: float | None, given_up: threading.Event) -> TakenItem:
        deadline = None if timeout is None else time.monotonic() + timeout
        while not given_up.is_set():
            left = LONGEST_WAIT_S if deadline is None else deadline - time.monotonic()
            taken = self._items.get(consumer, left)
            if taken is not None:
                return taken
            if left <= 0:
                self._items.leave(consumer)
                raise queue.Empty
        self._items.leave(consumer)
        raise GivenUp

    def _get_now(self, consumer: int) -> bytes:
        taken = self._items.take(consumer)
        if taken is None:
            raise queue.Empty
        return taken.data


def until(
    attempt: Callable[[], Any],
    wait: Callable[[float], object],
    timeout: float | None,
    given_up: threading.Event,
    expired: Callable[[], Exception],
) -> Any:
    """
    Repeat an attempt until it returns something, and wait for a token in between.

    Args:
        attempt: Returns None where it has to be repeated.
        wait: Waits for what makes it worth a repetition, for at most so many seconds and never more than one.
        timeout: For how long, in seconds; None for ever.
        given_up: Set when the caller is gone.
        expired: Makes what is raised when the time is over.

    Raises:
        GivenUp: If the caller is gone.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        if given_up.is_set():
            raise GivenUp
        if (found := attempt()) is not None:
            return found
        left = LONGEST_WAIT_S if deadline is None else deadline - time.monotonic()
        if left <= 0:
            raise expired()
        wait(left)
