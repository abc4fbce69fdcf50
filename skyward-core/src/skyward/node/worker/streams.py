"""The node's ends of streams: items that a generator gives, items that an argument takes."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

from skyward.link.payload import Payload, load

WINDOW_ITEMS = 16
"""Items of one stream that may be on their way at once."""

WINDOW_BYTES = 8 << 20
"""Bytes of one stream that may be on their way at once; one item may be larger."""


class Interrupted(BaseException):
    """Unwind a call that is to stop; a BaseException so that `except Exception` in user code lets it pass."""


class Window:
    """
    Bound what a sender has on its way.

    >>> window = Window()
    >>> window.sent(100)
    >>> window.acknowledged(1)
    >>> window.open
    True
    """

    __slots__ = ("_bytes", "_sizes")

    def __init__(self) -> None:
        self._sizes: deque[int] = deque()
        self._bytes = 0

    @property
    def open(self) -> bool:
        """Return whether one more item may go."""
        return not self._sizes or (len(self._sizes) < WINDOW_ITEMS and self._bytes < WINDOW_BYTES)

    def sent(self, size: int) -> None:
        """Count an item of so many bytes."""
        self._sizes.append(size)
        self._bytes += size

    def acknowledged(self, items: int) -> None:
        """Count items that the other end has consumed."""
        for _ in range(min(items, len(self._sizes))):
            self._bytes -= self._sizes.popleft()


class OutputStream:
    """Wait for room before each item that a generator gives."""

    def __init__(self) -> None:
        self._window = Window()
        self._changed = threading.Condition()
        self._stopped = False

    def wait(self) -> bool:
        """Wait until an item may go; False when the consumer has left."""
        with self._changed:
            while not self._window.open and not self._stopped:
                self._changed.wait()
            return not self._stopped

    def sent(self, size: int) -> None:
        """Count an item."""
        with self._changed:
            self._window.sent(size)

    def acknowledged(self, items: int) -> None:
        """Make room for more."""
        with self._changed:
            self._window.acknowledged(items)
            self._changed.notify_all()

    def stop(self) -> None:
        """Wake the generator's thread, which finds that nothing reads."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()


class InputStream(Iterator[Any]):
    """
    Iterate over items that the client sends while the function runs.

    Args:
        index: Which of the call's input streams this is.
        consumed: Called with the number of items that were taken.
    """

    def __init__(self, index: int, consumed: Callable[[int, int], None]) -> None:
        self._index = index
        self._consumed = consumed
        self._items: deque[Payload] = deque()
        self._changed = threading.Condition()
        self._ended = False
        self._error: BaseException | None = None
        self._taken = 0

    def __next__(self) -> Any:
        with self._changed:
            while not self._items and not self._ended:
                self._changed.wait()
            if not self._items:
                if self._error is not None:
                    raise self._error
                raise StopIteration
            payload = self._items.popleft()
        self._taken += 1
        if self._taken >= WINDOW_ITEMS // 4 or payload.size >= WINDOW_BYTES // 4 or not self._items:
            self._consumed(self._index, self._taken)
            self._taken = 0
        return load(payload)

    def push(self, payload: Payload) -> None:
        """Add an item."""
        with self._changed:
            self._items.append(payload)
            self._changed.notify()

    def end(self, error: BaseException | None = None) -> None:
        """Add the end, or the error in its place."""
        with self._changed:
            self._ended = True
            self._error = error
            self._changed.notify_all()


opening: ContextVar[Callable[[int], InputStream]] = ContextVar("opening")
"""How the call whose arguments are unpickled now opens its input streams."""


class StreamArgument:
    """
    Stand in a call's arguments for an iterator that is streamed.

    Args:
        index: Which of the call's input streams it is.
    """

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index

    def __reduce__(self) -> tuple[Callable[[int], InputStream], tuple[int]]:
        return (_open, (self.index,))


def _open(index: int) -> InputStream:
    return opening.get()(index)
