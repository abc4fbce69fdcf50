"""
Waits until nothing else runs on the machine: what runs beside a measurement is measured too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

QUIET = 0.1
"""The share of the processors' time that others may use."""

LOOK_S = 0.5
PATIENCE_S = 120.0
"""Seconds after which the measurement begins all the same."""


def busy_share(before: str, after: str) -> float:
    """
    Return which share of the processors' time was used between two states of /proc/stat.

    >>> busy_share("cpu 10 0 10 80 0 0 0 0", "cpu 20 0 20 160 0 0 0 0")
    0.2

    Args:
        before: The file's text, earlier.
        after: The file's text, later.
    """
    first, second = ([int(part) for part in text.split("\n", 1)[0].split()[1:9]] for text in (before, after))
    spent = [late - early for early, late in zip(first, second, strict=True)]
    total = sum(spent)
    # Idle, and idle while a disk is waited for.
    return 1 - (spent[3] + spent[4]) / total if total else 0.0


def wait_until_quiet(say: Callable[[str], None]) -> None:
    """
    Wait until the processors have been idle for a moment, for two minutes at most.

    Args:
        say: Takes a line where that did not happen.
    """
    stat = Path("/proc/stat")
    if not stat.exists():
        return
    until = time.monotonic() + PATIENCE_S
    busy = 1.0
    while busy > QUIET and time.monotonic() < until:
        before = stat.read_text(encoding="ascii")
        time.sleep(LOOK_S)
        busy = busy_share(before, stat.read_text(encoding="ascii"))
    if busy > QUIET:
        say(f"other work uses {busy:.0%} of the processors: what follows is measured beside it")
