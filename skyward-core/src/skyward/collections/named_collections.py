"""The collections of one task, or of the client: by name, in the store of their pool."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from skyward.collections.consumer import ConsumerNames
from skyward.collections.field_table import EventualFields, FieldTable, StrongFields
from skyward.collections.holder import Holder
from skyward.collections.holder_lease import HolderLease
from skyward.collections.queue_items import QueueItems
from skyward.collections.shared_barrier import BarrierRounds, SharedBarrier
from skyward.collections.shared_counter import EventualCount, SharedCounter, StrongCount
from skyward.collections.shared_dict import SharedDict
from skyward.collections.shared_lock import HeldLock, SharedLock
from skyward.collections.shared_queue import SharedQueue
from skyward.collections.shared_set import SharedSet
from skyward.collections.store_address import StoreAddress
from skyward.collections.store_client import StoreClient
from skyward.collections.store_connections import StoreConnections
from skyward.collections.value_encoding import Values
from skyward.collections.write_behind import WriteBehind
from skyward.errors import UsageError

if TYPE_CHECKING:
    from skyward.model.spec.trust_setting import Data

__all__ = ["Collections", "Consistency"]

Consistency = Literal["strong", "eventual"]
"""Whether an operation asks the store, or what this process knows of it."""

LONGEST_NAME = 1000

T = TypeVar("T")


class Collections:
    """
    Open collections by name.

    Nothing is sent before the first collection is opened. All of it may be used by several threads.

    Args:
        address: Returns where the store is, and raises a SkywardError where there is none; called whenever a
            connection is made.
        lease: For how long what is held outlives the process that holds it, in seconds.
        patience: For how long a connection that broke is made again, in seconds.
        trust: What values are opened as data; None opens anything.
        connections: Those of the process, which outlive this; None for ones that end with it.
    """

    def __init__(
        self,
        address: Callable[[], StoreAddress],
        *,
        lease: float = 15.0,
        patience: float = 5.0,
        trust: Data | None = None,
        connections: StoreConnections | None = None,
    ) -> None:
        self._own_connections = StoreConnections() if connections is None else None
        connections = connections or self._own_connections
        assert connections is not None
        self._store = StoreClient(address, patience=patience, connections=connections)
        self._holder = Holder(self._store, HolderLease(self._store, seconds=lease), ConsumerNames())
        self._writes = WriteBehind(self._store)
        self._values = Values(trust)
        self._lock = threading.Lock()
        self._finished = False
        self._kinds: dict[str, str] = {}
        # What is known here of a collection is one for all that open it.
        self._known: dict[tuple[str, str], Any] = {}

    def dict(self, name: str, *, consistency: Consistency | None = None) -> SharedDict:
        """
        Open a dict.

        Args:
            name: Its name, the same in all tasks.
            consistency: `"strong"` or `"eventual"`; None is strong.

        Raises:
            UsageError: If the name is that of another kind of collection.
            StoreLostError: If the store cannot be reached.
        """
        return SharedDict(name, self._fields("dict", name, consistency), self._values)

    def set(self, name: str, *, consistency: Consistency | None = None) -> SharedSet:
        """Open a set; arguments and errors are those of `dict`."""
        return SharedSet(name, self._fields("set", name, consistency), self._values)

    def counter(self, name: str, *, consistency: Consistency | None = None) -> SharedCounter:
        """Open a counter; arguments and errors are those of `dict`."""
        eventual = _is_eventual(consistency)
        self._claim("counter", name)
        count: StrongCount | EventualCount = StrongCount(self._store, name)
        if eventual:
            strong = StrongCount(self._store, name)
            count = self._one("eventual counter", name, lambda: EventualCount(strong, self._writes))
        return SharedCounter(name, count, self._values, self._store)

    def queue(self, name: str, maxsize: int = 0) -> SharedQueue:
        """
        Open a queue.

        Args:
            name: Its name, the same in all tasks.
            maxsize: How many items may wait in it; 0 for any number.

        Raises:
            UsageError: If the name is that of another kind of collection, or `maxsize` is negative.
            StoreLostError: If the store cannot be reached.
        """
        if maxsize < 0:
            raise UsageError(f"The queue {name!r} has room for 0 items (that is any number) or more, not {maxsize}.")
        self._claim("queue", name)
        items = self._one("queue", name, lambda: QueueItems(name, self._holder))
        return SharedQueue(name, maxsize, items, self._values)

    def barrier(self, name: str, n: int) -> SharedBarrier:
        """
        Open a barrier.

        Args:
            name: Its name, the same in all tasks.
            n: How many participants wait for each other.

        Raises:
            UsageError: If the name is that of another kind of collection, or `n` is not positive.
            StoreLostError: If the store cannot be reached.
        """
        # A type checker refuses what this does.
        if type(n) is not int or n < 1:
            raise UsageError(f"The barrier {name!r} is for a whole number of participants from 1 on, not for {n!r}.")
        self._claim("barrier", name)
        return SharedBarrier(name, n, BarrierRounds(name, self._holder))

    def lock(self, name: str, timeout: float | None = 30) -> SharedLock:
        """
        Open a lock.

        Args:
            name: Its name, the same in all tasks.
            timeout: For how long to wait for it, in seconds; None for ever.

        Raises:
            UsageError: If the name is that of another kind of collection.
            StoreLostError: If the store cannot be reached.
        """
        self._claim("lock", name)
        held = self._one("lock", name, lambda: HeldLock(name, self._holder))
        return SharedLock(name, timeout, held)

    def finish(self, ok: bool) -> None:  # noqa: FBT001  # the one question there is
        """
        Finish what is open when a task ends: writes, items, locks, and the lease; a second time does nothing.

        Args:
            ok: Whether the task ended well: then the items that it took are acknowledged, otherwise they are put
                back in front.

        Raises:
            SkywardError: Why writes or items could not be settled; the connections are closed all the same.
        """
        with self._lock:
            if self._finished:
                return
            self._finished = True
            known = list(self._known.values())
        try:
            self._writes.end()
        finally:
            try:
                for each in known:
                    if isinstance(each, QueueItems):
                        each.finish(ok=ok)
                    elif isinstance(each, HeldLock) and (grip := each.grip):
                        each.drop(grip)
                self._holder.lease.end()
            finally:
                self._store.close()
                if self._own_connections is not None:
                    self._own_connections.close()

    def _fields(self, kind: str, name: str, consistency: Consistency | None) -> FieldTable:
        is_eventual = _is_eventual(consistency)
        self._claim(kind, name)
        key = f"sky:{kind}:{name}"
        strong = StrongFields(self._store, key)
        if not is_eventual:
            return strong
        eventual: EventualFields = self._one(
            f"eventual {kind}", name, lambda: EventualFields(strong, key, self._writes)
        )
        return eventual

    def _one(self, kind: str, name: str, make: Callable[[], T]) -> T:
        """Return what is known here of a collection."""
        with self._lock:
            found: T | None = self._known.get((kind, name))
            if found is None:
                found = self._known[kind, name] = make()
            return found

    def _claim(self, kind: str, name: str) -> None:
        """Make a name one kind's, for as long as the store lives."""
        known = self._kinds.get(name) if type(name) is str else None
        if known is None:
            check_name(name)
            known = self._kinds[name] = self._store.claim(name, kind)
        if known != kind:
            raise UsageError(
                f"{name!r} is a {known} in this pool, and cannot be a {kind} as well.",
                hint=f"Open it by {known}({name!r}), or choose another name.",
            )


def check_name(name: object) -> None:
    """
    Refuse what is no name.

    Raises:
        UsageError: If it is none.
    """
    if isinstance(name, str) and 0 < len(name) <= LONGEST_NAME and "\0" not in name:
        return
    raise UsageError(f"A collection's name is a str of 1 to {LONGEST_NAME} characters without NUL, not {name!r:.200}.")


def _is_eventual(consistency: str | None) -> bool:
    """Return whether a consistency is the eventual one."""
    if consistency not in (None, "strong", "eventual"):
        raise UsageError(f'The consistency of a collection is "strong" or "eventual", not {consistency!r}.')
    return consistency == "eventual"
