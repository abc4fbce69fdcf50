"""
Objects of decorated classes: made once in a worker process, at the first call there, and kept until it ends.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from pickle import PickleBuffer
from typing import Any

from attrs import frozen

from skyward.errors import SerializationError, StateLostError
from skyward.node.task import runtime, task_context

__all__ = ["ObjectRecipe", "bound", "call"]


@frozen
class ObjectRecipe:
    """
    Say how an object is made.

    Args:
        key: Names it, in all processes.
        name: What the user calls its class.
        parts: The pickle of the class and of what it is made with, and its large buffers.
        lasts: Whether it is an error that one which was made is gone.
    """

    key: str
    name: str
    parts: tuple[bytes, ...]
    lasts: bool

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        # What is large is left out of the pickle where that is possible.
        parts: tuple[Any, ...] = tuple(map(PickleBuffer, self.parts)) if protocol >= 5 else self.parts
        return _recipe, (self.key, (self.name, parts, self.lasts))


class _ObjectPlace:
    """Where an object is in this process, or is to be."""

    def __init__(self) -> None:
        # A class whose objects make their own first call of each other would otherwise wait for itself.
        self.lock = threading.RLock()
        self.made: tuple[Any, ...] = ()
        self.tried = False


_lock = threading.Lock()
_places: dict[str, _ObjectPlace] = {}
_recipes: dict[str, ObjectRecipe] = {}


def call(recipe: ObjectRecipe, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """
    Call a method of an object, which is made now if this process does not have it.

    Args:
        recipe: How it is made.
        method: Name of the method.
        args: Positional arguments.
        kwargs: Keyword arguments.

    Raises:
        StateLostError: If it was made in a process that has ended, and is not to be rebuilt.
        Exception: What making it or the method raises.
    """
    found = getattr(_object(recipe), method)
    decorated = getattr(found, "__func__", found)
    if hasattr(decorated, "local"):
        # It is run here, and not sent anywhere.
        return decorated.local(*((found.__self__,) if decorated is not found else ()), *args, **kwargs)
    return found(*args, **kwargs)


def bound(recipe: ObjectRecipe, name: str) -> Callable[..., Any]:
    """
    Make what is sent for a method: it captures how the object is made, and nothing that can change.

    Args:
        recipe: How the object is made.
        name: Name of the method.
    """

    def method(*args: Any, **kwargs: Any) -> Any:
        return call(recipe, name, args, kwargs)

    method.__name__, method.__qualname__ = name, f"{recipe.name}.{name}"
    return method


def _object(recipe: ObjectRecipe) -> Any:
    with _lock:
        place = _places.setdefault(recipe.key, _ObjectPlace())
    with place.lock:
        if not place.made:
            context = task_context.current()
            if recipe.lasts and not place.tried and context is not None and context.held:
                raise StateLostError(
                    f"The {recipe.name} of this worker is gone: the process that held it has ended.",
                    node=context.info().node,
                    hint=f'Make a new {recipe.name}(...), or say on_loss="rebuild" if it may be rebuilt.',
                )
            place.tried = True
            place.made = (_made(recipe),)
        return place.made[0]


def _made(recipe: ObjectRecipe) -> Any:
    stream, *buffers = recipe.parts
    try:
        kind, args, kwargs = pickle.loads(stream, buffers=[bytearray(buffer) for buffer in buffers])
    except ModuleNotFoundError as error:
        raise SerializationError(
            f"{recipe.name} cannot be made: the node has no module {error.name!r}.",
            hint="Add it to Image(pip=[...]) if it is a package, or to Image(includes=[...]) if it is yours.",
        ) from error
    try:
        return kind.plain(*args, **kwargs)
    except BaseException as error:
        info = runtime.instance_info()
        error.add_note(f"raised while {recipe.name}(...) was made on node {info.node}; the next call tries again")
        raise


def _recipe(key: str, rest: tuple[str, tuple[Any, ...], bool]) -> ObjectRecipe:
    """Return the recipe that this process has of an object: each method brings one along."""
    with _lock:
        known = _recipes.get(key)
        if known is None:
            name, parts, lasts = rest
            known = _recipes[key] = ObjectRecipe(key, name, tuple(map(bytes, parts)), lasts)
        return known
