"""Leaving a pool waits for what is under way, but not for streams that no thread reads nor for tasks that never end."""

from __future__ import annotations

import asyncio
from typing import Any

from skyward.engine.calls.settling import STALLED_AFTER, UNWINDING, finished, settled
from tests.simulated.loop import VirtualLoop


def run(main: Any) -> float:
    """Run a coroutine on a virtual clock, and return how long it took."""
    loop = VirtualLoop(sockets=False)
    try:
        loop.run_until_complete(main(loop))
        return loop.time()
    finally:
        loop.close()


class Stream:
    """Be a call that streams."""

    on, streams = 0, True

    def __init__(self, *, stalled: bool) -> None:
        self.sink = self
        self._stalled = stalled

    def stalled(self) -> bool:
        """Tell whether no thread reads it."""
        return self._stalled


class Dispatch:
    """Have calls under way, some of them streams that no thread reads."""

    def __init__(self, loop: VirtualLoop, *, ends_after: float | None, stalled: bool = False) -> None:
        self.running, self.queued, self.waiting = 1, 0, 0
        self.on_progress: Any = lambda: None
        self.calls = [Stream(stalled=stalled)]
        if ends_after is not None:
            loop.call_later(ends_after, self.end)

    def end(self) -> None:
        """End the call."""
        self.running = 0
        self.on_progress()

    def cancel(self, calls: list[Stream]) -> None:
        """Stop calls."""
        if calls:
            self.end()


def test_calls_are_waited_for_as_long_as_they_take() -> None:
    """And no moment longer."""
    assert 1000.0 == run(lambda loop: settled(Dispatch(loop, ends_after=1000.0)))  # type: ignore[arg-type]


def test_a_stream_that_nobody_reads_is_stopped() -> None:
    """Soon."""
    assert STALLED_AFTER == run(lambda loop: settled(Dispatch(loop, ends_after=None, stalled=True)))  # type: ignore[arg-type]


def tasks(loop: VirtualLoop, *works: Any) -> set[asyncio.Task[None]]:
    """Begin tasks that take themselves out when they are done."""
    begun: set[asyncio.Task[None]] = {loop.create_task(work) for work in works}
    for task in begun:
        task.add_done_callback(begun.discard)
    return begun


def test_tasks_that_end_in_time_are_waited_for() -> None:
    """All of them."""
    assert 9.0 == run(lambda loop: finished(tasks(loop, asyncio.sleep(4.0), asyncio.sleep(9.0)), within=10.0))


def test_tasks_that_take_too_long_are_cancelled() -> None:
    """When the time is up."""
    assert 10.0 == run(lambda loop: finished(tasks(loop, asyncio.sleep(4.0), asyncio.sleep(900.0)), within=10.0))


def test_a_task_is_cancelled_until_it_has_unwound() -> None:
    """Each time gets it out of one thing that it waits for."""

    async def stubborn(depth: int) -> None:
        try:
            await asyncio.sleep(900.0)
        finally:
            if depth:
                await stubborn(depth - 1)

    assert 10.0 <= run(lambda loop: finished(tasks(loop, stubborn(3)), within=10.0)) < 11.0


def test_a_task_that_will_not_end_is_left() -> None:
    """After a few seconds more."""

    async def deaf() -> None:
        while loops:
            try:
                await asyncio.sleep(900.0)
            except asyncio.CancelledError:
                continue

    loops = [True]

    async def main(loop: VirtualLoop) -> None:
        left = tasks(loop, deaf())
        await finished(left, within=10.0)
        assert 1 == len(left)
        loops.clear()
        for task in tuple(left):
            task.cancel()
            await asyncio.wait([task])

    assert 10.0 + UNWINDING <= run(main) < 10.0 + UNWINDING + 1.0
