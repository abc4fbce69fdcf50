"""
Turn a call's arguments into what travels; runs in the thread that dispatches.

Where one of them is large, the pickler pickles it on its own and then all of them together, which refers to what
came before: so objects that arguments share are shared by what is read, and the large argument is a piece of the stream
by itself, the same whatever stands beside it. It comes first, because what a pickler has seen before changes what it
writes. Which parameters of a function take large ones is found out at the first such call: pickling it is given up when
it gets large, and begun again, one argument after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pickle import PickleBuffer
from typing import Any, TypeVar

from skyward.engine.calls.buffers import Buffers
from skyward.errors import RefError
from skyward.link.blame import blame
from skyward.link.payload import Payload
from skyward.link.payload_making import PIECE, Pickled, packed, pickled
from skyward.link.pickling import TooLargeError
from skyward.link.plain_pickle import pickled_plainly
from skyward.link.refs import Ref

T = TypeVar("T")

_ATOMS = frozenset((int, float, complex, bool, type(None)))
_TEXTS = frozenset((str, bytes))
_KNOWN = 512
_PLACES = 8
_TRIES = 3

_Name = int | str


class Arguments:
    """
    Pickle the arguments of one pool's calls.

    Args:
        buffers: Where large buffers and large pieces of streams are kept.
    """

    def __init__(self, buffers: Buffers) -> None:
        self._buffers = buffers
        self._large: dict[str, tuple[_Name, ...]] = {}
        self._not_plain: set[str] = set()
        self._tried: dict[str, int] = {}

    def dump(
        self,
        function: Callable[..., Any],
        name: str,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        carried: Mapping[str, str] | None = None,
    ) -> Payload:
        """
        Pickle a call's arguments.

        Args:
            function: The user's function, to name its parameters.
            name: What the user calls it.
            args: Positional arguments.
            kwargs: Keyword arguments.
            carried: What followers of the call send along, by the plugin's name.

        Raises:
            SerializationError: If one cannot be pickled; the message names it and the object inside it.
            RefError: If one is, or holds, a Ref that is freed or of another pool.
        """
        try:
            return self._dump(name, args, kwargs, (carried,) if carried else ())
        except RefError:
            raise
        except Exception as error:
            raise blame(error, function=name, arguments=_named(function, args, kwargs)) from error

    def put(self, value: T) -> Ref[T]:
        """
        Keep a value that many calls are to use.

        Args:
            value: Anything that can be an argument.

        Raises:
            SerializationError: If it cannot be pickled; the message names the object inside it.
        """
        try:
            made = pickled((value,), refs=self._buffers.refs)
        except RefError:
            raise
        except Exception as error:
            raise blame(error, function="put", arguments={"value": value}) from error
        ref: Ref[T] = self._buffers.refs.put(made)
        return ref

    def _dump(
        self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], more: tuple[Mapping[str, str], ...]
    ) -> Payload:
        if name not in self._not_plain:
            plain = pickled_plainly((args, kwargs, *more))
            if plain is not None:
                return Payload((), plain)
            if len(self._not_plain) >= _KNOWN:
                self._not_plain.clear()
            self._not_plain.add(name)
        for index, value in enumerate(args):
            if type(value) in _TEXTS and len(value) >= PIECE:
                args = (*args[:index], _beside(value), *args[index + 1 :])
        for word, value in kwargs.items():
            if type(value) in _TEXTS and len(value) >= PIECE:
                kwargs = {**kwargs, word: _beside(value)}
        large, most = self._large.get(name), max(PIECE, 2 * self._tried.get(name, 0))
        if large is None:
            try:
                made = pickled(((args, kwargs, *more),), refs=self._buffers.refs, most=most)
            except TooLargeError:
                made = self._apart(name, args, kwargs, more, first=())
            if made.is_small:
                return Payload((), made.streams[0][0])
        else:
            apart = {place: value for place in large if (value := _at(place, args, kwargs)) is not None}
            order = tuple(apart)
            made = pickled((*apart.values(), (args, kwargs, *more)), refs=self._buffers.refs)
            if made.sizes[-1] >= most or not _leads(order, made):
                made = self._apart(name, args, kwargs, more, first=order)
        payload = packed(made, self._buffers.keep)
        self._buffers.sent(made.buffers, payload)
        return payload

    def _apart(
        self,
        name: str,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        more: tuple[Mapping[str, str], ...],
        *,
        first: tuple[_Name, ...],
    ) -> Pickled:
        """Pickle each argument on its own, find the large ones, and have them come first from now on."""
        everything: list[tuple[_Name, Any]] = [*enumerate(args), *kwargs.items()]
        values = {place: value for place, value in everything if type(value) not in _ATOMS}
        order = tuple(place for place in first if place in values)
        for _ in range(_TRIES):
            order = (*order, *(place for place in values if place not in order))
            made = pickled((*(values[place] for place in order), (args, kwargs, *more)), refs=self._buffers.refs)
            found = _large(order, made)
            if _leads(order, made):
                break
            # What came before them shows in what was written of them.
            order = found
        if len(self._large) + len(self._tried) > _KNOWN:
            self._large.clear()
            self._tried.clear()
        if found:
            known = self._large.get(name, ())
            self._large[name] = (*found, *(place for place in known if place not in found))[:_PLACES]
        else:
            self._tried[name] = sum(made.sizes)
        return made


def _large(order: tuple[_Name, ...], made: Pickled) -> tuple[_Name, ...]:
    """Return at which places large arguments are, of those that were pickled on their own."""
    return tuple(place for place, size in zip(order, made.sizes, strict=False) if size >= PIECE)


def _leads(order: tuple[_Name, ...], made: Pickled) -> bool:
    """Return whether nothing smaller was pickled before a large argument."""
    found = _large(order, made)
    return found == order[: len(found)]


class _Beside:
    """A buffer that travels beside the pickle, and what makes the value of it."""

    __slots__ = ("buffer", "extra", "kind")

    def __init__(self, kind: type, buffer: Any, *extra: str) -> None:
        self.kind = kind
        self.buffer = buffer
        self.extra = extra

    def __reduce__(self) -> tuple[Any, ...]:
        return self.kind, (PickleBuffer(self.buffer), *self.extra)


def _beside(value: str | bytes) -> _Beside:
    """Send a text or bytes beside the pickle: no copy is made of it, and it is recognised by where it is."""
    if isinstance(value, bytes):
        return _Beside(bytes, value)
    if not value.isascii():
        return _Beside(str, value.encode("utf-8", "surrogatepass"), "utf-8", "surrogatepass")
    from skyward.link.address import text_view

    return _Beside(str, text_view(value), "ascii")


def _at(place: _Name, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    if isinstance(place, int):
        return args[place] if place < len(args) else None
    return kwargs.get(place)


def _named(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    import inspect

    try:
        return dict(inspect.signature(function).bind(*args, **kwargs).arguments)
    except (TypeError, ValueError):
        return {**{f"argument {index}": value for index, value in enumerate(args)}, **kwargs}
