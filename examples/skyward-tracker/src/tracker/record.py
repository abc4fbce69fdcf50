"""
What a task logs, and how it gets to the client.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from attrs import frozen

import skyward as sky

__all__ = ["Record", "log", "logs", "numbers"]

_numbers: list[Iterator[int]] = []
_function: ContextVar[str] = ContextVar("tracker_function", default="")


@frozen(kw_only=True)
class Record(sky.SkywardEvent):
    """
    Hold what was logged at one moment; travels from the worker to the client.

    Args:
        rank: Who logged it.
        step: How many times the rank's process had logged before.
        function: Name of the function that logged it.
        values: What was logged, by name.
    """

    rank: int
    step: int
    function: str
    values: Mapping[str, float]


def log(**values: float) -> None:
    """Log numbers by name; where no pool with the plugin runs the function, they go nowhere."""
    if _function.get():
        rank = sky.instance_info().global_worker_index
        sky.emit(Record(rank=rank, step=next(_numbers[-1]), function=_function.get(), values=values))


@contextmanager
def numbers() -> Iterator[None]:
    """Number what this process logs, from 0."""
    _numbers.append(itertools.count())
    try:
        yield
    finally:
        _numbers.pop()


@contextmanager
def logs(function: str) -> Iterator[None]:
    """Let a call log under its function's name."""
    token = _function.set(function)
    try:
        yield
    finally:
        _function.reset(token)
