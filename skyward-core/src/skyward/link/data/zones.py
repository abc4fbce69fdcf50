"""
Time zones of pytz, as older pandas has them, in a pickle that is opened as data.
"""

from __future__ import annotations

from typing import Any

from skyward.link.data.maker import Maker, Shelf, malformed
from skyward.link.data.standard import is_zone

__all__ = ["shelf"]


def shelf() -> Shelf:
    """Return the names of pytz, which is loaded."""
    return Shelf.of(("pytz", "_UTC", None, Maker(_utc)), ("pytz", "_p", None, Maker(_of_name)))


def _utc() -> Any:
    import pytz

    return pytz.utc


def _of_name(name: Any, offset: Any = None, saving: Any = None, short: Any = None) -> Any:
    import pytz

    numbers = (offset, saving)
    if not is_zone(name) or not all(number is None or type(number) is int for number in numbers):
        malformed("a time zone without a name")
    if short is not None and type(short) is not str:
        malformed("a time zone without a name")
    return pytz._p(*(part for part in (name, offset, saving, short) if part is not None))
