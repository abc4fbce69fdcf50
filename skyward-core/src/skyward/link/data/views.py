"""
Views of memory in a pickle that is opened as data.
"""

from __future__ import annotations

import math
import struct
from typing import Any, Final

from skyward.link.data.maker import Maker, Shelf, malformed

__all__ = ["buffer_of", "shelf", "sizes"]

_CODES: Final = frozenset("cbB?hHiIlLqQnNfdeP")


def shelf() -> Shelf:
    """Return the name of what puts a view together."""
    return Shelf.of(("skyward.link.pickling", "_restore_memoryview", None, Maker(_view)))


def buffer_of(value: Any) -> memoryview:
    """
    Return what came as a buffer.

    Raises:
        ValueError: If it is none.
    """
    if not isinstance(value, bytes | bytearray | memoryview):
        malformed(f"a {type(value).__name__} for a buffer")
    return memoryview(value)


def sizes(value: Any) -> tuple[int, ...]:
    """
    Return a tuple of lengths.

    Raises:
        ValueError: If it is none.
    """
    if type(value) is not tuple or not all(type(length) is int and 0 <= length < 1 << 62 for length in value):
        malformed("a shape that is none")
    return value


def _view(buffer: Any, code: Any, shape: Any) -> memoryview:
    from skyward.link.pickling import _restore_memoryview

    if type(code) is not str or code not in _CODES:
        malformed("a view of other items than numbers")
    memory = buffer_of(buffer)
    if math.prod(sizes(shape)) * struct.calcsize(code) != memory.nbytes:
        malformed("a view of another size than its buffer")
    return _restore_memoryview(memory, code, shape)
