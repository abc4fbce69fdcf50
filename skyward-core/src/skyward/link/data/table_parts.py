"""What frames, series and indices are made of, each checked before anything is done with it."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

from skyward.link.data.maker import malformed

_FREQUENCY_LIMIT: Final = 64
_LABEL_PARTS: Final = 32


def plain_array(values: Any, kinds: str = "") -> Any:
    """Return an array of NumPy's, of certain kinds."""
    import numpy as np

    if type(values) is not np.ndarray or (kinds and values.dtype.kind not in kinds):
        malformed("an array of another type")
    return values


def checked_index(value: Any) -> Any:
    """Return an index of pandas'."""
    import pandas as pd

    if not isinstance(value, pd.Index):
        malformed("an index that is none")
    return value


def checked_label(value: Any, *, inside: bool = False) -> Any:
    """Return what a row, a column or an axis is called, which is quick to hash."""
    import numpy as np
    import pandas as pd

    if type(value) is tuple and not inside and len(value) <= _LABEL_PARTS:
        for part in value:
            checked_label(part, inside=True)
        return value
    quick = str | bytes | int | float | complex | dt.date | dt.timedelta | np.generic | pd.Period
    if value is not None and value is not pd.NA and value is not pd.NaT and not isinstance(value, quick):
        malformed(f"a {type(value).__name__} as a name")
    return value


def checked_frequency(value: Any) -> str:
    """Return the name of a frequency."""
    if len(checked_text(value)) > _FREQUENCY_LIMIT:
        malformed("a frequency that is none")
    return str(value)


def checked_zone(value: Any) -> Any:
    """Return a time zone."""
    if not isinstance(value, dt.tzinfo):
        malformed("a time zone that is none")
    return value


def checked_text(value: Any) -> str:
    """Return a text."""
    if type(value) is not str:
        malformed("a word that is none")
    return value
