"""Turn functions and arguments into what travels; runs in the thread that dispatches."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

from skyward.engine.call import CapturedFunction
from skyward.link.blame import blame
from skyward.link.capture import Snapshot, snapshot
from skyward.link.digest import digest_of
from skyward.link.messages import FUNCTION, FUNCTION_DIGEST, FunctionFlag
from skyward.link.payload import OUT_OF_BAND, Keep, Payload, dump, views
from skyward.link.segment import Segment, write_segment

_SEEN = 512
_KEPT_BYTES = 1 << 30
_WORTH_KEEPING = 1 << 20
_NAME = 32
_KEPT_AT_ONCE = 64 << 20


class _Sent:
    """A buffer that was sent under a name of its own, and what was in it if that was ever asked."""

    __slots__ = ("digest", "name", "owner")

    def __init__(self, owner: weakref.ref[Any], name: bytes) -> None:
        self.owner = owner
        self.name = name
        self.digest = b""


class Buffers:
    """
    Name by its content what is sent more than once.

    On this machine a buffer that is seen for the first time travels as it is, because hashing it costs as much as
    copying it; the second time it is hashed, and from then on named by its digest as long as its content is the same.
    On its way to another machine one of up to 64 MiB is named at random the first time, and hashed only when it comes
    again; a larger one would cost both machines more memory than most lines are slow.
    """

    def __init__(self) -> None:
        self._far = False
        self._sent: OrderedDict[tuple[int, int, int], _Sent] = OrderedDict()
        self._lock = threading.Lock()
        self._seen: OrderedDict[tuple[int, int, int], weakref.ref[Any]] = OrderedDict()
        self._kept: OrderedDict[bytes, Segment] = OrderedDict()

    def go_far(self) -> None:
        """Take note that buffers leave this machine."""
        self._far = True

    def _seen_before(self, owner: object, place: tuple[int, int, int]) -> bool:
        """Tell whether this very memory was sent before; a new object at the place of an old one was not."""
        with self._lock:
            reference = self._seen.get(place)
            if reference is not None and reference() is owner:
                self._seen.move_to_end(place)
                return True
            try:
                self._seen[place] = weakref.ref(owner)
            except TypeError:
                return False
            self._seen.move_to_end(place)
            if len(self._seen) > _SEEN:
                self._seen.popitem(last=False)
            return False

    def keep(self, buffer: memoryview) -> Keep | None:
        """Give the digest of a buffer that is known, or None for one that is new."""
        if len(buffer) < _WORTH_KEEPING:
            return None
        at_once = self._far and len(buffer) <= _KEPT_AT_ONCE
        if at_once and (kept := self._keep_far(buffer)) is not None:
            return kept
        if not at_once and not self._seen_before(*_owner(buffer)):
            return None
        digest = digest_of(buffer)
        with self._lock:
            segment = self._kept.get(digest)
            if segment is not None:
                self._kept.move_to_end(digest)
                return Keep(digest, segment)
        return self._keep_as(digest, buffer)

    def _keep_as(self, name: bytes, buffer: memoryview) -> Keep:
        segment = write_segment([[buffer]])
        with self._lock:
            self._kept[name] = segment
            while len(self._kept) > 1 and sum(kept.size for kept in self._kept.values()) > _KEPT_BYTES:
                self._kept.popitem(last=False)
        return Keep(name, segment)

    def _keep_far(self, buffer: memoryview) -> Keep | None:
        """Name a buffer whose owner can be recognised; nothing for one that can not, which only its content names."""
        owner, place = _owner(buffer)
        try:
            reference = weakref.ref(owner)
        except TypeError:
            return None
        with self._lock:
            sent = self._sent.get(place)
            segment = self._kept.get(sent.name) if sent is not None and sent.owner() is owner else None
        if sent is not None and segment is not None:
            if not sent.digest:
                sent.digest = digest_of(segment.map()[: len(buffer)])
            if digest_of(buffer) == sent.digest:
                return Keep(sent.name, segment)
        kept = self._keep_as(os.urandom(_NAME), buffer)
        with self._lock:
            self._sent[place] = _Sent(reference, kept.digest)
            while len(self._sent) > _SEEN:
                self._sent.popitem(last=False)
        return kept


def _owner(buffer: memoryview) -> tuple[object, tuple[int, int, int]]:
    """
    Find the object that a view shows, through views of views, and where in memory the view is.

    numpy pickles an array whose columns lie together through a view that it makes each time: what is the same each time
    is the array below.
    """
    owner: Any = buffer.obj
    address = 0
    while True:
        below: Any
        if isinstance(owner, memoryview):
            below = owner.obj
        elif (array := getattr(owner, "__array_interface__", None)) is not None:
            address = address or array["data"][0]
            below = getattr(owner, "base", None)
        else:
            below = None
        if below is None:
            return owner, (id(owner), address, len(buffer))
        owner = below


class Captures:
    """
    Pickle functions, and not again while what they capture is the same.

    Args:
        buffers: Where large buffers that functions capture are kept.
    """

    def __init__(self, buffers: Buffers) -> None:
        self._buffers = buffers
        self._known: weakref.WeakKeyDictionary[Any, tuple[Snapshot, CapturedFunction]] = weakref.WeakKeyDictionary()

    def capture(self, function: Any, name: str) -> CapturedFunction:
        """
        Give a function as it travels.

        Args:
            function: A plain function, or a `Function` that knows its own.
            name: What the user calls it.

        Raises:
            SerializationError: If it captures something that cannot be pickled; the message names it.
        """
        known = self._known.get(function)
        if known is not None and known[0].still_true():
            return known[1]
        plain = getattr(function, "local", function)
        taken = snapshot(plain) if isinstance(plain, FunctionType) else None
        try:
            payload = dump(function, self._buffers.keep)
        except Exception as error:
            raise blame(error, function=name, arguments={}, target=plain) from error
        captured = _captured(name, payload, shareable=taken is not None and taken.shareable)
        captured.needs = getattr(function, "needs", "")
        if taken is not None:
            with contextlib.suppress(TypeError):
                self._known[function] = (taken, captured)
        return captured


def _captured(name: str, payload: Payload, *, shareable: bool) -> CapturedFunction:
    table = payload.encode()
    content = [table] if payload.segment is None else [table, *views(payload)]
    digest = digest_of(*content, b"shareable" if shareable else b"")[:FUNCTION_DIGEST]
    flags = (FunctionFlag.SHAREABLE if shareable else 0) | (FunctionFlag.STORED if payload.stored else 0)
    return CapturedFunction(name, digest, FUNCTION.pack(digest, flags) + table, payload)


def dump_arguments(
    buffers: Buffers,
    function: Callable[..., Any],
    name: str,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> Payload:
    """
    Pickle a call's arguments.

    Args:
        buffers: Where large buffers are kept.
        function: The user's function, to name its parameters.
        name: What the user calls it.
        args: Positional arguments.
        kwargs: Keyword arguments.

    Raises:
        SerializationError: If one cannot be pickled; the message names it and the object inside it.
    """
    try:
        return dump((args, kwargs), buffers.keep)
    except Exception as error:
        raise blame(error, function=name, arguments=_named(function, args, kwargs)) from error


def _named(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    import inspect

    try:
        return dict(inspect.signature(function).bind(*args, **kwargs).arguments)
    except (TypeError, ValueError):
        return {**{f"argument {index}": value for index, value in enumerate(args)}, **kwargs}


assert _WORTH_KEEPING >= OUT_OF_BAND
