"""Work that blocks runs in threads of its own, which may outlive the loop that waited for them."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from skyward.blocking import in_thread


def test_what_blocks_is_done_beside_the_loop() -> None:
    """Which goes on meanwhile; value and exception come back."""
    free = threading.Event()

    async def both() -> str:
        work = asyncio.ensure_future(in_thread(lambda: (free.wait(10), "done")[1]))
        await asyncio.sleep(0)
        free.set()
        with pytest.raises(KeyError):
            await in_thread({}.__getitem__, "x")
        return await work

    assert "done" == asyncio.run(both())


def test_a_wait_that_is_cancelled_is_not_told_of_the_end() -> None:
    """The thread goes on, and its end harms nothing."""
    free, threads, told = threading.Event(), [], list[dict[str, Any]]()

    async def leave() -> None:
        loop, begun = asyncio.get_running_loop(), asyncio.Event()
        loop.set_exception_handler(lambda loop, context: told.append(context))

        def block() -> None:
            threads.append(threading.current_thread())
            loop.call_soon_threadsafe(begun.set)
            free.wait(10)

        work = asyncio.ensure_future(in_thread(block))
        await begun.wait()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        free.set()
        await asyncio.to_thread(threads[0].join, 10)
        await asyncio.sleep(0)

    asyncio.run(leave())
    assert [] == told
    assert not threads[0].is_alive()


@pytest.mark.parametrize("fails", [False, True])
def test_what_ends_after_its_loop_ends_quietly(monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    """A client that is left while a call is under way prints no traceback of a thread."""
    said: list[object] = []
    monkeypatch.setattr(threading, "excepthook", said.append)
    begun, closed, threads = threading.Event(), threading.Event(), []

    def call() -> None:
        threads.append(threading.current_thread())
        begun.set()
        closed.wait(10)
        if fails:
            raise ValueError

    async def scenario() -> None:
        waiting = asyncio.create_task(in_thread(call))
        await asyncio.to_thread(begun.wait)
        waiting.cancel()

    asyncio.run(scenario())
    closed.set()
    threads[0].join(10)
    assert not threads[0].is_alive()
    assert [] == said
