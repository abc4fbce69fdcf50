"""
Frames, series, indices and scalars of pandas in a pickle that is opened as data: their arrays, and what these mean.

The pickles of pandas name what a version of it is made of inside; here is said what its public functions take.
Columns of one type travel as one array, which a frame keeps using.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from skyward.link.data.maker import Maker, Shelf, malformed
from skyward.link.data.table_parts import (
    checked_frequency,
    checked_index,
    checked_label,
    checked_text,
    checked_zone,
    plain_array,
)

__all__ = ["reduce", "restore", "shelf"]


def reduce(obj: Any) -> tuple[Any, ...] | None:
    """
    Reduce something of pandas' to what it is made of; None for what has no such form.

    Args:
        obj: Something of pandas'.

    Raises:
        TypeError: If it holds a column of a type that has no such form.
    """
    import pandas as pd

    if type(obj) is pd.DataFrame:
        return restore, ("frame", obj.columns, obj.index, _blocks(obj), dict(obj.attrs))
    if type(obj) is pd.Series:
        return restore, ("series", obj.name, obj.index, _parts(obj.array), dict(obj.attrs))
    if isinstance(obj, pd.Index):
        return restore, _of_index(obj)
    if isinstance(obj, pd.api.extensions.ExtensionArray):
        return restore, ("array", _parts(obj))
    if obj is pd.NaT or obj is pd.NA:
        return restore, ("missing", "NaT" if obj is pd.NaT else "NA")
    if type(obj) is pd.Timestamp:
        naive = obj if obj.tz is None else obj.tz_convert(None)
        return restore, ("timestamp", naive.to_datetime64(), obj.tz)
    if type(obj) is pd.Timedelta:
        return restore, ("timedelta", obj.to_timedelta64())
    if type(obj) is pd.Period:
        return restore, ("period", obj.ordinal, obj.freqstr)
    if type(obj) is pd.Interval:
        return restore, ("interval", obj.left, obj.right, obj.closed)
    return None


def restore(kind: Any, *parts: Any) -> Any:
    """
    Rebuild what `reduce` took apart.

    Args:
        kind: What it is.
        parts: What it is made of.

    Raises:
        ValueError: If the parts make none.
    """
    if type(kind) is not str or kind not in _RESTORED:
        malformed("a value of pandas' that is none")
    return _RESTORED[kind](*parts)


def shelf() -> Shelf:
    """Return the name of what puts values of pandas' together."""
    return Shelf.of((__name__, "restore", None, Maker(restore)))


# Arrays.


def _blocks(frame: Any) -> list[tuple[list[int], Any]]:
    """Return the columns of a frame: those of each type of NumPy's as one array, any other for itself."""
    import numpy as np

    together: dict[Any, list[int]] = {}
    for at, kind in enumerate(frame.dtypes):
        together.setdefault(kind if isinstance(kind, np.dtype) else at, []).append(at)
    if len(together) == 1 and frame.shape[1] > 0 and isinstance(next(iter(together)), np.dtype):
        return [([*range(frame.shape[1])], frame.to_numpy())]
    return [
        (places, _parts(frame.iloc[:, places[0]].array) if key == places[0] and not isinstance(key, np.dtype)
         else frame.iloc[:, places].to_numpy())
        for key, places in together.items()
    ]  # fmt: skip


