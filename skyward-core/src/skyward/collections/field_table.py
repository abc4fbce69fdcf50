"""A hash in the store: what dicts and sets are made of, read and written strongly or eventually."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from skyward.collections.store_client import StoreClient
from skyward.collections.write_behind import RecentReads, WriteBehind

__all__ = ["EventualFields", "FieldTable", "StrongFields"]

BATCH = 500
"""Fields that are read or written by one command."""


class FieldTable(Protocol):
    """Read and write the fields of one collection."""

    def get(self, field: bytes) -> bytes | None:
        """Return what a field holds."""

    def set(self, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        """Set fields."""

    def remove(self, fields: Sequence[bytes]) -> int:
        """Remove fields, and return how many there were."""

    def pop(self, field: bytes) -> bytes | None:
        """Remove a field, and return what it held."""

    def setdefault(self, field: bytes, value: bytes) -> bytes:
        """Set a field that is not there, and return what it holds."""

    def count(self) -> int:
        """Count the fields."""

    def names(self) -> list[bytes]:
        """List the fields."""

    def scan(self) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over the fields and what they hold."""

    def clear(self) -> None:
        """Remove all fields."""


class StrongFields:
    """
    Ask the store for each operation.

    Args:
        store: Has the hash.
        key: Its name there.
    """

    def __init__(self, store: StoreClient, key: str) -> None:
        self._store = store
        self._key = key

    def get(self, field: bytes) -> bytes | None:
        """Return what a field holds."""
        found: bytes | None = self._store.call("HGET", self._key, field)
        return found

    def set(self, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        """Set fields, so many at once as one command has."""
        for at in range(0, len(pairs), BATCH):
            self._store.write("HSET", self._key, *(word for pair in pairs[at : at + BATCH] for word in pair))

    def remove(self, fields: Sequence[bytes]) -> int:
        """Remove fields, and return how many there were."""
        count: int = self._store.write("HDEL", self._key, *fields)
        return count

    def pop(self, field: bytes) -> bytes | None:
        """Remove a field, and return what it held."""
        found: bytes | None = self._store.run_once("pop", (self._key,), (field,))
        return found

    def setdefault(self, field: bytes, value: bytes) -> bytes:
        """Set a field that is not there, and return what it holds."""
        found: bytes = self._store.run("setdefault", (self._key,), (field, value))
        return found

    def count(self) -> int:
        """Count the fields."""
        count: int = self._store.call("HLEN", self._key)
        return count

    def names(self) -> list[bytes]:
        """List the fields."""
        found: list[bytes] = self._store.call("HKEYS", self._key)
        return found

    def scan(self) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over the fields, batch by batch; what is there all the time comes once."""
        cursor = b"0"
        seen: set[bytes] = set()
        while True:
            cursor, found = self._store.call("HSCAN", self._key, cursor, "COUNT", BATCH)
            # The store may repeat fields when the hash grows or shrinks.
            fresh = [pair for pair in zip(found[::2], found[1::2], strict=True) if pair[0] not in seen]
            seen.update(found[::2])
            yield from fresh
            if cursor == b"0":
                return

    def clear(self) -> None:
        """Remove all fields."""
        self._store.write("DEL", self._key)


class EventualFields:
    """
    Read from what this process knows, and write in the background.

    Args:
        strong: Does what has to be decided by the store.
        key: Name of the hash there.
        writes: Sends writes in the background.
    """

    def __init__(self, strong: StrongFields, key: str, writes: WriteBehind) -> None:
        self._strong = strong
        self._key = key
        self._writes = writes
        self._recent: RecentReads[bytes | None] = RecentReads(writes)

    def get(self, field: bytes) -> bytes | None:
        """Return what a field held within the last second."""
        return self._recent.get(field, lambda: self._strong.get(field))

    def set(self, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        """Set fields soon."""
        for field, value in pairs:
            self._recent.set(field, value)
        self._writes.send(*(("HSET", self._key, field, value) for field, value in pairs))

    def remove(self, fields: Sequence[bytes]) -> int:
        """Remove fields soon, and return how many there were within the last second."""
        count = sum(self.get(field) is not None for field in fields)
        for field in fields:
            self._recent.set(field, None)
        self._writes.send(*(("HDEL", self._key, field) for field in fields))
        return count

    def pop(self, field: bytes) -> bytes | None:
        """Remove a field, and return what it held: decided by the store."""
        self._writes.flush()
        found = self._strong.pop(field)
        self._recent.set(field, None)
        return found

    def setdefault(self, field: bytes, value: bytes) -> bytes:
        """Set a field that is not there, and return what it holds: decided by the store."""
        self._writes.flush()
        found = self._strong.setdefault(field, value)
        self._recent.set(field, found)
        return found

    def count(self) -> int:
        """Count the fields in the store, with what was written here."""
        self._writes.flush()
        return self._strong.count()

    def names(self) -> list[bytes]:
        """List the fields in the store, with what was written here."""
        self._writes.flush()
        return self._strong.names()

    def scan(self) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over the fields in the store, with what was written here."""
        self._writes.flush()
        return self._strong.scan()

    def clear(self) -> None:
        """Remove all fields, now."""
        self._writes.flush()
        self._strong.clear()
        self._recent.forget()
