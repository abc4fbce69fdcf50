"""
Reduce values on a node to what is opened as data: plain parts, and functions of ours that put them together.

Libraries pickle some of their values as calls of functions that can do anything, such as PyTorch its storages, or that
trust their input, such as Arrow its buffers.
Those are taken apart here, into parts whose makers check them.
"""

from __future__ import annotations

import importlib
from typing import Any, Final

from skyward.link.by_reference import by_reference

__all__ = ["named", "reduce_as_data"]

_REDUCERS: Final = {"torch": "tensors", "pandas": "tables", "pyarrow": "arrow"}


def reduce_as_data(obj: Any) -> tuple[Any, ...] | None:
    """
    Reduce a value to what is opened as data; None leaves it to its own pickling.

    A class that is no attribute of a module, such as one of the program, travels as its name: the client has it.

    Args:
        obj: Anything.
    """
    kind = type(obj)
    if issubclass(kind, type):
        return None if by_reference(obj) else (named, (str(obj.__module__), str(obj.__qualname__)))
    library = _REDUCERS.get(str(kind.__module__).partition(".")[0])
    if library is None:
        return None
    reduced: tuple[Any, ...] | None = importlib.import_module(f"skyward.link.data.{library}").reduce(obj)
    return reduced


def named(module: str, name: str) -> Any:
    """
    Name a class in a pickle; the client looks it up among those that are listed there.

    Raises:
        TypeError: If it is called, as by a pickle that is opened where no class is listed.
    """
    raise TypeError(f"{module}.{name} is a class that only the client has")
