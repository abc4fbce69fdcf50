"""
What of the standard library may be in a pickle that is opened as data.
"""

from __future__ import annotations

import builtins
import collections
import datetime as dt
import decimal
import enum
import fractions
import pathlib
import re
import types
import uuid
import zoneinfo
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Final

from skyward import errors
from skyward.link.data.maker import NOTHING, Callee, Maker, Refused, Shelf, is_light, malformed

__all__ = ["PASSED_OVER", "assign", "is_zone", "known_zones", "shelf"]

_NUMBER: Final = re.compile(r"[+-]?\d{1,4000}(/\d{1,4000})?")
_ZONE: Final = re.compile(r"[A-Za-z0-9_+-]{1,32}(/[A-Za-z0-9_+-]{1,32}){0,3}")
_ZONES: Final = Callee("zoneinfo.ZoneInfo._unpickle")
_PATHS: Final = ("pathlib", "pathlib._local")
_SINGLE: Final[dict[str, Any]] = {"None": None, "Ellipsis": Ellipsis, "NotImplemented": NotImplemented}
# Skyward's errors are made of their message and their facts.
_ERRORS: Final = "skyward.errors"
PASSED_OVER: Final = frozenset({"__notes__", "__skyward_partial__", "name_from"})
"""
Attributes of an error that are left out.

Notes travel beside it, and what was done until then is the client's to say.
Where an ImportError has the last one, Python imports the module that it names when it is printed, and looks what was
meant.
"""


def assign(made: Any, facts: Any) -> None:
    """
    Set attributes of an object where it keeps them, past whatever its class does when one is set.

    Args:
        made: The object.
        facts: Its attributes by name.

    Raises:
        ValueError: If it has no room for one, or one is not the object's own to have.
    """
    if type(facts) is not dict:
        malformed("attributes that are no dict")
    for name, value in facts.items():
        if isinstance(made, BaseException) and name in PASSED_OVER:
            continue
        if type(name) is not str or (name.startswith("__") and name.endswith("__")):
            malformed(f"an attribute {name!r}")
        for kind in type(made).__mro__:
            slot = kind.__dict__.get(name)
            if isinstance(slot, types.MemberDescriptorType):
                slot.__set__(made, value)
                break
        else:
            object.__getattribute__(made, "__dict__")[name] = value


def is_zone(name: Any) -> bool:
    """
    Return whether something is the name of a time zone, and of no other file.

    >>> is_zone("Europe/Berlin"), is_zone("../passwd")
    (True, False)
    """
    return type(name) is str and _ZONE.fullmatch(name) is not None


def _checked(make: Callable[..., Any], *kinds: Any, least: int | None = None) -> Maker:
    """Return a maker that calls a class with arguments of these types, and no others."""

    def call(*args: Any) -> Any:
        if not (len(kinds) if least is None else least) <= len(args) <= len(kinds):
            malformed(f"{len(args)} arguments of {make.__name__}")
        for value, kind in zip(args, kinds, strict=False):
            if not isinstance(value, kind):
                malformed(f"a {type(value).__name__} among the arguments of {make.__name__}")
        return make(*args)

    return Maker(call)


def _path(kind: type[pathlib.PurePath]) -> Maker:
    def call(*parts: Any) -> Any:
        if not all(type(part) is str for part in parts):
            malformed(f"a {kind.__name__} of other parts than text")
        return kind(*parts)

    return Maker(call)


def _fraction(*args: Any) -> fractions.Fraction:
    # Of a text with an exponent it would make a number of so many digits.
    text = "/".join(str(part) for part in args if type(part) in (int, str))
    if not _NUMBER.fullmatch(text):
        malformed("a fraction of other parts than numbers")
    return fractions.Fraction(text)


def _type_of(value: Any) -> Any:
    if value is None or value is Ellipsis or value is NotImplemented:
        return type(value)
    raise Refused("builtins.type")


def _builtin_type(name: Any) -> Any:
    # So does cloudpickle name the types that have no name of their own.
    if name == "SimpleNamespace":
        return types.SimpleNamespace
    raise Refused(f"types.{name}")


def _member(kind: Any, name: Any) -> Any:
    """Return a member of an enumeration, and what makes a time zone, which are pickled as attributes of a class."""
    if kind is zoneinfo.ZoneInfo and name == "_unpickle":
        return _ZONES
    if isinstance(kind, type) and issubclass(kind, enum.Enum) and type(name) is str and name in kind.__members__:
        return kind.__members__[name]
    raise Refused("builtins.getattr")


def _default_dict(*args: Any) -> Any:
    if len(args) > 1 or (args and args[0] is not None and not isinstance(args[0], type)):
        raise Refused("a defaultdict whose default is made by a function")
    return collections.defaultdict(*args)


def _counter(counts: Any = None) -> Any:
    if counts is not None and type(counts) is not dict:
        malformed("a Counter of no counts")
    made: Any = collections.Counter()
    dict.update(made, counts or {})
    return made


def _ordered_state(made: Any, state: Any) -> Any:
    # PyTorch keeps the versions of a state's modules beside it.
    if type(state) is not dict or state.keys() - {"_metadata"}:
        malformed("attributes of an OrderedDict")
    made.__dict__.update(state)
    return made


def _namespace(made: Any, state: Any) -> Any:
    assign(made, state)
    return made


def _uuid_state(made: Any, state: Any) -> Any:
    if type(state) is not dict or type(state.get("int")) is not int or not 0 <= state["int"] < 1 << 128:
        malformed("a UUID without its number")
    return uuid.UUID(int=state["int"])


