"""The line that is shown while a machine does not answer yet, so that patience is not taken for a hang."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Self

from attrs import define

__all__ = ["SOON", "Waiting", "listening", "report"]

_log = logging.getLogger(__name__)

SOON = 1.0
"""Seconds after which a line says that a machine has not answered yet."""

_listener: ContextVar[Callable[[str], None] | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Callable[[str], None]) -> Iterator[None]:
    """Pass lines of machines that do not answer yet to a function, in this block and in tasks that it begins."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def report(line: str) -> None:
    """Pass a line to the function of `listening`; where there is none, log a warning."""
    listener = _listener.get()
    if listener is not None:
        listener(line)
    else:
        _log.warning("%s", line)


@define(eq=False)
class Waiting:
    """
    Report once that a machine has not answered yet, if it takes longer than `SOON`.

    Args:
        where: What messages call the machine.
        patience: Seconds for which it is tried.
        report: Takes the line.
    """

    where: str
    patience: float
    report: Callable[[str], None]
    why: str = ""
    _timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        if self.patience > SOON:
            self._timer = asyncio.get_running_loop().call_later(SOON, self._tell)
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _tell(self) -> None:
        why = self.why or f"{self.where} has not answered yet."
        self.report(f"{why} It is tried for {self.patience:g} s.")
