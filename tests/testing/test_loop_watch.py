"""A call that blocks the event loop is found, and a loop that is busy is not blamed."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable

import pytest

from skyward.testing.conformance.loop_watch import BLOCKED, LoopWatch


def found(work: Callable[[], Awaitable[object]]) -> list[str]:
    """Return what blocked the loop."""

    async def run() -> None:
        await work()

    with LoopWatch() as watch, asyncio.Runner() as runner:
        runner.run(watch.over(run()))
    return watch.blocking


async def sleeps() -> None:
    """Sleep in the loop's own thread."""
    time.sleep(3 * BLOCKED)  # noqa: ASYNC251  # what is to be found


async def waits() -> None:
    """Wait as one should."""
    await asyncio.to_thread(time.sleep, 3 * BLOCKED)
    await asyncio.sleep(BLOCKED)


async def computes() -> None:
    """Keep the processor busy."""
    until = time.monotonic() + 3 * BLOCKED
    while time.monotonic() < until:
        sum(range(1000))


def test_a_blocking_call_is_found_once_and_by_its_place() -> None:
    """In the file that makes it, not in the library that it calls."""
    [place] = found(sleeps)
    assert place.startswith("sleeps (test_loop_watch.py, line ")


@pytest.mark.parametrize("work", [waits, computes])
def test_what_does_not_block_is_not_blamed(work: Callable[[], Awaitable[object]]) -> None:
    """Neither a thread that waits elsewhere, nor a loop that computes."""
    assert [] == found(work)


def test_its_thread_ends_with_it() -> None:
    """Nothing watches on."""
    found(waits)
    assert "conformance-loop-watch" not in {thread.name for thread in threading.enumerate()}