def _bare(kind: type) -> Callable[[], Any]:
    def call() -> Any:
        # With arguments it would take unchecked keys.
        return kind()

    return call


def _new(kind: type) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
    def new(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if args or kwargs:
            malformed(f"arguments of {kind.__name__}")
        made: Any = kind.__new__(kind)  # type: ignore[call-overload]  # of a class that needs no arguments
        return made

    return new


def _zone(key: Any, *_: Any) -> Any:
    if not is_zone(key) or key not in known_zones():
        malformed("a time zone that is not there")
    return zoneinfo.ZoneInfo(key)


@cache
def known_zones() -> frozenset[str]:
    """Return the names of the time zones that there are; one that is none would be looked for as a module."""
    return frozenset(zoneinfo.available_timezones())


# Errors.


def _error(kind: type[Exception]) -> Maker:
    def call(*args: Any) -> Exception:
        # It is printed without further checks.
        if not is_light(args):
            raise Refused(f"a {kind.__name__} of more parts than can be printed")
        return kind(*args)

    def state(made: Any, facts: Any) -> Any:
        if facts is None:
            return made
        if type(facts) is not dict:
            malformed("attributes that are no dict")
        if not is_light(facts):
            raise Refused(f"a {kind.__name__} of more parts than can be printed")
        for name, value in facts.items():
            if name in PASSED_OVER:
                continue
            if type(name) is not str or name.startswith("__"):
                malformed(f"an attribute {name!r} of an error")
            setattr(made, name, value)
        return made

    return Maker(call, None, state)


def _of_ours(kind: Any, message: Any, facts: Any) -> Any:
    if not isinstance(kind, type) or not issubclass(kind, errors.SkywardError) or kind.__module__ != _ERRORS:
        malformed("an error of Skyward's that is none")
    if type(message) is not str or type(facts) is not dict or type(facts.get("hint")) not in (str, type(None)):
        malformed("an error of Skyward's without its facts")
    made = kind(message)
    assign(made, facts)
    made.message = message
    return made


def _builtin_errors() -> Iterable[tuple[str, str, type[Exception], Maker]]:
    for name, kind in vars(builtins).items():
        if isinstance(kind, type) and issubclass(kind, Exception):
            yield ("builtins", name, kind, _error(kind))


def _own_errors() -> Iterable[tuple[str, str, type[Exception], Maker]]:
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, errors.SkywardError):
            yield (_ERRORS, name, kind, NOTHING)


def shelf() -> Shelf:
    """Return the names of the standard library, and of Skyward's errors."""
    values = (int, float, bool, str, bytes, list, tuple, dict, set, frozenset)
    paths = (pathlib.PurePosixPath, pathlib.PureWindowsPath, pathlib.PosixPath, pathlib.WindowsPath)
    zone, delta = dt.tzinfo, dt.timedelta
    return Shelf.of(
        *(("builtins", kind.__name__, kind, NOTHING) for kind in values),
        *(("builtins", name, value, NOTHING) for name, value in _SINGLE.items() if value is not None),
        ("builtins", "bytearray", bytearray, _checked(bytearray, bytes, least=0)),
        ("builtins", "complex", complex, _checked(complex, float, float)),
        ("builtins", "range", range, _checked(range, int, int, int, least=1)),
        ("builtins", "slice", slice, _checked(slice, *(int | None,) * 3)),
        ("builtins", "object", object, Maker(_bare(object), _new(object))),
        ("builtins", "memoryview", memoryview, _checked(memoryview, bytes | bytearray | memoryview)),
        ("builtins", "type", None, Maker(_type_of)),
        ("cloudpickle.cloudpickle", "_builtin_type", None, Maker(_builtin_type)),
        ("builtins", "getattr", None, Maker(_member)),
        ("collections", "OrderedDict", collections.OrderedDict,
         Maker(_bare(collections.OrderedDict), _new(collections.OrderedDict), _ordered_state)),
        ("collections", "defaultdict", collections.defaultdict, Maker(_default_dict)),
        ("collections", "Counter", collections.Counter, Maker(_counter)),
        ("collections", "deque", collections.deque, _checked(collections.deque, list | tuple, int | None, least=0)),
        ("types", "SimpleNamespace", types.SimpleNamespace, Maker(_bare(types.SimpleNamespace), None, _namespace)),
        ("datetime", "date", dt.date, _checked(dt.date, bytes)),
        ("datetime", "time", dt.time, _checked(dt.time, bytes, zone, least=1)),
        ("datetime", "datetime", dt.datetime, _checked(dt.datetime, bytes, zone, least=1)),
        ("datetime", "timedelta", delta, _checked(delta, int, int, int)),
        ("datetime", "timezone", dt.timezone, _checked(dt.timezone, delta, str, least=1)),
        ("zoneinfo", "ZoneInfo", zoneinfo.ZoneInfo, NOTHING),
        ("zoneinfo", "ZoneInfo._unpickle", _ZONES, Maker(_zone)),
        ("decimal", "Decimal", decimal.Decimal, _checked(decimal.Decimal, str)),
        ("fractions", "Fraction", fractions.Fraction, Maker(_fraction)),
        ("uuid", "UUID", uuid.UUID, Maker(None, _new(uuid.UUID), _uuid_state)),
        *((_PATHS, kind.__name__, kind, _path(kind)) for kind in paths),
        *_builtin_errors(),
        *_own_errors(),
        (_ERRORS, "_rebuild", None, Maker(_of_ours)),
    )  # fmt: skip
