"""
Which object is to blame when a call cannot be pickled.

Pickling says "cannot pickle '_thread.lock' object" and no more.
Here the arguments are pickled once again, into nothing, with an eye on the object that pickling stopped at; then the
way from the argument to that object is searched, as the user would write it in Python.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from time import thread_time
from typing import Any, Final, NamedTuple

from skyward.errors import SerializationError
from skyward.link.by_reference import by_reference
from skyward.link.cached import reduce_cached
from skyward.link.capture import captured_names
from skyward.link.described import brief, said, type_name
from skyward.link.opened import refuse_file

_SECONDS: Final = 1.0
_OBJECTS: Final = 10_000

_LEAVES: Final = (type(None), bool, int, float, complex, str, bytes, bytearray, range, types.ModuleType)

_LOCK_HINT: Final = "Create it inside the function; it holds among the calls of one process only."
_CONNECTION_HINT: Final = "Pass what is needed to open it (an address, a path), and open it inside the function."
_HINTS: Final = {
    "_io._IOBase": "Pass the path and open the file inside the function.",
    "_socket.socket": "Pass the address and open the connection inside the function.",
    "_thread.lock": _LOCK_HINT,
    "_thread.RLock": _LOCK_HINT,
    "_thread._local": "Create it inside the function.",
    "builtins.generator": "Pass a list, or annotate the parameter as `Iterator[T]` to have it streamed.",
    "builtins.coroutine": "Await it first and pass the result.",
    "builtins.async_generator": "Collect it first and pass a list.",
    "builtins.frame": "Pass the values that are needed from it.",
    "builtins.traceback": "Pass its text (`traceback.format_exc()`).",
    "builtins.module": "Import it inside the function.",
    "concurrent.futures._base.Executor": "Create it inside the function.",
    "concurrent.futures._base.Future": "Pass its result.",
    "asyncio.futures.Future": "Await it first and pass the result.",
    "mmap.mmap": "Pass the path and map the file inside the function.",
    "select.epoll": "Create it inside the function.",
    "skyward.link.refs.Ref": "Pass the Ref as an argument of a call, or `ref.get()` for the value itself.",
    "skyward.pool.Pool": "No call is sent from a node: return what it needs, and send it from the program.",
    "sqlite3.Connection": _CONNECTION_HINT,
    "sqlite3.Cursor": "Pass the rows (`cursor.fetchall()`).",
    "subprocess.Popen": "Start the process inside the function.",
    "weakref.ReferenceType": "Pass the object itself.",
}
_OTHER_HINT: Final = (
    "Create it inside the function, or give the class that holds it a `__getstate__` that leaves it out."
)
_DEEP_HINT: Final = (
    "Flatten it (a list of nodes with indices, for example), or give its class a `__reduce__` that does."
)


class _Spot(NamedTuple):
    """
    A place in an argument: how to write it, and the function one of whose variables the writing starts from.
    """

    text: str
    start: str
    holder: str

    def step(self, suffix: str) -> _Spot:
        return self._replace(text=self.text + suffix)


def blame(
    error: BaseException,
    *,
    function: str,
    arguments: Mapping[str, object],
    target: Callable[..., object] | None = None,
) -> SerializationError:
    """
    Find the argument, and the object inside it, that cannot be sent.

    The search ends after one second of a processor or 10,000 objects; the message then says what is known by that time.

    Args:
        error: What pickling raised; it becomes the cause of the result.
        function: Name of the function that was called.
        arguments: The values of the call by the name of their parameter.
        target: The function itself, to be searched after the arguments.

    >>> import threading
    >>> str(blame(TypeError(), function="train", arguments={"data": {"lock": threading.Lock()}})).split(".")[0]
    'Argument `data` of `train` cannot be sent to a node: `data["lock"]` is a _thread'
    """
    deadline = thread_time() + _SECONDS
    for name, value in arguments.items():
        found = _stopped_at(value, deadline)
        if found is not None:
            spot = _way_to(found.culprit, value, _Spot(name, name, ""), deadline)
            return _verdict(error, found, f"Argument `{name}` of `{function}`", name, spot)
    if target is not None:
        found = _stopped_at(target, deadline)
        if found is not None:
            spot = _way_to(found.culprit, target, _Spot(function, function, ""), deadline)
            return _verdict(error, found, f"`{function}`", spot.start if spot and spot.holder else None, spot)
    verdict = SerializationError(
        f"The call of `{function}` cannot be sent to a node: {brief(error)}.",
        hint="Look for an argument that holds an open file, a lock or a connection, or that another thread changes.",
    )
    verdict.__cause__ = error
    return verdict


def _verdict(
    error: BaseException, found: _Found, subject: str, argument: str | None, spot: _Spot | None
) -> SerializationError:
    kind, hint = _described(found.culprit), _hint_for(found.culprit)
    if found.deep:
        fault, hint = "it is nested too deeply", _DEEP_HINT
    elif spot is None:
        fault = f"somewhere in it is a {kind}"
    elif spot.holder and spot.text == spot.start:
        fault = f"the variable `{spot.text}` that {spot.holder} is a {kind}"
    elif spot.holder:
        fault = f"`{spot.text}` is a {kind}, and `{spot.start}` is a variable that {spot.holder}"
    elif spot.text == spot.start:
        fault = f"it is a {kind}"
    else:
        fault = f"`{spot.text}` is a {kind}"
    if not found.deep and not _says(error, found.culprit):
        fault += f" ({brief(found.reason)})"
    path = spot.text if spot is not None else argument
    verdict = SerializationError(
        f"{subject} cannot be sent to a node: {fault}.", argument=argument, path=path, hint=hint
    )
    verdict.__cause__ = error
    return verdict


def _says(error: BaseException, culprit: object) -> bool:
    """
    Return whether the reason is the object's type alone, which the message names anyway.
    """
    return isinstance(error, TypeError) and said(error, str) in (
        f"cannot pickle '{type_name(type(culprit))}' object",
        f"cannot pickle {type(culprit).__name__!r} object",
        "",
    )


# Pickling into nothing ------------------------------------------------------------------------------------------------


class _Found(NamedTuple):
    culprit: object
    reason: BaseException
    deep: bool


class _OutOfTimeError(Exception):
    """
    Stop a search whose time is over.
    """


class _Nothing:
    """
    Take a pickle stream and keep none of it.
    """

    def write(self, data: Any) -> int:
        return len(data)


def _stopped_at(value: object, deadline: float) -> _Found | None:
    """
    Return the object at which pickling a value stops, None where it does not, or not in time.
    """
    found = _trial(value, deadline)
    if found is None or found.deep or found.culprit is value:
        return found
    # What failed may also be the holder, after its last part went well; the part alone is then no fault.
    return found if _trial(found.culprit, deadline) is not None else found._replace(culprit=value)


def _trial(value: object, deadline: float) -> _Found | None:
    import cloudpickle

    last: list[object] = [value]

    class Watch(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle has no types
        """
        Pickle, and remember the object last begun.
        """

        def persistent_id(self, obj: object) -> None:
            last[0] = obj
            if thread_time() > deadline:
                raise _OutOfTimeError

        def reducer_override(self, obj: object) -> Any:
            refuse_file(obj)
            return reduce_cached(obj) or super().reducer_override(obj)

    try:
        # Buffers go nowhere: a large array costs nothing here.
        Watch(_Nothing(), protocol=5, buffer_callback=lambda buffer: None).dump(value)
    except _OutOfTimeError:
        return None
    except Exception as error:
        if isinstance(error.__cause__ or error.__context__, _OutOfTimeError):
            return None
        deep = isinstance(error, RecursionError) or isinstance(error.__cause__, RecursionError)
        return _Found(last[0], error, deep)
    return None


# The way to an object -------------------------------------------------------------------------------------------------


def _way_to(culprit: object, value: object, spot: _Spot, deadline: float) -> _Spot | None:
    """
    Search the shortest way from a value to an object inside it.
    """
    if culprit is value:
        return spot
    waiting = deque([(value, spot)])
    # Values made on the way are kept, so that no id is given twice.
    seen = {id(value): value}
    while waiting:
        holder, at = waiting.popleft()
        try:
            for part, there in _inside(holder, at):
                if part is culprit:
                    return there
                if isinstance(part, _LEAVES) or id(part) in seen:
                    continue
                if len(seen) >= _OBJECTS or thread_time() > deadline:
                    return None
                seen[id(part)] = part
                waiting.append((part, there))
        except Exception:
            # Properties and descriptors of the user's may raise anything; what they hide is not found this way.
            continue
    return None


def _inside(value: Any, spot: _Spot) -> Iterator[tuple[object, _Spot]]:
    """
    Yield what a value holds, as far as pickling it would pickle that too.
    """
    if isinstance(value, types.FunctionType | type) and by_reference(value):
        return
    if isinstance(value, dict):
        for place, (key, item) in enumerate(list(value.items())):
            yield item, spot.step(f"[{_key(key)}]")
            if not isinstance(key, _LEAVES):
                yield key, spot._replace(text=f"list({spot.text})[{place}]")
    elif isinstance(value, list | deque | tuple):
        names = getattr(value, "_fields", None) if isinstance(value, tuple) else None
        for place, item in enumerate(list(value)):
            yield item, spot.step(f".{names[place]}" if names else f"[{place}]")
    elif isinstance(value, set | frozenset):
        for place, item in enumerate(list(value)):
            yield item, spot._replace(text=f"list({spot.text})[{place}]")
    if isinstance(value, types.FunctionType):
        yield from _inside_function(value, spot)
    elif isinstance(value, types.MethodType):
        yield value.__self__, spot.step(".__self__")
        yield value.__func__, spot.step(".__func__")
    elif isinstance(value, type):
        for name, item in list(vars(value).items()):
            yield item, spot._replace(text=f"{value.__qualname__}.{name}")
        for base in value.__bases__:
            yield base, spot._replace(text=base.__qualname__)
    else:
        yield from _inside_instance(value, spot)


def _inside_function(fn: types.FunctionType, spot: _Spot) -> Iterator[tuple[object, _Spot]]:
    name = fn.__name__
    for variable, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=False):
        try:
            yield cell.cell_contents, _Spot(variable, variable, f"`{name}` closes over")
        except ValueError:
            continue
    for variable in captured_names(fn.__code__):
        if variable in fn.__globals__:
            yield fn.__globals__[variable], _Spot(variable, variable, f"`{name}` uses as a global")
    positional = fn.__code__.co_varnames[: fn.__code__.co_argcount]
    defaults = fn.__defaults__ or ()
    for variable, value in zip(positional[len(positional) - len(defaults) :], defaults, strict=False):
        yield value, _Spot(variable, variable, f"`{name}` has a default for")
    for variable, value in (fn.__kwdefaults__ or {}).items():
        yield value, _Spot(variable, variable, f"`{name}` has a default for")
    for attribute, value in list(vars(fn).items()):
        yield value, spot.step(f".{attribute}")


def _inside_instance(value: Any, spot: _Spot) -> Iterator[tuple[object, _Spot]]:
    kind = type(value)
    for name, item in list(getattr(value, "__dict__", {}).items()):
        yield item, spot.step(f".{name}")
    for cls in kind.__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else tuple(slots):
            private = name.startswith("__") and not name.endswith("__")
            item = getattr(value, f"_{cls.__name__.lstrip('_')}{name}" if private else name, None)
            yield item, spot.step(f".{name}")
    # What `functools.partial`, `__getstate__` and `__reduce__` hand out, where that is no attribute.
    for name in ("func", "args", "keywords", "__func__", "__wrapped__", "fget", "fset", "fdel"):
        if kind.__module__ in ("builtins", "functools") and hasattr(value, name):
            yield getattr(value, name), spot.step(f".{name}")
    if not by_reference(kind):
        yield kind, spot._replace(text=kind.__qualname__)
    if kind.__module__ == "numpy" and getattr(getattr(value, "dtype", None), "hasobject", False):
        for place, item in enumerate(value.flat):
            yield item, spot.step(f".flat[{place}]")
    elif kind.__module__ not in ("builtins", "functools"):
        reduced = value.__reduce_ex__(5)
        yield from _inside_reduced(reduced, spot) if isinstance(reduced, tuple) else ()


def _inside_reduced(reduced: tuple[Any, ...], spot: _Spot) -> Iterator[tuple[object, _Spot]]:
    _, arguments, state = (*reduced, None)[:3]
    for item in arguments or ():
        yield item, spot
    for part in state if isinstance(state, tuple) else (state,):
        if isinstance(part, dict):
            for name, item in part.items():
                yield (
                    item,
                    spot.step(f".{name}" if isinstance(name, str) and name.isidentifier() else f"[{_key(name)}]"),
                )
        else:
            yield part, spot


# Words ----------------------------------------------------------------------------------------------------------------


def _key(key: object) -> str:
    if isinstance(key, str):
        import json

        return _cut(json.dumps(key, ensure_ascii=False), 60)
    return _cut(repr(key), 60)


def _described(value: Any) -> str:
    """
    Name the type of an object, with the file's name where it is a file.
    """
    kind = type(value)
    if isinstance(value, types.FunctionType):
        return f"function `{value.__qualname__}`"
    if isinstance(value, type):
        return f"class `{value.__qualname__}`"
    if any(cls.__name__ == "_IOBase" for cls in kind.__mro__):
        try:
            return f"{type_name(kind)} ({'closed' if value.closed else 'open'} file {value.name!r})"
        except Exception:
            return type_name(kind)
    return type_name(kind)


def _hint_for(value: object) -> str:
    hints = (_HINTS.get(f"{cls.__module__}.{cls.__qualname__}") for cls in type(value).__mro__)
    return next((hint for hint in hints if hint is not None), _OTHER_HINT)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
