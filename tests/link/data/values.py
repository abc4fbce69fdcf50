"""Values of the standard library that are opened as data, and their comparison."""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import fractions
import pathlib
import types
import uuid
import zoneinfo
from typing import Any

import skyward as sky
from skyward.link.failure import RemoteTraceback
from skyward.link.payload_making import dump

NOON = dt.datetime(2026, 1, 2, 12, 0, 0, 7, tzinfo=dt.UTC)

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 255, 256, 65_535, 65_536, -1, 2**31, -(2**31), 2**63, 2**2000, 1.5, float("inf"), 1 + 2j),
    *("", "ü" * 300, "\ud800", b"", b"x" * 300, bytearray(b"x"), memoryview(b"view")),
    *([], [1, [2]], (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), {}, {"a": {(1, 2): 3}}, {1, 2}, frozenset({3})),
    *(..., NotImplemented, type(None), type(...), int, dict, slice(1, None, 2), range(1, 9, 2)),
    *(dt.date(2026, 1, 2), NOON, NOON.time(), NOON.replace(tzinfo=None), dt.timedelta(1, 2, 3)),
    *(dt.timezone(dt.timedelta(hours=2), "here"), NOON.replace(tzinfo=zoneinfo.ZoneInfo("UTC"), fold=1)),
    *(decimal.Decimal("1.50"), decimal.Decimal("-Infinity"), fractions.Fraction(-1, 3), uuid.UUID(int=7)),
    *(pathlib.PurePosixPath("/a/b"), pathlib.PureWindowsPath("c:/a"), pathlib.Path("a/../b")),
    *(collections.OrderedDict(a=1), collections.defaultdict(list, a=[1]), collections.Counter("abca")),
    *(collections.deque([1, 2], maxlen=3), types.SimpleNamespace(a=1, b=[2])),
    *(
        KeyError("gone"),
        OSError(2, "No such file", "x"),
        UnicodeDecodeError("utf-8", b"x", 0, 1, "why"),
        StopIteration(3),
    ),
    *(ExceptionGroup("two", [ValueError(1), KeyError(2)]), ImportError("no", name="a", path="b")),
    *(sky.NodeLostError("gone", node=3, hint="Wait."), sky.PluginError("bad", plugin="p", hook="h")),
    *(RemoteTraceback("text"), sky.InstanceInfo(node=3), sky.Progress(label="epochs", done=1), sky.TaskError),
)


def pickled(value: Any) -> bytes:
    """Pickle a small value as a worker does whose answers are opened as data."""
    return dump(value, data=True).inline


def same(value: Any, found: Any) -> bool:
    """Tell whether two values are the same, errors by what they hold."""
    if isinstance(value, BaseExceptionGroup):
        return type(value) is type(found) and all(map(same, value.exceptions, found.exceptions))
    if isinstance(value, BaseException):
        return type(value) is type(found) and value.args == found.args and vars(value) == vars(found)
    return type(value) is type(found) and bool(value == found)
