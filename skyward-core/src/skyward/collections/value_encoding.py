"""
Values as bytes: a pickle, with its large buffers behind it.

    a pickle                                                     where it has no large buffers
    0  u32 number of parts  u64 size of each  then each part     the pickle and its buffers, each at a multiple of 64
"""

from __future__ import annotations

import pickle
import struct
from typing import TYPE_CHECKING, Any

from skyward.errors import SerializationError, SkywardError, UsageError
from skyward.link.pickling import DataPickler, Pickler

if TYPE_CHECKING:
    from skyward.model.spec.trust_setting import Data

__all__ = ["Values"]

_PLAIN = frozenset({type(None), bool, int, float, str, bytes})
_ALIGNMENT = 64

LARGEST = 512 << 20
"""Bytes that a value may have: the store takes no longer ones."""


class Values:
    """
    Pickle and unpickle what collections hold.

    Args:
        trust: What of it is opened as data; None opens anything.
    """

    def __init__(self, trust: Data | None = None) -> None:
        self._trust = trust
        self._pickler = Pickler if trust is None else DataPickler

    def pack(self, value: Any, what: str) -> bytes:
        """
        Pickle a value.

        Args:
            value: Anything that cloudpickle can pickle.
            what: What it is, for an error.

        Raises:
            SerializationError: If it cannot be pickled.
            UsageError: If its pickle is larger than a store takes.
        """
        if type(value) in _PLAIN:
            data = pickle.dumps(value, 5)
        else:
            stream: list[bytes] = []
            buffers: list[memoryview] = []
            try:
                self._pickler(stream, buffers).dump(value)
            except SkywardError:
                raise
            except Exception as error:
                raise SerializationError(
                    f"The {what} cannot be pickled: {str(error).rstrip('.')}.",
                    argument=what,
                    hint="Store what it is made of, or an object whose class can be pickled.",
                ) from error
            data = _joined([b"".join(stream), *buffers]) if buffers else b"".join(stream)
        if len(data) > LARGEST:
            raise UsageError(
                f"The {what} has {len(data) >> 20} MiB, and a value of a collection {LARGEST >> 20} MiB at most.",
                hint="Store it in several values, or send it by sky.put.",
            )
        return data

    def pack_key(self, key: Any) -> bytes:
        """Pickle a key, equal ones alike as far as pickles can be."""
        stream: list[bytes] = []
        made = self._pickler(stream, [])
        # Without the memo it does not matter which of its parts are one object.
        made.fast = True
        try:
            made.dump(key)
        except (ValueError, RecursionError):
            # It refers to itself.
            stream.clear()
            self._pickler(stream, []).dump(key)
        return b"".join(stream)

    def open(self, data: bytes) -> Any:
        """
        Unpickle a value; its large buffers are writable and the caller's alone.

        Raises:
            SerializationError: If it cannot be unpickled here.
        """
        try:
            if data[:1] != b"\0":
                return pickle.loads(data) if self._trust is None else self._open_data(data, [])
            stream, *buffers = _parts(bytearray(data))
            if self._trust is None:
                return pickle.loads(stream, buffers=buffers)
            return self._open_data(stream, buffers)
        except SkywardError:
            raise
        except Exception as error:
            raise SerializationError(
                f"A value of a collection cannot be unpickled here: {type(error).__name__}: {str(error).rstrip('.')}.",
                hint="Have the modules that it needs here, or list its class in what is trusted.",
            ) from error

    def _open_data(self, stream: bytes | memoryview, buffers: list[memoryview]) -> Any:
        from skyward.link.data.allowed_names import names_of
        from skyward.link.data.opener import open_data

        assert self._trust is not None
        return open_data(stream, names_of(self._trust), buffers=buffers)


def _joined(parts: list[bytes | memoryview]) -> bytes:
    """Join parts, each at an aligned place."""
    data = bytearray(struct.pack(f"<BI{len(parts)}Q", 0, len(parts), *map(len, parts)))
    for part in parts:
        data += bytes(-len(data) % _ALIGNMENT)
        data += part
    return bytes(data)


def _parts(data: bytearray) -> list[memoryview]:
    """Return the parts of what was joined."""
    [count] = struct.unpack_from("<I", data, 1)
    at = 5 + 8 * count
    found = []
    for size in struct.unpack_from(f"<{count}Q", data, 5):
        at += -at % _ALIGNMENT
        found.append(memoryview(data)[at : at + size])
        at += size
    return found
