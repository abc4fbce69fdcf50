"""
What an opened pickle may name: for each name its stand-in, and what may be done with that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, NoReturn

__all__ = ["NOTHING", "Callee", "Maker", "Refused", "Shelf", "is_light", "malformed"]


class Refused(Exception):
    """
    Report something that is not opened as data.

    Args:
        name: What it is: the name of a class or function, or words.
    """

    @property
    def name(self) -> str:
        """Return what is refused."""
        return str(self.args[0])

    @property
    def listing(self) -> str:
        """
        Return what would be written to have it opened, if it is a class.

        >>> Refused("project.results.Result").listing
        'trust=sky.Data(Result)'
        """
        last = self.name.rpartition(".")[2]
        return f"trust=sky.Data({last if last.isidentifier() and last[:1].isupper() else 'MyResult'})"


class Callee:
    """
    Stand for a function in a pickle that is being opened; it holds nothing and does nothing.

    Args:
        name: What the function is called.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"<{self._name}, which was not called>"


class Maker(NamedTuple):
    """
    Say what may be done with a class, or with what stands for a function.

    Args:
        call: Makes the object of the arguments that a pickle calls it with.
        new: Makes the object of the positional and keyword arguments that a pickle hands to `__new__`.
        state: Takes an object and its state, and returns the object in that state; the same one or another.
    """

    call: Callable[..., Any] | None = None
    new: Callable[[tuple[Any, ...], dict[str, Any]], Any] | None = None
    state: Callable[[Any, Any], Any] | None = None


_PRINTED_PARTS: Final = 100_000

NOTHING: Final = Maker()
"""For classes that may be named, as a value is, and no more."""


class Shelf(NamedTuple):
    """
    Hold names of one library.

    Args:
        named: What stands for each module and name.
        makers: What may be done with classes and callees.
    """

    named: Mapping[tuple[str, str], Any]
    makers: Mapping[Any, Maker]

    @staticmethod
    def of(*entries: tuple[str | tuple[str, ...], str, Any, Maker]) -> Shelf:
        """
        Make one of rows: a module or several, a name in it, what stands for it, and what may be done with that.

        A stand-in of None is a callee.
        """
        named: dict[tuple[str, str], Any] = {}
        makers: dict[Any, Maker] = {}
        for modules, name, found, maker in entries:
            places = (modules,) if isinstance(modules, str) else modules
            stand_in = Callee(f"{places[0]}.{name}") if found is None else found
            named.update({(module, name): stand_in for module in places})
            makers[stand_in] = maker
        return Shelf(named, makers)


def is_light(*values: Any) -> bool:
    """
    Return whether values are soon printed, each part counted as often as it is there.

    >>> doubled = [1]
    >>> for _ in range(60):
    ...     doubled = [doubled, doubled]
    >>> is_light([1, 2]), is_light(doubled)
    (True, False)
    """
    count, waiting = 0, list(values)
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict) and len(value) <= _PRINTED_PARTS:
            value = (*value, *value.values())
        if isinstance(value, dict | list | tuple | set | frozenset):
            count += len(value)
            if count > _PRINTED_PARTS:
                return False
            waiting.extend(value)
    return True


def malformed(why: str) -> NoReturn:
    """
    Refuse bytes that no pickler writes.

    Raises:
        ValueError: Always.
    """
    raise ValueError(f"the pickle is not well formed: {why}")
