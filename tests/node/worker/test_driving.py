"""Event loops that are to stop, whatever they do at that moment."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from skyward.node.worker.driving import Driver, LoopInterrupted, interruption
from skyward.node.worker.streams import Interrupted


def driven(drive: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    """Drive something in a thread of its own, and keep what it gives or raises."""
    ends: list[object] = []

    def run() -> None:
        try:
            ends.append(drive())
        except BaseException as error:
            ends.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, ends


def test_a_coroutine_gives_what_it_returns() -> None:
    """It may await, and it may not."""

    async def late(value: int) -> int:
        await asyncio.sleep(0)
        return value

    assert Driver().run(late(7)) == 7


def test_a_coroutine_that_is_to_stop_is_cancelled() -> None:
    """As by Ctrl-C in asyncio: what it awaits raises CancelledError, and it may await on its way out."""
    waits = threading.Event()
    seen: list[str] = []

    async def work() -> None:
        try:
            waits.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            await asyncio.sleep(0)
            raise
        finally:
            await asyncio.sleep(0)
            seen.append("left")

    driver = Driver()
    thread, ends = driven(lambda: driver.run(work()))
    waits.wait(10)
    driver.leave()
    thread.join(10)
    assert isinstance(ends[0], Interrupted)
    assert seen == ["cancelled", "left"]
    assert driver.notified


def test_a_coroutine_that_is_stopped_before_it_began_never_begins() -> None:
    """And is not complained about as one that was never awaited."""
    seen: list[int] = []

    async def work() -> None:
        seen.append(1)

    driver = Driver()
    driver.leave()
    with pytest.raises(Interrupted):
        driver.run(work())
    assert not seen


def test_what_a_coroutine_cancels_itself_is_its_own_failure() -> None:
    """Nothing asked it to stop."""

    async def work() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        Driver().run(work())


def test_a_coroutine_that_minds_no_cancelling_gives_its_result() -> None:
    """As a function does that catches what stops it."""
    waits = threading.Event()

    async def work() -> int:
        waits.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return 7
        return 8

    driver = Driver()
    thread, ends = driven(lambda: driver.run(work()))
    waits.wait(10)
    driver.leave()
    thread.join(10)
    assert ends == [7]


@pytest.mark.parametrize("turns", range(40))
def test_an_async_generator_leaves_whenever_it_is_stopped(turns: int) -> None:
    """Between two items, in one, in the loop's own code: its `finally` runs, with an `await` in it."""
    left: list[int] = []
    taken: list[int] = []
    enough = threading.Event()

    async def ticks() -> AsyncIterator[int]:
        try:
            number = 0
            while True:
                await asyncio.sleep(0)
                yield (number := number + 1)
        finally:
            await asyncio.sleep(0)
            left.append(1)

    def take() -> None:
        for item in driver.items(ticks()):
            taken.append(item)
            if len(taken) > turns:
                enough.set()

    driver = Driver()
    thread, ends = driven(take)
    enough.wait(10)
    driver.leave()
    thread.join(10)
    assert isinstance(ends[0], Interrupted)
    assert left == [1]


def test_an_async_generator_that_is_closed_leaves() -> None:
    """Its consumer left between two items."""
    left: list[int] = []

    async def ticks() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
        finally:
            await asyncio.sleep(0)
            left.append(1)

    driver = Driver()
    items: Any = driver.items(ticks())
    assert next(items) == 1
    items.close()
    assert left == [1]
    assert driver.notified


def test_what_unwinds_a_thread_passes_through_its_event_loop() -> None:
    """In a callback of asyncio's, any other exception than these is logged, and the loop goes on."""
    turns = threading.Event()

    async def work() -> None:
        turns.set()
        await asyncio.to_thread(over.wait, 10)

    over = threading.Event()
    thread, _ = driven(lambda: asyncio.run(work()))
    try:
        turns.wait(10)
        assert thread.ident is not None
        assert interruption(sys._current_frames()[thread.ident]) is LoopInterrupted
        assert interruption(sys._getframe()) is Interrupted
    finally:
        over.set()
        thread.join(10)
    assert issubclass(LoopInterrupted, KeyboardInterrupt)


def test_a_loop_that_does_not_turn_has_not_heard() -> None:
    """What it runs does not await anything."""
    spins, over = threading.Event(), threading.Event()

    async def work() -> None:
        spins.set()
        over.wait(10)

    driver = Driver()
    thread, ends = driven(lambda: driver.run(work()))
    spins.wait(10)
    driver.leave()
    heard = [driver.notified]
    over.set()
    thread.join(10)
    assert [*heard, driver.notified] == [False, True]
    assert ends == [None]
