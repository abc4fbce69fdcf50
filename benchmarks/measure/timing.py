"""Seconds that something takes."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["timed"]


def timed(do: Callable[[], object]) -> float:
    """Return the seconds that something takes."""
    began = time.perf_counter()
    do()
    return time.perf_counter() - began
