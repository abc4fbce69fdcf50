"""The loop's thread: what is posted is done in order, and what fails there does not stay unsaid."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from typing import Any

import pytest

from skyward.engine.pool.event_loop import EngineLoop
from skyward.errors import PoolClosedError
from tests.simulated.loop import VirtualLoop


@pytest.fixture
def engine() -> Iterator[EngineLoop]:
    """A loop of one's own."""
    engine = EngineLoop(VirtualLoop)
    yield engine
    engine.close()


async def nothing() -> None:
    """Do nothing: what was posted before is done."""


def test_posts_are_done_in_their_order(engine: EngineLoop) -> None:
    """Those of one thread; none is lost, however many threads there are."""
    done: list[tuple[int, int]] = []
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda who: [engine.post(done.append, (who, n)) for n in range(500)], range(4)))
    engine.run(nothing())
    assert 2000 == len(done)
    assert all([n for who, n in done if who == one] == list(range(500)) for one in range(4))


def test_a_post_that_fails_is_told_and_harms_no_other(engine: EngineLoop) -> None:
    """Those behind it are done."""
    told: list[dict[str, Any]] = []
    engine.loop.set_exception_handler(lambda loop, context: told.append(context))
    done: list[int] = []

    def broken() -> None:
        raise ValueError("broken")

    engine.post(engine.post, broken)
    engine.post(broken)
    engine.post(done.append, 1)
    engine.run(nothing())
    engine.run(nothing())
    assert [1] == done
    assert ["broken"] * 2 == [str(context["exception"]) for context in told]
    assert all("the engine failed in" in context["message"] for context in told)


def test_run_gives_what_a_coroutine_gives(engine: EngineLoop) -> None:
    """A value, its exception, or that it was cancelled."""

    async def value() -> int:
        await asyncio.sleep(3600.0)
        return 7

    async def failure() -> None:
        raise KeyError("x")

    async def cancelled() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    assert 7 == engine.run(value())
    with pytest.raises(KeyError, match="x"):
        engine.run(failure())
    with pytest.raises(CancelledError):
        engine.run(cancelled())


def test_an_interrupt_cancels_the_coroutine_and_waits_for_its_end(engine: EngineLoop) -> None:
    """At whatever moment it comes, what the coroutine has to put in order is done when the interrupt is raised."""
    began, ended = threading.Event(), []

    async def work() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(1.0)
            ended.append("in order")

    def interrupt() -> None:
        began.wait(10)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        engine.run(work())
    thread.join()
    assert ["in order"] == ended


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_cannot_use_it(engine: EngineLoop) -> None:
    """Its thread lives in the parent; the error says so."""
    child = os.fork()
    if child == 0:
        try:
            engine.post(print)
        except PoolClosedError as error:
            os._exit(0 if "forked" in str(error) and not engine.is_here else 1)
        os._exit(2)
    assert 0 == os.waitpid(child, 0)[1]
    assert engine.is_here


def test_it_closes_with_work_pending() -> None:
    """Nothing waits for timers that are hours away, and no thread is left."""
    engine = EngineLoop()
    before = threading.active_count()

    async def schedule() -> None:
        asyncio.get_running_loop().call_later(3600.0, print)

    engine.run(schedule())
    engine.close()
    assert before - 1 == threading.active_count()
    assert engine.loop.is_closed()


def test_timers_are_not_kept_waiting_by_what_is_posted(engine: EngineLoop) -> None:
    """However much of it there is, and however fast it comes."""
    done: list[str] = []

    def post_again() -> None:
        if "timer" not in done:
            engine.post(post_again)

    engine.post(post_again)
    engine.run(asyncio.sleep(0))
    engine.post(engine.loop.call_soon, done.append, "timer")
    deadline = time.monotonic() + 10
    while "timer" not in done:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_a_coroutine_waits_for_what_was_posted_before(engine: EngineLoop) -> None:
    """Also where a thread posts it."""
    done: list[int] = []
    for number in range(1000):
        engine.post(done.append, number)
    engine.run(engine.caught_up())
    assert list(range(1000)) == done


def test_a_wait_for_what_was_posted_can_be_cancelled(engine: EngineLoop) -> None:
    """The posted end of the wait finds that it is over."""
    errors: list[dict[str, Any]] = []

    async def leave() -> None:
        wait = asyncio.ensure_future(engine.caught_up())
        await asyncio.sleep(0)
        wait.cancel()
        with pytest.raises(asyncio.CancelledError):
            await wait
        await engine.caught_up()

    engine.loop.set_exception_handler(lambda loop, context: errors.append(context))
    engine.run(leave())
    assert [] == errors
