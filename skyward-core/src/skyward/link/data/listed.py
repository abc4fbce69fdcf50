"""
Classes that the user lists, and Skyward's own values: made by `__new__`, and given their attributes one by one.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterable
from typing import Any

from skyward.link.data.maker import Maker, Refused, Shelf, is_light, malformed
from skyward.link.data.standard import assign

__all__ = ["listed", "own"]


def own() -> Shelf:
    """Return the names of Skyward's own values: places and events."""
    from skyward.link.remote_traceback import RemoteTraceback
    from skyward.model.events.event import ALL
    from skyward.model.instances.instance import AcceleratorInfo, InstanceInfo, NetworkInfo, PeerInfo

    kinds = (InstanceInfo, AcceleratorInfo, NetworkInfo, PeerInfo, *ALL)
    return Shelf.of(
        *((kind.__module__, kind.__qualname__, kind, Maker(None, _new(kind), _assigned)) for kind in kinds),
        (RemoteTraceback.__module__, RemoteTraceback.__qualname__, RemoteTraceback, Maker(_traceback)),
    )


def listed(classes: Iterable[type]) -> Shelf:
    """
    Return the names of classes that the user lists.

    Args:
        classes: The classes; no subclass of one is meant by it.
    """
    kinds = tuple(classes)
    return Shelf.of(*((kind.__module__, kind.__qualname__, kind, _maker(kind, frozenset(kinds))) for kind in kinds))


def _maker(kind: type, kinds: frozenset[type]) -> Maker:
    return Maker(_call(kind), _new(kind), _state(kind, kinds))


def _new(kind: type) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
    def new(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        made = kind.__new__(kind, *args, **kwargs)
        if type(made) is not kind:
            malformed(f"a {kind.__qualname__} that is none")
        return made

    return new


def _call(kind: type) -> Callable[..., Any] | None:
    """Return what stands for a call of the class, which would run its `__init__`; None where nothing does."""
    if issubclass(kind, enum.Enum):
        return _member_of(kind)
    if issubclass(kind, Exception):
        return _error_of(kind)
    return None


def _error_of(kind: type[Exception]) -> Callable[..., Exception]:
    def error(*args: Any) -> Exception:
        if not is_light(args):
            raise Refused(f"a {kind.__qualname__} of more parts than can be printed")
        # `__new__` keeps the arguments, by which an exception is printed.
        return kind.__new__(kind, *args)

    return error


def _member_of(kind: type[enum.Enum]) -> Callable[[Any], enum.Enum]:
    def member(value: Any) -> enum.Enum:
        # It is looked up by its hash.
        if not all(isinstance(part, str | bytes | int | float | None) for part in _parts_of(value)):
            malformed(f"a member of {kind.__qualname__} that is none")
        return kind(value)

    return member


def _parts_of(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _state(kind: type, kinds: frozenset[type]) -> Callable[[Any, Any], Any]:
    """Return how an object gets its state: as its class says if that class is listed, else attribute by attribute."""
    owner = next((base for base in kind.__mro__ if "__setstate__" in vars(base)), None)
    if owner is None or owner is BaseException or _generated(owner):
        return _assigned
    if owner not in kinds:

        def refuse(made: Any, state: Any) -> Any:
            raise Refused(f"a state of {kind.__qualname__}, set by {owner.__module__}.{owner.__qualname__}")

        return refuse
    set_state: Callable[[Any, Any], object] = vars(owner)["__setstate__"]

    def give(made: Any, state: Any) -> Any:
        set_state(made, state)
        return made

    return give


def _generated(owner: type) -> bool:
    """Return whether a class has `__setstate__` from attrs, from a dataclass with slots, or from `SkywardEvent`."""
    from skyward.model.events.event import SkywardEvent

    where = getattr(vars(owner)["__setstate__"], "__module__", "") or ""
    return owner is SkywardEvent or where.split(".")[0] in ("attr", "attrs", "dataclasses")


def _assigned(made: Any, state: Any) -> Any:
    if type(state) is list and dataclasses.is_dataclass(made):
        names = [field.name for field in dataclasses.fields(made)]
        if len(names) != len(state):
            malformed(f"a {type(made).__qualname__} of other fields")
        assign(made, dict(zip(names, state, strict=True)))
    elif type(state) is tuple and hasattr(made, "__attrs_attrs__"):
        assign(made, dict(zip((field.name for field in made.__attrs_attrs__), state, strict=False)))
    else:
        # The object's `__dict__`, and its slots.
        for facts in state if type(state) is tuple and len(state) == 2 else (state,):
            if facts is not None:
                assign(made, facts)
    return made


def _traceback(text: Any) -> Any:
    from skyward.link.remote_traceback import RemoteTraceback

    if type(text) is not str:
        malformed("a traceback that is no text")
    return RemoteTraceback(text)
