"""What is sent more than once is kept, and named from then on; it is recognised without being hashed."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from skyward.link.digest import digest_of
from skyward.link.lending import lending
from skyward.link.payload import Payload, views
from skyward.link.payload_making import MAX_STORED, PIECE, Keep
from skyward.link.payload_parts import Part, Place
from skyward.link.recycling import Lent, recycling
from skyward.link.refs import Refs
from skyward.link.segment import Segment, aligned, write_segment
from skyward.link.written import WORTH_IT, MemoryWatch, watch
from skyward.node.data.memory_share import share_of_memory

_SEEN = 4096
_WATCHED = 512
_WORTH_KEEPING = PIECE
_NAME = 32
_KEPT_AT_ONCE = 64 << 20
_SAMPLES, _SAMPLE = 32, 64
_PATIENCE = 2

_Print = tuple[int, int]


class _KeptBuffer(NamedTuple):
    """What is kept: under which name, where, the same mapped, and what it looks like."""

    keep: Keep
    view: memoryview
    looks: _Print


class _WatchedPlace:
    """
    A place in memory that is watched, and under which name its content is kept.

    What was sent only once has no name yet; it may be read where it was copied to.
    """

    __slots__ = ("changes", "lent", "name", "watch")

    def __init__(self, name: bytes, watch: MemoryWatch | None, changes: int) -> None:
        self.lent: Lent | None = None
        self.name = name
        self.watch = watch
        self.changes = changes


class Buffers:
    """
    Keep what is sent more than once, and name it.

    What comes for the first time travels as it is; its size and some samples are remembered, and where it was
    copied to.
    What looks like something that came before is in a segment that nodes keep under a name: that copy, as long as
    neither it nor the memory was written to since, or else another one; what looks like
    something kept is compared with it, and the kernel asked to watch its memory from then on: as long as nothing was
    written there, it is recognised without being read.

    On its way to another machine what has up to 64 MiB is kept the first time; more would cost both machines more
    memory than most lines are slow.

    Args:
        limit: How many bytes are kept; a share of this machine's memory if left out. One alone may be larger.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.far = False
        """Whether buffers leave this machine."""
        self._limit = limit
        self._lock = threading.Lock()
        self._seen: OrderedDict[_Print | bytes, None] = OrderedDict()
        self._kept: OrderedDict[bytes, _KeptBuffer] = OrderedDict()
        self._looks: dict[_Print, bytes] = {}
        self._places: OrderedDict[tuple[int, int], _WatchedPlace] = OrderedDict()
        self.held = 0
        self.refs = Refs()

    def go_far(self) -> None:
        """Record that buffers leave this machine."""
        self.far = True

    def keep(self, buffer: memoryview, /, *, fresh: bool = False, shared: bool = False) -> Keep | None:
        """
        Name a buffer that was sent before, or is worth keeping at once; None for one to be sent as it is.

        Args:
            buffer: What is sent; its content may change afterwards.
            fresh: Whether its memory was made for this one time, so that it need not be watched.
            shared: Whether it goes to several machines, so that it is worth keeping at once.
        """
        if len(buffer) < _WORTH_KEEPING:
            return None
        place = _place_of(buffer) if not fresh and len(buffer) >= WORTH_IT else None
        changes = 0
        if place is not None:
            with self._lock:
                known = self._places.get(place)
                kept = self._kept.get(known.name) if known is not None else None
            if known is not None:
                if kept is not None and known.watch is not None and _unchanged(known.watch, buffer, kept.view):
                    known.changes = 0
                    return self._again(kept)
                if kept is None and (copied := self._copied(known, buffer)) is not None:
                    return copied.keep
                changes = known.changes + (known.watch is not None)
        looks = len(buffer), _sample(buffer)
        with self._lock:
            alike = self._kept.get(self._looks.get(looks, b""))
            again = looks in self._seen
        at_once = self.far and (shared or len(buffer) <= _KEPT_AT_ONCE)
        if alike is None and not (again or at_once):
            self._note(looks)
            if place is not None and changes <= _PATIENCE:
                self._remember(place, _WatchedPlace(b"", watch(*place), changes))
            return None
        # Before the comparison or the copy: what is written meanwhile has to count as changed.
        watched = watch(*place) if place is not None and (again or alike) and changes <= _PATIENCE else None
        kept = self._kept_copy(buffer, looks, alike, at_once=at_once)
        if kept is None:
            if watched is not None:
                watched.close()
            return None
        if place is not None:
            # Equal again though it was written to: it may be worth a watch once more.
            self._remember(place, _WatchedPlace(kept.keep.digest, watched, max(0, changes - (kept is alike))))
        return kept.keep

    def sent(self, buffers: Sequence[memoryview], payload: Payload) -> None:
        """
        Record where a buffer was copied to that may come again.

        Args:
            buffers: What is beside the stream of a payload.
            payload: What they were copied to; a buffer is found again at the beginning of its segment only.
        """
        if payload.segment is None:
            return
        first = next(index for index, part in enumerate(payload.parts) if part.place == Place.SEGMENT)
        index = first + len(buffers) - len(payload.parts)
        if index < 0 or len(buffers[index]) < WORTH_IT or 2 * len(buffers[index]) < payload.segment.size:
            return
        place = _place_of(buffers[index])
        with self._lock:
            known = self._places.get(place)
        if known is not None and known.watch is not None and not known.name:
            known.lent = recycling.lent(payload.segment.fd)

    def apart(self, payload: Payload) -> Payload:
        """
        Name what is large in a payload that goes to several machines, so that they can hand it on to each other.

        Args:
            payload: What was pickled; it is returned as it is if nothing leaves this machine.
        """
        if not self.far or payload.segment is None:
            return payload
        parts: list[Part] = []
        stored: list[Segment] = []
        rest: list[list[memoryview | bytes]] = []
        kept, room = iter(payload.stored), MAX_STORED - len(payload.stored)
        for part, view in zip(payload.parts, views(payload), strict=True):
            if part.place == Place.STORED:
                stored.append(next(kept))
            elif part.place == Place.SEGMENT:
                named = self.keep(memoryview(view), fresh=True, shared=True) if room else None
                if named is not None:
                    room -= 1
                    stored.append(named.segment)
                    parts.append(Part(Place.STORED, part.size, named.digest))
                    continue
                rest.append([memoryview(view)])
            parts.append(part)
        return Payload(tuple(parts), payload.inline, write_segment(rest) if rest else None, tuple(stored))

    def clear(self) -> None:
        """Release everything; what is on its way stays readable."""
        with self._lock:
            places, self._places = self._places, OrderedDict()
            self._kept, self._looks, self.held = OrderedDict(), {}, 0
            self._seen.clear()
        for place in places.values():
            _close(place)
        self.refs.clear()

    def _again(self, kept: _KeptBuffer) -> Keep:
        with self._lock:
            if kept.keep.digest in self._kept:
                self._kept.move_to_end(kept.keep.digest)
        return kept.keep

    def _kept_copy(
        self, buffer: memoryview, looks: _Print, alike: _KeptBuffer | None, *, at_once: bool
    ) -> _KeptBuffer | None:
        """Find what is kept of this content, or keep it; None if only its samples came before."""
        if alike is not None:
            if equal(buffer, alike.view):
                self._again(alike)
                return alike
            if not at_once:
                # Samples do not distinguish this content from another, as with zeros and a few numbers among them.
                digest = digest_of(buffer)
                if not self._note(digest):
                    return None
        self._note(looks)
        # What came from a node, and is passed on unchanged, is in a segment already.
        segment = lending.find([buffer]) or write_segment([[buffer]])
        return self._hold(segment, segment.map()[: len(buffer)], looks)

    def _copied(self, known: _WatchedPlace, buffer: memoryview) -> _KeptBuffer | None:
        """Keep the copy that was sent, if it is still there and what was copied did not change."""
        looks = len(buffer), _sample(buffer)
        if known.lent is None or known.watch is None or looks in self._looks:
            # What looks the same and has a name may be the same.
            return None
        reader = recycling.lend_again(known.lent)
        if reader is None:
            return None
        segment = Segment(reader, aligned(len(buffer)))
        view = segment.map()[: len(buffer)]
        if not _unchanged(known.watch, buffer, view):
            return None
        kept = self._hold(segment, view, looks)
        known.name, known.lent = kept.keep.digest, None
        return kept

    def _hold(self, segment: Segment, view: memoryview, looks: _Print) -> _KeptBuffer:
        kept = _KeptBuffer(Keep(os.urandom(_NAME), segment), view, looks)
        with self._lock:
            self._kept[kept.keep.digest] = kept
            self._looks[looks] = kept.keep.digest
            self.held += segment.size
            if self._limit is None:
                self._limit = share_of_memory()
            while self.held > self._limit and len(self._kept) > 1:
                name, oldest = self._kept.popitem(last=False)
                self.held -= oldest.keep.segment.size
                if self._looks.get(oldest.looks) == name:
                    del self._looks[oldest.looks]
        return kept

    def _note(self, what: _Print | bytes) -> bool:
        """Record what was seen, and return whether it was seen before."""
        with self._lock:
            before = what in self._seen
            self._seen[what] = None
            self._seen.move_to_end(what)
            if len(self._seen) > _SEEN:
                self._seen.popitem(last=False)
        return before

    def _remember(self, place: tuple[int, int], known: _WatchedPlace) -> None:
        with self._lock:
            gone = [self._places.pop(place, None)]
            self._places[place] = known
            while len(self._places) > _WATCHED:
                gone.append(self._places.popitem(last=False)[1])
        for before in gone:
            if before is not None:
                _close(before)


def _close(place: _WatchedPlace) -> None:
    watched, place.watch = place.watch, None
    if watched is not None:
        watched.close()


def _unchanged(watched: MemoryWatch, buffer: memoryview, kept: memoryview) -> bool:
    """Return whether a buffer is what was kept of it: its whole pages unwritten, and the ends of it the same."""
    address, _ = _place_of(buffer)
    head, tail = watched.start - address, watched.end - address
    same = equal(buffer[:head], kept[:head]) and equal(buffer[tail:], kept[tail:])
    return same and watched.intact()


def _sample(buffer: memoryview) -> int:
    """Look at some places of a buffer, spread over it."""
    step = (len(buffer) - _SAMPLE) // (_SAMPLES - 1)
    return hash(b"".join([buffer[at : at + _SAMPLE] for at in range(0, step * _SAMPLES, step)]))


def _place_of(buffer: memoryview) -> tuple[int, int]:
    # Imported late: ctypes is not loaded for programs that send nothing large.
    from skyward.link.address import address_of

    return address_of(buffer), len(buffer)


def equal(one: memoryview, other: memoryview) -> bool:
    """Return whether two buffers hold the same bytes."""
    from skyward.link.address import equal

    return equal(one, other)
