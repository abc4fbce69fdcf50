"""
What a function captures, and whether it still captures the same.

A function pickled by value carries its globals, closure and defaults as they are at that moment.
A `Snapshot` remembers them by identity: as long as it holds, the pickle made then is the pickle of now, and need not
be made again. Only what cannot change in place is compared by identity; where a function captures anything else
there is no snapshot.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any, Final
from weakref import WeakKeyDictionary

from attrs import define, field, frozen

from skyward.link.by_reference import by_reference, pickled_by_value
from skyward.link.cached import CACHED

_MISSING: Final = object()
_VALUE_LIMIT: Final = 100_000

_ATOMS: Final = frozenset(
    {type(None), bool, int, float, complex, str, bytes, range, type(Ellipsis), type(NotImplemented)}
)
_DESCRIPTORS: Final = (types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType)

# Types of other modules whose values never change; looked up only in modules that are loaded.
_SETTLED: Final = {
    "datetime": ("date", "timedelta", "timezone"),
    "decimal": ("Decimal",),
    "fractions": ("Fraction",),
    "pathlib": ("PosixPath", "WindowsPath", "PurePosixPath", "PureWindowsPath"),
    "re": ("Pattern",),
    "torch": ("device", "dtype"),
    "uuid": ("UUID",),
    # A logger travels as its name alone.
    "logging": ("Logger", "RootLogger"),
}

# Built-ins through which code can change what it captures without an instruction that shows it.
_REACHING: Final = frozenset({"delattr", "eval", "exec", "globals", "setattr", "vars"})


@define(kw_only=True, eq=False)
class Snapshot:
    """
    Remember by identity what a function captured.

    Args:
        shareable: Whether a node may use one unpickled function object for many calls.
        lookups: `(lookup, name, value)` of each name in a namespace.
        cells: Each closure cell with its content; `_MISSING` where it had none.
        functions: Each function pickled by value with its code, defaults and keyword defaults.
        sizes: Each namespace that must not grow, with its size.
        modules: Number of loaded modules, where the pickle depends on which submodules are loaded.
    """

    shareable: bool = True
    lookups: list[tuple[Callable[..., object], str, object]] = field(factory=list)
    cells: list[tuple[types.CellType, object]] = field(factory=list)
    functions: list[tuple[types.FunctionType, types.CodeType, object, object]] = field(factory=list)
    sizes: list[tuple[dict[str, Any], int]] = field(factory=list)
    modules: int | None = None

    def still_true(self) -> bool:
        """
        Return whether the function captures what it captured then.

        >>> snapshot(lambda: 1).still_true()
        True
        """
        for lookup, name, value in self.lookups:
            if lookup(name, _MISSING) is not value:
                return False
        for fn, code, defaults, kwdefaults in self.functions:
            if fn.__code__ is not code or fn.__defaults__ is not defaults or fn.__kwdefaults__ is not kwdefaults:
                return False
        for cell, value in self.cells:
            if _content(cell) is not value:
                return False
        for space, size in self.sizes:
            if len(space) != size:
                return False
        return self.modules is None or len(sys.modules) == self.modules


def snapshot(fn: types.FunctionType) -> Snapshot | None:
    """
    Take a snapshot of what a function captures.

    Returns None where the function captures something that can change in place (a list, an array, an instance of a
    class of the user's): such a function is pickled at every dispatch.
    A function that travels by reference captures nothing, and its snapshot always holds.

    Args:
        fn: The function, as the user wrote it.

    >>> snapshot(lambda x, seen=[]: x) is None
    True
    """
    if by_reference(fn):
        return Snapshot()
    walk = _Walk()
    try:
        return walk.snapshot() if walk.settles(fn) else None
    except Exception:
        # Objects that answer attribute access with errors, annotations that cannot be evaluated, namespaces that
        # change under the walk: pickling at every dispatch is always right.
        return None


def captured_names(code: types.CodeType) -> tuple[str, ...]:
    """
    List the global names that code and the functions inside it read or write.

    Args:
        code: The code of a function.

    >>> captured_names((lambda x: [print(x) for _ in range(3)]).__code__)
    ('range', 'print')
    """
    return _traits(code).names


@frozen
class _Traits:
    names: tuple[str, ...]
    writes_outside: bool
    sets_attributes: bool


_known: WeakKeyDictionary[types.CodeType, _Traits] = WeakKeyDictionary()


def _traits(code: types.CodeType) -> _Traits:
    traits = _known.get(code)
    if traits is None:
        import dis

        names: dict[str, None] = {}
        operations: set[str] = set()
        # Free variables of a function inside count only as far as they come from outside the outermost one.
        waiting = [(code, frozenset(code.co_freevars))]
        for part, outer in waiting:
            for step in dis.get_instructions(part):
                operation, argument = step.opname, step.argval
                if operation in ("LOAD_GLOBAL", "STORE_GLOBAL", "DELETE_GLOBAL"):
                    names[argument] = None
                    operations.add(operation)
                elif operation in ("STORE_ATTR", "DELETE_ATTR"):
                    operations.add("attributes")
                elif operation in ("STORE_DEREF", "DELETE_DEREF") and argument in outer:
                    operations.add(operation)
            inner = (const for const in part.co_consts if isinstance(const, types.CodeType))
            waiting += [(const, outer.intersection(const.co_freevars)) for const in inner]
        writes = {"STORE_GLOBAL", "DELETE_GLOBAL", "STORE_DEREF", "DELETE_DEREF"} & operations
        traits = _known[code] = _Traits(tuple(names), bool(writes), "attributes" in operations)
    return traits


class _Walk:
    """
    Walk over everything that a function captures.
    """

    def __init__(self) -> None:
        self._found = Snapshot()
        self._sets_attributes = False
        self._holds_functions = False
        self._waiting: list[object] = []
        self._seen: dict[int, object] = {}

    def snapshot(self) -> Snapshot:
        """
        Return what the walk has seen.
        """
        # Code that sets attributes could set them on a captured function and find them at its next call.
        if self._sets_attributes and self._holds_functions:
            self._found.shareable = False
        return self._found

    def settles(self, fn: types.FunctionType) -> bool:
        """
        Return whether nothing that the function reaches can change in place.
        """
        self._seen[id(fn)] = fn
        self._function(fn)
        while self._waiting:
            value = self._waiting.pop()
            if type(value) in _ATOMS:
                continue
            if isinstance(value, types.FunctionType):
                self._holds_functions = self._holds_functions or not by_reference(value)
            if id(value) in self._seen:
                continue
            self._seen[id(value)] = value
            if len(self._seen) > _VALUE_LIMIT or not self._value(value):
                return False
        return True

    def _function(self, fn: types.FunctionType) -> None:
        code, names = fn.__code__, fn.__globals__
        traits = _traits(code)
        self._found.functions.append((fn, code, fn.__defaults__, fn.__kwdefaults__))
        for name in traits.names:
            value = names.get(name, _MISSING)
            self._found.lookups.append((names.get, name, value))
            if value is not _MISSING:
                self._waiting.append(value)
            elif name in _REACHING:
                self._found.shareable = False
        for cell in fn.__closure__ or ():
            value = _content(cell)
            self._found.cells.append((cell, value))
            if value is not _MISSING:
                self._waiting.append(value)
        self._waiting.extend(fn.__defaults__ or ())
        for space in (fn.__kwdefaults__, fn.__annotations__, fn.__dict__):
            if space is not None:
                self._namespace(space)
        self._sets_attributes = self._sets_attributes or traits.sets_attributes
        if traits.writes_outside or set(fn.__dict__) - {"__wrapped__"}:
            self._found.shareable = False

    def _namespace(self, space: dict[str, Any]) -> None:
        self._found.sizes.append((space, len(space)))
        for name, value in space.items():
            self._found.lookups.append((space.get, name, value))
            self._waiting.append(value)

    def _value(self, value: Any) -> bool:
        """
        Return whether a value cannot change in place, as far as what it holds cannot.
        """
        kind = type(value)
        if isinstance(value, types.FunctionType):
            if not by_reference(value):
                self._function(value)
            return True
        if kind is CACHED:
            self._waiting.append(value.__wrapped__)
            return True
        if isinstance(value, types.ModuleType):
            self._found.modules = len(sys.modules)
            name = getattr(value, "__name__", "")
            return sys.modules.get(name) is value and not pickled_by_value(name)
        if issubclass(kind, type):
            return by_reference(value)
        if kind is types.BuiltinFunctionType:
            owner = value.__self__
            return owner is None or isinstance(owner, types.ModuleType) or (type(owner) is type and by_reference(owner))
        if isinstance(value, _DESCRIPTORS):
            return by_reference(value.__objclass__)
        parts = _parts(value)
        if parts is None:
            return _is_settled(value)
        self._waiting.extend(parts)
        return True


def _parts(value: Any) -> tuple[Any, ...] | None:
    """
    Return what a value that cannot change itself is made of, None for any other value.
    """
    kind = type(value)
    if kind is tuple or kind is frozenset:
        return tuple(value)
    if kind is slice:
        return (value.start, value.stop, value.step)
    if isinstance(value, types.GenericAlias | types.UnionType) or kind.__module__ == "typing":
        # `X | Y`, `list[X]`, `Callable[[X], Y]`: `__args__` may hold lists of types.
        arguments = (*getattr(value, "__args__", ()), *getattr(value, "__metadata__", ()))
        return tuple(part for one in arguments for part in (one if type(one) is list else (one,)))
    if not by_reference(kind):
        return None
    if isinstance(value, tuple) and not hasattr(value, "__dict__"):
        return tuple(value)
    names = _frozen_fields(kind)
    if names is None or set(getattr(value, "__dict__", ())) - set(names):
        return None
    return tuple(getattr(value, name) for name in names if hasattr(value, name))


def _frozen_fields(kind: Any) -> tuple[str, ...] | None:
    """
    List the fields of a frozen data class or frozen attrs class, None for any other class.
    """
    parameters = getattr(kind, "__dataclass_params__", None)
    if parameters is not None:
        return tuple(kind.__dataclass_fields__) if parameters.frozen else None
    fields = getattr(kind, "__attrs_attrs__", None)
    if fields is None or not getattr(kind.__setattr__, "__name__", "").endswith("frozen_setattrs"):
        return None
    return tuple(field.name for field in fields)


def _is_settled(value: Any) -> bool:
    kind = type(value)
    enum = sys.modules.get("enum")
    if enum is not None and isinstance(value, enum.Enum):
        return by_reference(kind)
    if kind.__module__ == "datetime" and kind.__name__ in ("datetime", "time"):
        zone = value.tzinfo
        return by_reference(kind) and (zone is None or type(zone).__module__ in ("datetime", "zoneinfo"))
    for module_name, names in _SETTLED.items():
        module = sys.modules.get(module_name)
        if module is not None and any(kind is getattr(module, name, None) for name in names):
            return True
    return _is_global(value)


def _is_global(value: Any) -> bool:
    # NumPy's universal functions, for example, are registered to be pickled as their name.
    reduce = sys.modules["copyreg"].dispatch_table.get(type(value)) if "copyreg" in sys.modules else None
    return reduce is not None and isinstance(reduce(value), str)


def _content(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        return _MISSING
