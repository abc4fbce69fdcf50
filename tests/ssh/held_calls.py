"""Calls that run until a test lets them end, for pools that are left while they do."""

from __future__ import annotations

import os
import time
from pathlib import Path

import skyward as sky

__all__ = ["process", "waits_for"]


@sky.function
def waits_for(path: str, value: int) -> int:
    """Return a value once a file is there."""
    while not Path(path).exists():
        time.sleep(0.02)
    return value


@sky.function
def process() -> int:
    """Return which process runs it."""
    return os.getpid()
