"""
Which names a pickle may hold that is opened as data: some of each library, and the classes that the user lists.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any, Final

from skyward.link.data import listed, ref_data as refs, standard, views
from skyward.link.data.maker import Callee, Maker, Refused, Shelf, malformed
from skyward.model.spec.trust_setting import Data

__all__ = ["DataNames", "names_of"]

# The library that a module is of, and the module of ours that knows it; both are loaded when a pickle names them.
_LIBRARIES: Final = {
    "numpy": ("numpy", "arrays"),
    "pytz": ("pytz", "zones"),
    "torch": ("torch", "tensors"),
    "skyward.link.data.arrow": ("pyarrow", "arrow"),
    "skyward.link.data.tables": ("pandas", "tables"),
    "skyward.link.data.tensors": ("torch", "tensors"),
}
_NAMED_IN: Final = "skyward.link.data.reducing"
_NAMED: Final = Callee(f"{_NAMED_IN}.named")


class DataNames:
    """
    Say which names a pickle may hold.

    Args:
        classes: Classes that the user lists.

    >>> DataNames().find("builtins", "eval")
    Traceback (most recent call last):
    ...
    skyward.link.data.maker.Refused: builtins.eval
    """

    def __init__(self, classes: Iterable[type] = ()) -> None:
        self._found: dict[tuple[str, str], Any] = {(_NAMED_IN, "named"): _NAMED}
        self._makers: dict[Any, Maker] = {_NAMED: Maker(self._named)}
        self._loaded: set[str] = set()
        # What is always there last: no class that is listed takes the place of another.
        for shelf in (listed.listed(classes), _always()):
            self._add(shelf)

    def find(self, module: str, name: str) -> Any:
        """
        Return what stands for a name.

        Raises:
            Refused: If it is not allowed.
        """
        if (found := self._found.get((module, name))) is not None:
            return found
        library, ours = _LIBRARIES.get(module if module.startswith("skyward.") else module.partition(".")[0], ("", ""))
        if ours and ours not in self._loaded and _is_there(library):
            self._loaded.add(ours)
            self._add(_of_library(ours))
            return self.find(module, name)
        raise Refused(f"{module}.{name}")

    def maker(self, found: Any) -> Maker | None:
        """Return what may be done with a class or a callee; None for nothing."""
        return self._makers.get(found)

    def _add(self, shelf: Shelf) -> None:
        self._found.update(shelf.named)
        self._makers.update(shelf.makers)

    def _named(self, module: Any, name: Any) -> Any:
        """Return a class of the program by its name."""
        if type(module) is not str or type(name) is not str:
            malformed("a class without a name")
        found = self.find(module, name)
        if not isinstance(found, type):
            raise Refused(f"{module}.{name}")
        return found


@lru_cache(maxsize=64)
def names_of(trust: Data) -> DataNames:
    """
    Return the names that may be in a pickle which is opened as data.

    Args:
        trust: Says which classes the user lists.
    """
    return DataNames(trust.classes)


@cache
def _always() -> Shelf:
    shelves = (standard.shelf(), listed.own(), views.shelf(), refs.shelf())
    named = {name: found for shelf in shelves for name, found in shelf.named.items()}
    return Shelf(named, {found: maker for shelf in shelves for found, maker in shelf.makers.items()})


@cache
def _of_library(ours: str) -> Shelf:
    shelf: Shelf = importlib.import_module(f"skyward.link.data.{ours}").shelf()
    return shelf


@cache
def _is_there(library: str) -> bool:
    # To look for what is not installed reads folders each time.
    try:
        importlib.import_module(library)
    except ImportError:
        return False
    return True
