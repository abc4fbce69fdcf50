"""
Exceptions whose class is here and which cannot be rebuilt: an exception that is of that class, and a `RemoteError`.

What a node sends of such a failure is its class by name, and texts.
The class is taken only from what is loaded here: nothing is imported, because `except` can name nothing else either.
Nothing of the class's own making runs but what an `except` and a traceback ask for, and where that fails the failure
stays a plain `RemoteError`.
"""

from __future__ import annotations

import sys
from typing import Any, cast

from skyward.errors import RemoteError
from skyward.plain import plain_text

__all__ = ["both"]


def both(remote: RemoteError, message: str) -> RemoteError:
    """
    Return an exception that is also of the class that a failure had on its node; the error itself where there is none.

    Args:
        remote: The placeholder of the exception.
        message: The exception's own text.

    >>> class Refused(Exception):
    ...     def __init__(self, code, lock): ...
    >>> sys.modules["refusing"] = type(sys)("refusing")
    >>> sys.modules["refusing"].Refused = Refused
    >>> error = both(RemoteError("refusing.Refused: 7", type_name="refusing.Refused"), "7")
    >>> isinstance(error, Refused), isinstance(error, RemoteError), str(error)
    (True, True, '7')
    """
    try:
        found = _loaded(remote.type_name)
        return remote if found is None else _made(found, message, dict(remote.__dict__))
    except Exception:
        return remote


def _loaded(type_name: str) -> type[BaseException] | None:
    """Find a class by the name that its failure bore, among the modules that are loaded."""
    parts = type_name.split(".")
    if "<locals>" in parts:
        return None
    for at in range(len(parts) - 1, -1, -1):
        found: Any = sys.modules.get(".".join(parts[:at]) or "builtins")
        for part in parts[at:]:
            found = None if found is None else vars(found).get(part)
        if isinstance(found, type):
            usual = issubclass(found, Exception) and not issubclass(found, BaseExceptionGroup)
            return cast("type[BaseException]", found) if usual and not issubclass(found, RemoteError) else None
    return None


def _made(found: type[BaseException], message: str, state: dict[str, Any]) -> RemoteError:
    named = {"__module__": found.__module__, "__qualname__": found.__qualname__, "__doc__": found.__doc__}
    kind: Any = type(found.__name__, (RemoteError, found), {**named, "__init__": _stays, "__reduce__": _reduced})
    # Of the classes that Python itself comes with; one of the user's may want other arguments.
    new = next(base for base in kind.__mro__ if base.__module__ == "builtins").__new__
    error = new(kind, message)
    BaseException.__setattr__(error, "args", (message,))
    error.__dict__.update(state, message=message)
    # Both were to be had from the user's class, where it has properties of these names.
    if not isinstance(error, RemoteError) or (error.message, error.type_name) != (message, state["type_name"]):
        raise TypeError(f"{found} hides what a RemoteError says")
    str(error)
    return error


def _stays(self: object, *args: object, **kwargs: object) -> None:
    """Do nothing; Python calls this of an error that is made by its class."""


def _reduced(self: RemoteError) -> tuple[Any, ...]:
    remote = RemoteError("", type_name=self.type_name)
    remote.__dict__.update({name: value for name, value in self.__dict__.items() if name != "__notes__"})
    return both, (remote, plain_text(self.message))
