"""Ownership of descriptors that arrive with a frame: the code that took one over closes it, else the link."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

# Those of the frame that is handled now; a loop handles one at a time.
_unowned: set[int] = set()


def own(fds: Iterable[int]) -> None:
    """Take descriptors over: the caller closes them."""
    if _unowned:
        _unowned.difference_update(fds)


@contextmanager
def handed_out(fds: tuple[int, ...]) -> Iterator[None]:
    """
    Close what was not taken over by the end of the block, such as those of a frame that made no sense.

    >>> reading, writing = os.pipe()
    >>> with handed_out((reading, writing)):
    ...     own([reading])
    >>> os.close(reading)
    >>> os.fstat(writing)
    Traceback (most recent call last):
    ...
    OSError: [Errno 9] Bad file descriptor
    """
    _unowned.update(fds)
    try:
        yield
    finally:
        for fd in fds:
            if fd in _unowned:
                _unowned.discard(fd)
                os.close(fd)
