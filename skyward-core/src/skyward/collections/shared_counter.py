"""`sky.counter`: a whole number that all tasks of a pool share."""

from __future__ import annotations

import threading
from typing import Any

from skyward.collections.in_thread import in_thread
from skyward.collections.shared_dict import encoded
from skyward.collections.store_client import StoreClient
from skyward.collections.value_encoding import Values
from skyward.collections.write_behind import RecentReads, WriteBehind
from skyward.errors import UsageError

__all__ = ["SharedCounter"]

_VALUE = b"value"


class StrongCount:
    """
    Ask the store for each operation on a number.

    Args:
        store: Has it.
        name: The counter's.
    """

    def __init__(self, store: StoreClient, name: str) -> None:
        self._store = store
        self.key = f"sky:counter:{name}"
        self._counted = f"sky:counter-once:{name}"

    def read(self) -> int:
        """Return the number."""
        return int(self._store.call("GET", self.key) or 0)

    def add(self, n: int) -> int:
        """Add to the number, and return it."""
        return int(self._store.run_once("increment", (self.key,), (n,)))

    def add_once(self, n: int, once: bytes) -> int:
        """Add to the number unless it was done for the same reason before, and return it."""
        return int(self._store.run("increment_once", (self.key, self._counted), (n, once)))

    def reset(self, value: int) -> None:
        """Set the number, and forget what was counted once."""
        self._store.run_once("reset", (self.key, self._counted), (value,))


class EventualCount:
    """
    Read from what this process knows of a number, and write in the background.

    Args:
        strong: Does what has to be decided by the store.
        writes: Sends writes in the background.
    """

    def __init__(self, strong: StrongCount, writes: WriteBehind) -> None:
        self._strong = strong
        self._writes = writes
        self._recent: RecentReads[int] = RecentReads(writes)
        # So that a read is never between an addition and what is remembered of it.
        self._lock = threading.Lock()

    def read(self) -> int:
        """Return the number as it was within the last second, and what was added here."""
        with self._lock:
            return self._recent.get(_VALUE, self._strong.read)

    def add(self, n: int) -> int:
        """Add to the number soon, and return what it is as far as is known here."""
        with self._lock:
            value = self._recent.get(_VALUE, self._strong.read) + n
            self._writes.send(("INCRBY", self._strong.key, n))
            self._recent.change(_VALUE, value)
            return value

    def add_once(self, n: int, once: bytes) -> int:
        """Add to the number unless it was done for the same reason before: decided by the store."""
        self._writes.flush()
        value = self._strong.add_once(n, once)
        self._recent.set(_VALUE, value)
        return value

    def reset(self, value: int) -> None:
        """Set the number, now."""
        self._writes.flush()
        self._strong.reset(value)
        self._recent.set(_VALUE, value)


class SharedCounter:
    """
    Share a whole number between tasks, of 64 bits.

    Under `"strong"` each operation is one round trip to the store, which carries them out one after the other: what
    `increment` returns is returned to no one else.
    Under `"eventual"` the value is at most a second old, with what this process added, and additions are in the store
    within 50 ms; with `once=`, and in `reset`, the store decides.

    Each method has a twin for coroutines: `increment_async`, and `value_async` for the property.
    """

    def __init__(self, name: str, count: StrongCount | EventualCount, values: Values, store: StoreClient) -> None:
        self.name = name
        self._count = count
        self._values = values
        self._store = store

    def __repr__(self) -> str:
        return f"sky.counter({self.name!r})"

    @property
    def value(self) -> int:
        """Return the number."""
        return self._count.read()

    def __int__(self) -> int:
        return self._count.read()

    def increment(self, n: int = 1, *, once: Any = None) -> int:
        """
        Add to the number, and return it.

        Args:
            n: How much is added.
            once: True counts once for the task that runs, also when it is tried again; any other hashable object
                counts once for itself.

        Raises:
            UsageError: If `n` is no whole number of 64 bits, or `once=True` stands outside of a task.
        """
        n = self._whole(n)
        if once is None or once is False:
            return self._count.add(n)
        return self._count.add_once(n, self._reason(once))

    def decrement(self, n: int = 1, *, once: Any = None) -> int:
        """Reduce the number, and return it; `once` as in `increment`."""
        return self.increment(-self._whole(n), once=once)

    def reset(self, value: int = 0) -> None:
        """Set the number; what was counted once may be counted again."""
        if not -(2**63) <= self._whole(value) < 2**63:
            raise UsageError(f"The counter {self.name!r} holds a whole number of 64 bits, not {value!r}.")
        self._count.reset(value)

    async def value_async(self) -> int:
        """Return the number."""
        return await in_thread(self._count.read)

    async def increment_async(self, n: int = 1, *, once: Any = None) -> int:
        """Do as `increment`."""
        return await in_thread(self.increment, n, once=once)

    async def decrement_async(self, n: int = 1, *, once: Any = None) -> int:
        """Do as `decrement`."""
        return await in_thread(self.decrement, n, once=once)

    async def reset_async(self, value: int = 0) -> None:
        """Do as `reset`."""
        await in_thread(self.reset, value)

    def _whole(self, n: object) -> int:
        if isinstance(n, int) and not isinstance(n, bool):
            return n
        raise UsageError(f"The counter {self.name!r} counts in whole numbers, not in {n!r}.")

    def _reason(self, once: Any) -> bytes:
        if once is not True:
            return b"key:" + encoded(self._values, once, f"counter {self.name!r}")
        task = self._store.address.task
        if not task:
            raise UsageError(
                f"The counter {self.name!r} cannot count once for a task where none runs.",
                hint='Give a reason of your own, as in increment(once="epoch 3").',
            )
        return b"task:" + task.encode()
