"""A hundred thousand calls begin and end, and the loop does everything else meanwhile."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from skyward.engine.calls.batches import PART, BatchTurns, in_parts, post_in_parts
from skyward.engine.calls.call import Call
from skyward.engine.calls.dispatch import Dispatch
from skyward.engine.pool.event_loop import EngineLoop
from skyward.link.payload import Payload
from tests.simulated.stage import FUNCTION, Attempts, Heard

CALLS = 20_000
STILL = 0.05
"""Seconds for which the loop may do nothing but this."""


class Standstill:
    """
    Measure how long a loop does one thing at a time, in processor time: what else runs on the machine does not count.

    Args:
        engine: The loop.
    """

    def __init__(self, engine: EngineLoop) -> None:
        self._engine = engine
        self._last = 0.0
        self.most = 0.0
        engine.post(self._tick)

    def _tick(self) -> None:
        now = time.thread_time()
        if self._last:
            self.most = max(self.most, now - self._last)
        self._last = now
        self._engine.loop.call_later(0.0, self._tick)


@contextmanager
def queued() -> Iterator[tuple[EngineLoop, Dispatch, list[Call], Standstill]]:
    """Have many calls wait, half of them for a node that there is not."""
    gc.disable()  # Python's own collector stops every thread, for as long as it takes.
    engine = EngineLoop()
    sink: Any = Heard(time.monotonic)
    calls = [Call(FUNCTION, Payload((), b""), sink, node=3 if at % 2 else None) for at in range(CALLS)]
    dispatch = Dispatch(engine, pool="train", buffer=0, observer=Attempts(), membership=lambda node: (0, {}))
    try:
        standstill = Standstill(engine)
        post_in_parts(engine.post, dispatch.submit, calls)
        engine.run(engine.caught_up())
        assert CALLS == dispatch.queued
        yield engine, dispatch, calls, standstill
    finally:
        engine.close()
        gc.enable()


def cancelled_one_by_one(engine: EngineLoop, dispatch: Dispatch, calls: list[Call]) -> None:
    """As futures are, the last first."""
    for call in reversed(calls):
        engine.post(dispatch.cancel, [call])


def cancelled_at_once(engine: EngineLoop, dispatch: Dispatch, calls: list[Call]) -> None:
    """As when a pool is left by an exception."""
    engine.post(dispatch.cancel_all)


def closed(engine: EngineLoop, dispatch: Dispatch, calls: list[Call]) -> None:
    """As when a pool is left, or its budget is reached."""
    engine.run(dispatch.leave("The pool 'train' is closed."))


def forsaken(engine: EngineLoop, dispatch: Dispatch, calls: list[Call]) -> None:
    """As when the node does not come back that half of them wait for."""
    engine.post(dispatch.forsake, 3, "the pool was made smaller")


@pytest.mark.parametrize("end", [cancelled_one_by_one, cancelled_at_once, closed, forsaken])
def test_the_loop_goes_on_while_many_calls_end(end: Callable[[EngineLoop, Dispatch, list[Call]], None]) -> None:
    """Each has its answer, once and in good time, and nothing else waits for all of them."""
    with queued() as (engine, dispatch, calls, standstill):
        began = time.thread_time()
        end(engine, dispatch, calls)
        engine.run(engine.caught_up())
        engine.run(engine.caught_up())
        answered = calls[0].sink.answers  # type: ignore[attr-defined]  # a `Heard`
        assert (CALLS // 2 if end is forsaken else CALLS) == len(answered)
        assert CALLS - len(answered) == dispatch.queued
        assert standstill.most < STILL
        assert time.thread_time() - began < 2.0


def test_the_first_piece_is_done_at_once() -> None:
    """And the others in their order; a few calls wait for nothing."""
    posted: list[Any] = []
    done: list[int] = []
    in_parts(lambda do, part: posted.append(part), done.extend, range(PART + 3))
    assert list(range(PART)) == done
    assert [range(PART, PART + 3)] == posted
    in_parts(posted.append, done.extend, ())
    assert 1 == len(posted)


def test_a_thousand_nodes_that_go_at_once_take_turns() -> None:
    """So many in each turn of the loop, in their order; those that are cancelled meanwhile take none."""

    async def gone() -> list[list[int]]:
        turns, passed, seen = BatchTurns(each=64), list[int](), list[list[int]]()

        async def go(number: int) -> None:
            await turns.take()
            passed.append(number)

        tasks = [asyncio.ensure_future(go(number)) for number in range(1000)]
        await asyncio.sleep(0)
        seen.append(list(passed))
        for task in tasks[64:900]:
            task.cancel()
        await asyncio.wait(tasks)
        seen.append(list(passed))
        passed.clear()
        # What comes later finds all turns free again.
        await asyncio.gather(*map(go, range(64)))
        return [*seen, list(passed)]

    at_first, in_all, later = asyncio.run(gone())
    assert (list(range(64)), [*range(64), *range(900, 1000)], list(range(64))) == (at_first, in_all, later)
