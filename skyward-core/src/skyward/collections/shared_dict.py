"""`sky.dict`: a dict that all tasks of a pool share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any

from skyward.collections.field_table import FieldTable
from skyward.collections.in_thread import in_thread
from skyward.collections.key_encoding import decode_key, encode_key
from skyward.collections.value_encoding import Values
from skyward.errors import SerializationError

__all__ = ["SharedDict"]


class SharedDict:
    """
    Share a dict between tasks.

    Keys are hashable and values any objects that can be pickled; what `d[k]` returns is a copy, and a change to it
    is stored by assigning it again.
    The order is not that of insertion, and means nothing.

    Under `"strong"` each operation is one round trip to the store, which carries them out one after the other.
    Under `"eventual"` reads of keys are at most a second old, what this process wrote is seen by it at once, and
    writes are in the store within 50 ms. Then `pop`, `setdefault`, `clear`, `len` and everything that iterates send
    what waits and ask the store.

    Each method has a twin for coroutines: `get_async`; that of an operator has the operator's name, as
    `setitem_async`.
    """

    def __init__(self, name: str, fields: FieldTable, values: Values) -> None:
        self.name = name
        self._fields = fields
        self._values = values

    def __repr__(self) -> str:
        return f"sky.dict({self.name!r})"

    def __getitem__(self, key: Any) -> Any:
        found = self._fields.get(self._encode(key))
        if found is None:
            raise KeyError(key)
        return self._values.open(found)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._fields.set([self._pair(key, value)])

    def __delitem__(self, key: Any) -> None:
        if not self._fields.remove([self._encode(key)]):
            raise KeyError(key)

    def __contains__(self, key: Any) -> bool:
        return self._fields.get(self._encode(key)) is not None

    def __len__(self) -> int:
        return self._fields.count()

    def __bool__(self) -> bool:
        return len(self) > 0

    def __iter__(self) -> Iterator[Any]:
        return (self._decode(field) for field, _ in self._fields.scan())

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the value of a key, or the default."""
        found = self._fields.get(self._encode(key))
        return default if found is None else self._values.open(found)

    def pop(self, key: Any, default: Any = None) -> Any:
        """Remove a key and return its value, or the default: of several that do it at once, one gets the value."""
        found = self._fields.pop(self._encode(key))
        return default if found is None else self._values.open(found)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """Return the value of a key, which is set to the default if it has none."""
        field, value = self._pair(key, default)
        return self._values.open(self._fields.setdefault(field, value))

    def update(self, items: Mapping[Any, Any] | Iterable[tuple[Any, Any]] = (), /, **named: Any) -> None:
        """Set what a mapping, pairs and keywords hold, 500 of them at once."""
        pairs = dict(items, **named)
        self._fields.set([self._pair(key, value) for key, value in pairs.items()])

    def keys(self) -> list[Any]:
        """List the keys, as they are at one moment."""
        return [self._decode(field) for field in self._fields.names()]

    def values(self) -> list[Any]:
        """List the values: those of keys that stay meanwhile are all there."""
        return [self._values.open(value) for _, value in self._fields.scan()]

    def items(self) -> list[tuple[Any, Any]]:
        """List keys and values: those of keys that stay meanwhile are all there."""
        return [(self._decode(field), self._values.open(value)) for field, value in self._fields.scan()]

    def clear(self) -> None:
        """Remove everything."""
        self._fields.clear()

    async def getitem_async(self, key: Any) -> Any:
        """Return `d[key]`."""
        return await in_thread(self.__getitem__, key)

    async def setitem_async(self, key: Any, value: Any) -> None:
        """Do `d[key] = value`."""
        await in_thread(self.__setitem__, key, value)

    async def delitem_async(self, key: Any) -> None:
        """Do `del d[key]`."""
        await in_thread(self.__delitem__, key)

    async def contains_async(self, key: Any) -> bool:
        """Return `key in d`."""
        return await in_thread(self.__contains__, key)

    async def len_async(self) -> int:
        """Return `len(d)`."""
        return await in_thread(self.__len__)

    async def __aiter__(self) -> AsyncIterator[Any]:
        for key in await self.keys_async():
            yield key

    async def get_async(self, key: Any, default: Any = None) -> Any:
        """Do as `get`."""
        return await in_thread(self.get, key, default)

    async def pop_async(self, key: Any, default: Any = None) -> Any:
        """Do as `pop`."""
        return await in_thread(self.pop, key, default)

    async def setdefault_async(self, key: Any, default: Any = None) -> Any:
        """Do as `setdefault`."""
        return await in_thread(self.setdefault, key, default)

    async def update_async(self, items: Mapping[Any, Any] | Iterable[tuple[Any, Any]] = (), /, **named: Any) -> None:
        """Do as `update`."""
        await in_thread(self.update, items, **named)

    async def keys_async(self) -> list[Any]:
        """Do as `keys`."""
        return await in_thread(self.keys)

    async def values_async(self) -> list[Any]:
        """Do as `values`."""
        return await in_thread(self.values)

    async def items_async(self) -> list[tuple[Any, Any]]:
        """Do as `items`."""
        return await in_thread(self.items)

    async def clear_async(self) -> None:
        """Do as `clear`."""
        await in_thread(self.clear)

    def _encode(self, key: Any) -> bytes:
        return encoded(self._values, key, f"dict {self.name!r}")

    def _decode(self, field: bytes) -> Any:
        return decode_key(field, self._values.open)

    def _pair(self, key: Any, value: Any) -> tuple[bytes, bytes]:
        return self._encode(key), self._values.pack(value, f"value of {key!r} in dict {self.name!r}")


def encoded(values: Values, key: Any, collection: str) -> bytes:
    """
    Encode a key of a collection.

    Raises:
        TypeError: If it is not hashable.
        SerializationError: If it cannot be pickled.
    """
    if type(key) is str:
        return b"s" + key.encode("utf-8", "surrogatepass")
    hash(key)
    try:
        return encode_key(key, values.pack_key)
    except Exception as error:
        raise SerializationError(
            f"The key {key!r} of {collection} cannot be pickled: {str(error).rstrip('.')}.",
            argument=collection,
            hint="Use a key of plain values: numbers, text, bytes, tuples of them.",
        ) from error
