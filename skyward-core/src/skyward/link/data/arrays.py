"""
Arrays, scalars and types of NumPy in a pickle that is opened as data; arrays are not copied.

A dtype is rebuilt from its description, and never through NumPy's own `__setstate__`: that takes the flags over
unchecked, and an array whose flags declare its pointers to be numbers reads any memory.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

from skyward.link.data.maker import NOTHING, Maker, Refused, Shelf, malformed
from skyward.link.data.views import buffer_of, sizes

__all__ = ["shelf"]

_MODULES: Final = ("numpy._core.multiarray", "numpy.core.multiarray")
_NUMERIC: Final = ("numpy._core.numeric", "numpy.core.numeric")
_CODE: Final = re.compile(r"[?bBhHiIlLqQefdgFDGOSUVMm]|[biufcSUVMmO]\d{1,9}")
_UNITS: Final = frozenset({"Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "generic"})
_MOST_FIELDS: Final = 10_000
_DEEPEST: Final = 32
_LARGEST_RECORD: Final = 64 << 10


def shelf() -> Shelf:
    """Return the names of NumPy, which is loaded."""
    import numpy as np

    scalars = {kind for kind in vars(np).values() if isinstance(kind, type) and issubclass(kind, np.generic)}
    return Shelf.of(
        ("numpy", "dtype", np.dtype, Maker(_dtype)),
        *(
            ("numpy.dtypes", type(kind).__name__, type(kind), Maker(None, None, _dtype_state))
            for kind in _plain_types()
        ),
        ("numpy", "ndarray", np.ndarray, Maker(None, None, _array_state)),
        (_NUMERIC, "_frombuffer", None, Maker(_from_buffer)),
        (_MODULES, "_reconstruct", None, Maker(_empty)),
        (_MODULES, "scalar", None, Maker(_scalar)),
        *(("numpy", kind.__name__, kind, NOTHING) for kind in scalars),
        # Older names of the same.
        ("numpy", "bool_", np.bool_, NOTHING),
    )


def _plain_types() -> list[Any]:
    import numpy as np

    return [np.dtype(code) for code in "?bBhHiIlLqQefdgFDGOSUVMm"]


def _dtype(code: Any, *flags: Any) -> Any:
    """Make a type of its code, without what its state adds."""
    import numpy as np

    if type(code) is not str or not _CODE.fullmatch(code) or not all(type(flag) is bool for flag in flags):
        malformed("a dtype without a code")
    # A copy, as NumPy makes: the state that follows is of this one alone.
    return np.dtype(code, copy=True)


def _dtype_state(made: Any, state: Any) -> Any:
    """Rebuild a type, with what its state says of byte order, unit, fields and shape."""
    import numpy as np

    if type(state) is not tuple or not 8 <= len(state) <= 9 or type(state[0]) is not int:
        malformed("a state of a dtype")
    _, order, sub, names, fields, size, alignment, flags = state[:8]
    if order not in ("<", ">", "=", "|") or not all(type(number) is int for number in (size, alignment, flags)):
        malformed("a state of a dtype")
    unit = state[8] if len(state) == 9 else None
    if sub is not None:
        return _of_parts(sub)
    if names is not None:
        return _of_fields(names, fields, size, aligned=bool(flags & 0x80))
    code = made.str[1:] if made.kind in "SUVmMO" else made.str.lstrip("<>|=")
    if made.kind in "mM":
        code += _unit(unit)
    elif made.kind in "SUV" and size >= 0 and size != made.itemsize:
        malformed("a dtype of another size than its code says")
    return np.dtype(code if order == "|" else order + code)


def _unit(metadata: Any) -> str:
    """Return the unit of a date or a span of time, as NumPy writes it."""
    if metadata is None:
        return ""
    if type(metadata) is not tuple or len(metadata) != 2 or type(metadata[1]) is not tuple or len(metadata[1]) != 4:
        malformed("a unit of a dtype")
    name, count, *rest = metadata[1]
    name = name.decode("ascii") if type(name) is bytes else name
    if (
        type(name) is not str
        or name not in _UNITS
        or type(count) is not int
        or not 0 < count < 1 << 31
        or rest != [1, 1]
    ):
        malformed("a unit of a dtype")
    return "" if name == "generic" else f"[{count}{name}]"


def _depth(kind: Any, deep: int = 0) -> int:
    if deep > _DEEPEST:
        raise Refused("a dtype that is nested too deep")
    if kind.subdtype is not None:
        return _depth(kind.base, deep + 1)
    return max((_depth(field[0], deep + 1) for field in (kind.fields or {}).values()), default=deep)


def _of_parts(sub: Any) -> Any:
    import numpy as np

    if type(sub) is not tuple or len(sub) != 2 or not isinstance(sub[0], np.dtype):
        malformed("a dtype of parts")
    _depth(sub[0])
    return np.dtype((sub[0], sizes(sub[1] if type(sub[1]) is tuple else (sub[1],))))


def _of_fields(names: Any, fields: Any, size: int, *, aligned: bool) -> Any:
    import numpy as np

    if type(names) is not tuple or type(fields) is not dict or len(names) > _MOST_FIELDS or size < 0:
        malformed("a dtype of fields")
    if not all(type(name) is str for name in names):
        malformed("a field without a name")
    rows = [fields[name] for name in names]
    for row in rows:
        if type(row) is not tuple or not 2 <= len(row) <= 3 or not isinstance(row[0], np.dtype):
            malformed("a field of a dtype")
        if type(row[1]) is not int or (len(row) == 3 and type(row[2]) is not str):
            malformed("a field of a dtype")
        _depth(row[0])
    description: dict[str, Any] = {
        "names": list(names),
        "formats": [row[0] for row in rows],
        "offsets": [row[1] for row in rows],
        "itemsize": size,
    }
    if any(len(row) == 3 for row in rows):
        description["titles"] = [row[2] if len(row) == 3 else None for row in rows]
    make: Any = np.dtype
    try:
        return make(description, align=aligned)
    except ValueError:
        # What was aligned on another machine need not be so here.
        return make(description)


def _known(kind: Any) -> Any:
    import numpy as np

    if not isinstance(kind, np.dtype):
        malformed("an array without a dtype")
    return kind


def _from_buffer(buffer: Any, kind: Any, shape: Any, order: Any, axes: Any = None) -> Any:
    """Make an array of a buffer, which it keeps using."""
    import numpy as np

    if order not in ("C", "F", "K"):
        malformed("an array without an order")
    if _known(kind).hasobject:
        raise Refused("an array of objects that comes as bytes")
    array = np.frombuffer(buffer_of(buffer), dtype=kind)
    if order != "K" or axes is None:
        return array.reshape(sizes(shape), order="C" if order == "K" else order)
    return array.reshape(sizes(shape)).transpose(sizes(axes))


def _empty(kind: Any, shape: Any, code: Any) -> Any:
    """Make the array that a state is given to."""
    import numpy as np

    if kind is not np.ndarray or shape != (0,) or code not in (b"b", "b"):
        raise Refused(f"an array that is a {getattr(kind, '__qualname__', kind)}")
    return np.ndarray((0,), dtype="b")


def _array_state(made: Any, state: Any) -> Any:
    """Make an array of the bytes, or the list of objects, in its state."""
    import numpy as np

    if type(state) is not tuple or len(state) != 5 or type(state[0]) is not int or type(state[3]) not in (bool, int):
        malformed("a state of an array")
    _, shape, kind, fortran, content = state
    shape, order = sizes(shape), "F" if fortran else "C"
    if not _known(kind).hasobject:
        if type(content) is not bytes or len(content) != kind.itemsize * int(np.prod(shape, dtype=object)):
            malformed("an array of other bytes than its shape says")
        if not kind.itemsize:
            return np.zeros(shape, dtype=kind)
        array: Any = np.frombuffer(bytearray(content), dtype=kind)
        return array.reshape(shape, order=order)
    if type(content) is not list or len(content) != int(np.prod(shape, dtype=object)):
        malformed("an array of other objects than its shape says")
    if kind.itemsize > _LARGEST_RECORD:
        raise Refused("an array of objects in records of more than 64 KiB")
    array = np.empty(len(content), dtype=kind)
    # One by one: a list of lists is not to be taken for an array of more dimensions.
    for at, value in enumerate(content):
        array[at] = value
    return array.reshape(shape, order=order)


def _scalar(kind: Any, content: Any = None) -> Any:
    """Make a scalar of its bytes."""
    import numpy as np

    if _known(kind).hasobject:
        raise Refused("a scalar of objects")
    if type(content) is not bytes or len(content) != kind.itemsize:
        malformed("a scalar of other bytes than its dtype says")
    if not kind.itemsize:
        return np.zeros((), dtype=kind)[()]
    made: Any = _numpy_scalar()(kind, content)
    return made


@cache
def _numpy_scalar() -> Any:
    """Find the function that makes a scalar of its bytes, which believes the dtype; ours is made here."""
    import numpy as np

    return (getattr(np, "_core", None) or np.core).multiarray.scalar
