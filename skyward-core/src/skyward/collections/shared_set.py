"""`sky.set`: a set that all tasks of a pool share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

from skyward.collections.field_table import FieldTable
from skyward.collections.in_thread import in_thread
from skyward.collections.key_encoding import decode_key
from skyward.collections.shared_dict import encoded
from skyward.collections.value_encoding import Values

__all__ = ["SharedSet"]


class SharedSet:
    """
    Share a set between tasks; what it holds is hashable, as the keys of `sky.dict`.

    Under `"strong"` each operation is one round trip to the store, which carries them out one after the other.
    Under `"eventual"` what `in` and `remove` know is at most a second old, what this process wrote is seen by it at
    once, and `add`, `discard`, `remove` and `update` are in the store within 50 ms. Then `clear`, `len` and iteration
    send what waits and ask the store.

    Each method has a twin for coroutines: `add_async`, and `contains_async` and `len_async` for operators.
    """

    def __init__(self, name: str, fields: FieldTable, values: Values) -> None:
        self.name = name
        self._fields = fields
        self._values = values

    def __repr__(self) -> str:
        return f"sky.set({self.name!r})"

    def __contains__(self, value: Any) -> bool:
        return self._fields.get(self._encode(value)) is not None

    def __len__(self) -> int:
        return self._fields.count()

    def __bool__(self) -> bool:
        return len(self) > 0

    def __iter__(self) -> Iterator[Any]:
        return (decode_key(field, self._values.open) for field, _ in self._fields.scan())

    def add(self, value: Any) -> None:
        """Add a value."""
        self._fields.set([(self._encode(value), b"")])

    def update(self, *values: Iterable[Any]) -> None:
        """Add what iterables yield, 500 values at once."""
        self._fields.set([(self._encode(value), b"") for each in values for value in each])

    def discard(self, value: Any) -> None:
        """Remove a value that may not be there."""
        self._fields.remove([self._encode(value)])

    def remove(self, value: Any) -> None:
        """
        Remove a value.

        Raises:
            KeyError: If it is not there.
        """
        if not self._fields.remove([self._encode(value)]):
            raise KeyError(value)

    def clear(self) -> None:
        """Remove everything."""
        self._fields.clear()

    async def contains_async(self, value: Any) -> bool:
        """Return `value in s`."""
        return await in_thread(self.__contains__, value)

    async def len_async(self) -> int:
        """Return `len(s)`."""
        return await in_thread(self.__len__)

    async def __aiter__(self) -> AsyncIterator[Any]:
        for value in await in_thread(lambda: list(self)):
            yield value

    async def add_async(self, value: Any) -> None:
        """Do as `add`."""
        await in_thread(self.add, value)

    async def update_async(self, *values: Iterable[Any]) -> None:
        """Do as `update`."""
        await in_thread(self.update, *values)

    async def discard_async(self, value: Any) -> None:
        """Do as `discard`."""
        await in_thread(self.discard, value)

    async def remove_async(self, value: Any) -> None:
        """Do as `remove`."""
        await in_thread(self.remove, value)

    async def clear_async(self) -> None:
        """Do as `clear`."""
        await in_thread(self.clear)

    def _encode(self, value: Any) -> bytes:
        return encoded(self._values, value, f"set {self.name!r}")
