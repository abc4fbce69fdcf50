"""
Pickling of what Python's own pickler knows by itself: numbers, texts, and containers of nothing else.

The stream is the one that the whole pickler makes, in half of the time: nothing is looked up for values that never
need it. Where anything else comes up, it is given up.
"""

from __future__ import annotations

import pickle
from typing import Any, NoReturn

__all__ = ["pickled_atom", "pickled_plainly"]

_MOST = 64 << 10
"""Bytes beyond which the way that a stream is made takes no time beside its bytes."""

_NUMBERS = frozenset((int, float, bool, type(None)))
_TEXTS = frozenset((str, bytes))


class _NotPlainError(Exception):
    """A stream that was given up, because something in it takes more than Python's own pickler."""


class _Pickler(pickle.Pickler):
    """Python's pickler, which asks for everything that it does not know by itself."""

    def reducer_override(self, obj: Any) -> NoReturn:
        raise _NotPlainError


class _Stream:
    """The least of a file that a pickler asks for, up to some size."""

    __slots__ = ("pieces", "room")

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.room = _MOST

    def write(self, piece: bytes) -> None:
        self.room -= len(piece)
        if self.room < 0:
            raise _NotPlainError
        self.pieces.append(piece)


def _refuse(_: pickle.PickleBuffer) -> NoReturn:
    raise _NotPlainError


def pickled_plainly(value: object) -> bytes | None:
    """
    Pickle a small plain value; None leaves it to the whole pickler, with whatever it raises.

    Args:
        value: Anything.

    >>> pickled_plainly({"a": [1, 2.5, None]}) is not None, pickled_plainly([object()])
    (True, None)
    """
    stream = _Stream()
    try:
        _Pickler(stream, 5, buffer_callback=_refuse).dump(value)
    except Exception:
        return None
    return stream.pieces[0] if len(stream.pieces) == 1 else b"".join(stream.pieces)


def pickled_atom(value: object) -> bytes | None:
    """
    Pickle a number or a short text; None leaves anything else to the whole pickler.

    Args:
        value: Anything.

    >>> pickle.loads(pickled_atom(7)), pickled_atom([7])
    (7, None)
    """
    kind = type(value)
    if kind not in _NUMBERS and not (kind in _TEXTS and len(value) <= _MOST):  # type: ignore[arg-type]
        return None
    stream = pickle.dumps(value, 5)
    return stream if len(stream) <= 2 * _MOST else None
