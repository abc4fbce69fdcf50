"""Waiting for what comes true by itself, with an end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

PATIENCE = 50.0
"""Seconds after which what is waited for is missing; a loaded machine takes many times as long as an idle one."""

_FIRST_PAUSE, _LONGEST_PAUSE, _GROWTH = 0.0005, 0.1, 1.2
"""A look may take milliseconds itself, and what takes seconds needs no thousand of them."""


def until(condition: Callable[[], Any], seconds: float = PATIENCE, *, what: str = "it does not come true") -> Any:
    """
    Wait until something holds, and return it.

    Args:
        condition: Returns something that is true once it holds.
        seconds: How long that may take.
        what: What is wrong if it does not.
    """
    deadline, pause = time.monotonic() + seconds, _FIRST_PAUSE
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what}, after {seconds:g} s"
        time.sleep(pause)
        pause = min(_LONGEST_PAUSE, _GROWTH * pause)
    return found


def seconds_until(condition: Callable[[], Any], seconds: float = PATIENCE, *, what: str) -> float:
    """Wait as `until` does, and return how many seconds that took."""
    began = time.monotonic()
    until(condition, seconds, what=what)
    return time.monotonic() - began


async def until_async(condition: Callable[[], Any], seconds: float = PATIENCE) -> None:
    """Wait in a loop until something holds."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110  # threads and processes make it hold
            await asyncio.sleep(0.005)