def _parts(array: Any) -> Any:
    """Return what an array is made of: one of NumPy's, or a tuple that says what one means."""
    import numpy as np
    import pandas as pd

    kind = array.dtype
    if isinstance(array, np.ndarray):
        return array
    # Older ones call it after pandas.
    of_numpy = getattr(pd.arrays, "NumpyExtensionArray", None) or pd.arrays.PandasArray
    if isinstance(kind, np.dtype) or isinstance(array, of_numpy):
        return array.to_numpy()
    if isinstance(kind, pd.DatetimeTZDtype):
        return "zoned", pd.DatetimeIndex(array).tz_convert(None).to_numpy(), kind.tz
    if isinstance(kind, pd.CategoricalDtype):
        return "categorical", np.asarray(array.codes), array.categories, bool(array.ordered)
    if isinstance(kind, pd.PeriodDtype):
        return "periods", np.asarray(array.asi8), str(kind).removeprefix("period[").removesuffix("]")
    if isinstance(kind, pd.IntervalDtype):
        return "intervals", array.left, array.right, array.closed
    if isinstance(kind, pd.StringDtype):
        missing = "NA" if getattr(kind, "na_value", pd.NA) is pd.NA else "nan"
        return "texts", array.to_numpy(dtype=object, na_value=None), str(kind.storage), missing
    if isinstance(kind, pd.ArrowDtype):
        return "arrow", array.__arrow_array__()
    if type(array) in _masked():
        return "masked", array.to_numpy(dtype=kind.numpy_dtype, na_value=kind.numpy_dtype.type(0)), array.isna()
    raise TypeError(f"an array of pandas' of type {kind} does not travel as data")


def _masked() -> tuple[type, ...]:
    import pandas as pd

    return pd.arrays.IntegerArray, pd.arrays.FloatingArray, pd.arrays.BooleanArray


def _array(parts: Any) -> Any:
    """Rebuild an array."""
    import numpy as np

    if isinstance(parts, np.ndarray):
        return parts
    if type(parts) is not tuple or not parts or type(parts[0]) is not str or parts[0] not in _ARRAYS:
        malformed("a column that is none")
    return _ARRAYS[parts[0]](*parts[1:])


def _zoned(values: Any, zone: Any) -> Any:
    import pandas as pd

    return pd.DatetimeIndex(plain_array(values, "M")).tz_localize("UTC").tz_convert(checked_zone(zone)).array


def _categorical(codes: Any, categories: Any, ordered: Any) -> Any:
    import pandas as pd

    return pd.Categorical.from_codes(
        plain_array(codes, "i"), categories=checked_index(categories), ordered=bool(ordered)
    )


def _periods(ordinals: Any, frequency: Any) -> Any:
    import pandas as pd

    return pd.arrays.PeriodArray(plain_array(ordinals, "i"), dtype=pd.PeriodDtype(checked_frequency(frequency)))


def _intervals(left: Any, right: Any, closed: Any) -> Any:
    import pandas as pd

    return pd.arrays.IntervalArray.from_arrays(checked_index(left), checked_index(right), closed=checked_text(closed))


def _texts(values: Any, storage: Any, missing: Any) -> Any:
    import numpy as np
    import pandas as pd

    found = plain_array(values, "O")
    if not all(value is None or type(value) is str for value in found.tolist()):
        malformed("a text that is none")
    options = {} if missing == "NA" else {"na_value": np.nan}
    try:
        kind = pd.StringDtype(checked_text(storage), **options)
    except ImportError:
        kind = pd.StringDtype("python", **options)
    return pd.array(found, dtype=kind)


def _arrow(values: Any) -> Any:
    import pandas as pd
    import pyarrow as pa

    if not isinstance(values, pa.Array | pa.ChunkedArray):
        malformed("a column of Arrow's that is none")
    return pd.array(values, dtype=pd.ArrowDtype(values.type))


def _of_mask(values: Any, mask: Any) -> Any:
    integers, floats, booleans = _masked()
    kind: Any = {"i": integers, "u": integers, "f": floats, "b": booleans}[plain_array(values, "iufb").dtype.kind]
    return kind(values, plain_array(mask, "b"))


_ARRAYS: Final[dict[str, Callable[..., Any]]] = {
    "zoned": _zoned,
    "categorical": _categorical,
    "periods": _periods,
    "intervals": _intervals,
    "texts": _texts,
    "arrow": _arrow,
    "masked": _of_mask,
}


# Indices.


def _of_index(index: Any) -> tuple[Any, ...]:
    import pandas as pd

    if type(index) is pd.RangeIndex:
        return "range", index.start, index.stop, index.step, index.name
    if type(index) is pd.MultiIndex:
        return "multi", list(index.levels), [code.astype("int64") for code in map(_codes, index.codes)], [*index.names]
    frequency = getattr(index, "freqstr", None) if not isinstance(index.dtype, pd.PeriodDtype) else None
    return "index", _parts(index.array), index.name, frequency


