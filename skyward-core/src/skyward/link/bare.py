"""
Exceptions without their `__init__`: pickling calls that with `args`, which are not its arguments where it has its own.

Half of all libraries have exceptions like that: `__init__(self, response)` that hands a text on to `Exception`.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Collection
from typing import Any

__all__ = ["bare", "heavy", "reduced"]

_HEAP = 1 << 9
"""Flag of classes that are not built in."""


def reduced(exc: BaseException, left_out: Collection[str] = ()) -> tuple[Any, ...] | None:
    """
    Return how an exception is rebuilt without its `__init__`; None for one that pickles by itself.

    Args:
        exc: The exception.
        left_out: Attributes that do not travel.

    >>> class Refused(Exception):
    ...     def __init__(self, code, host):
    ...         super().__init__(f"{host} says {code}")
    ...         self.code = code
    >>> make, arguments, state = reduced(Refused(404, "here"))
    >>> again = make(*arguments)
    >>> again.__dict__.update(state)
    >>> again, again.code
    (Refused('here says 404'), 404)
    """
    kind = type(exc)
    own = kind.__reduce__ is not BaseException.__reduce__ or kind.__reduce_ex__ is not object.__reduce_ex__
    # What is built in and has fields of its own is set up by a constructor that knows them.
    built_in = next(each for each in kind.__mro__ if not each.__flags__ & _HEAP)
    if own or built_in.__basicsize__ != Exception.__basicsize__ or not hasattr(kind.__init__, "__code__"):
        return None
    # Its notes travel separately.
    state = {name: value for name, value in vars(exc).items() if name not in left_out and name != "__notes__"}
    return bare, (kind, exc.args), state


def bare(kind: type[BaseException], args: tuple[Any, ...]) -> BaseException:
    """
    Make an exception as `BaseException` does.

    Args:
        kind: Its class.
        args: Its `args`.
    """
    return BaseException.__new__(kind, *args)


def heavy(exc: BaseException, pickler: Callable[[io.BytesIO], Any]) -> list[str]:
    """
    List the attributes of an exception that cannot be pickled.

    Args:
        exc: The exception.
        pickler: Makes what pickles into a sink.
    """
    found = []
    for name, value in vars(exc).items():
        try:
            pickler(io.BytesIO()).dump(value)
        except Exception:  # broad, because a user's `__reduce__` may raise anything
            found.append(name)
    return found
