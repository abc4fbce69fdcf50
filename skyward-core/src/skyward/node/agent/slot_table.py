"""The slot table, a page that a worker and its agent share: which slot runs which call since when."""

from __future__ import annotations

import mmap
import os
import time
from struct import Struct
from typing import NamedTuple

from skyward.link.segment import write_segment

_SLOT = Struct("<QdQQ")


class RunningCall(NamedTuple):
    """A call in a slot: its id, when it began (monotonic seconds), and the thread it runs in."""

    call: int
    since: float
    thread: int


class SlotTable:
    """
    Read and write the page.

    It is shared memory and not a message, so that the agent knows what ran even when the worker is gone.

    Args:
        fd: The page's descriptor; stays open.
        slots: How many calls the worker runs at once.
    """

    __slots__ = ("_map", "_slots", "fd")

    def __init__(self, fd: int, slots: int) -> None:
        self.fd = fd
        self._slots = slots
        self._map = mmap.mmap(fd, size_of(slots))

    def start(self, slot: int, call: int, thread: int) -> None:
        """Record that a slot begins a call."""
        _SLOT.pack_into(self._map, slot * _SLOT.size, call, time.monotonic(), thread, 0)

    def stop(self, slot: int, call: int) -> None:
        """Record that a slot is free, and which call it ran."""
        _SLOT.pack_into(self._map, slot * _SLOT.size, 0, 0.0, 0, call)

    def running(self) -> list[RunningCall]:
        """List the calls that run now."""
        return [RunningCall(call, since, thread) for call, since, thread, _ in self._read() if call]

    def over(self) -> list[int]:
        """List the calls that the slots which are free ran last."""
        return [last for *_, last in self._read() if last]

    def _read(self) -> list[tuple[int, float, int, int]]:
        return [_SLOT.unpack_from(self._map, slot * _SLOT.size) for slot in range(self._slots)]

    def close(self) -> None:
        """Close the page."""
        self._map.close()
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def size_of(slots: int) -> int:
    """Count the bytes of a page for so many slots."""
    return max(1, slots) * _SLOT.size


def new_slot_table(slots: int) -> SlotTable:
    """Make a page on which no slot runs anything."""
    segment = write_segment([[bytes(size_of(slots))]])
    return SlotTable(os.dup(segment.fd), slots)