def _codes(codes: Any) -> Any:
    import numpy as np

    return np.asarray(codes)


def _range(start: Any, stop: Any, step: Any, name: Any) -> Any:
    import pandas as pd

    return pd.RangeIndex(start, stop, step, name=checked_label(name))


def _multi(levels: Any, codes: Any, names: Any) -> Any:
    import pandas as pd

    if not all(type(part) is list for part in (levels, codes, names)):
        malformed("an index of levels that are none")
    return pd.MultiIndex(
        levels=[checked_index(level) for level in levels],
        codes=[plain_array(code, "i") for code in codes],
        names=[checked_label(name) for name in names],
    )


def _made_index(parts: Any, name: Any, frequency: Any) -> Any:
    import numpy as np
    import pandas as pd

    values = _array(parts)
    if isinstance(values, np.ndarray) and values.dtype == object:
        for value in values.tolist():
            checked_label(value)
        return pd.Index(values, dtype=object, name=checked_label(name), tupleize_cols=False)
    index = pd.Index(values, name=checked_label(name))
    if frequency is not None and isinstance(index, pd.DatetimeIndex | pd.TimedeltaIndex):
        index.freq = checked_frequency(frequency)
    return index


# Frames.


def _frame(columns: Any, index: Any, blocks: Any, attrs: Any) -> Any:
    import numpy as np
    import pandas as pd

    columns, index = checked_index(columns), checked_index(index)
    if type(blocks) is not list or type(attrs) is not dict:
        malformed("a frame of other blocks")
    if len(blocks) == 1 and isinstance(blocks[0][1], np.ndarray):
        frame = pd.DataFrame(plain_array(blocks[0][1]), index=index, columns=columns, copy=False)
    else:
        found: dict[int, Any] = {}
        for places, parts in blocks:
            values = _array(parts)
            for number, place in enumerate(places):
                found[_place(place, len(columns))] = values[:, number] if isinstance(parts, np.ndarray) else values
        if len(found) != len(columns):
            malformed("a frame of fewer columns than it names")
        frame = pd.DataFrame({place: found[place] for place in range(len(columns))}, index=index, copy=False)
        frame.columns = columns
    frame.attrs.update(attrs)
    return frame


def _place(place: Any, count: int) -> int:
    if type(place) is not int or not 0 <= place < count:
        malformed("a column at no place")
    return place


def _series(name: Any, index: Any, parts: Any, attrs: Any) -> Any:
    import pandas as pd

    if type(attrs) is not dict:
        malformed("a series of other attributes")
    series = pd.Series(_array(parts), index=checked_index(index), name=checked_label(name), copy=False)
    series.attrs.update(attrs)
    return series


# Scalars.


def _missing(name: Any) -> Any:
    import pandas as pd

    return pd.NaT if name == "NaT" else pd.NA


def _timestamp(value: Any, zone: Any) -> Any:
    import numpy as np
    import pandas as pd

    if not isinstance(value, np.datetime64):
        malformed("a moment that is none")
    made = pd.Timestamp(value)
    return made if zone is None else made.tz_localize("UTC").tz_convert(checked_zone(zone))


def _timedelta(value: Any) -> Any:
    import numpy as np
    import pandas as pd

    if not isinstance(value, np.timedelta64):
        malformed("a span of time that is none")
    return pd.Timedelta(value)


def _period(ordinal: Any, frequency: Any) -> Any:
    import pandas as pd

    if type(ordinal) is not int:
        malformed("a period of no number")
    return pd.Period(ordinal=ordinal, freq=checked_frequency(frequency))


def _interval(left: Any, right: Any, closed: Any) -> Any:
    import pandas as pd

    return pd.Interval(checked_label(left), checked_label(right), closed=checked_text(closed))


_RESTORED: Final[dict[str, Callable[..., Any]]] = {
    "frame": _frame,
    "series": _series,
    "array": _array,
    "range": _range,
    "multi": _multi,
    "index": _made_index,
    "missing": _missing,
    "timestamp": _timestamp,
    "timedelta": _timedelta,
    "period": _period,
    "interval": _interval,
}
