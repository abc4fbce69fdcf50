"""Where threads are, and the tasks of event loops wait, seen from another thread."""

from __future__ import annotations

import asyncio
import threading

from skyward.node.worker.loop_tasks import loop_tasks, thread_stacks


async def outer(entered: threading.Event, leave: asyncio.Event) -> None:
    await inner(entered, leave)


async def inner(entered: threading.Event, leave: asyncio.Event) -> None:
    entered.set()
    await leave.wait()


def test_a_task_is_followed_through_all_that_it_awaits() -> None:
    """The innermost coroutine comes first, and the thread is the loop's."""
    entered, leaves = threading.Event(), []

    async def run() -> None:
        leave = asyncio.Event()
        leaves.append((asyncio.get_running_loop(), leave))
        await asyncio.create_task(outer(entered, leave), name="hangs")

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    try:
        assert entered.wait(20)
        found = {name: (ident, frames) for name, ident, frames in loop_tasks()}
        ident, frames = found["hangs"]
        assert thread.ident == ident
        names = [function for _, _, function in frames]
        assert [names.index("inner"), names.index("outer")] == [len(names) - 2, len(names) - 1]
    finally:
        loop, leave = leaves[0]
        loop.call_soon_threadsafe(leave.set)
        thread.join(20)


def test_threads_are_listed_with_the_innermost_place_first() -> None:
    """The main thread comes last, and the one that asks is not among them."""
    entered, leave = threading.Event(), threading.Event()

    def waits() -> None:
        entered.set()
        leave.wait(20)

    thread, found = threading.Thread(target=waits), list[list[object]]()
    thread.start()
    try:
        assert entered.wait(20)
        asks = threading.Thread(target=lambda: found.extend(thread_stacks()))
        asks.start()
        asks.join(20)
        stacks = dict(found)  # type: ignore[arg-type]  # pairs
        assert "waits" in [function for _, _, function in stacks[thread.ident]]
        assert threading.main_thread().ident == found[-1][0]
        assert asks.ident not in stacks
    finally:
        leave.set()
        thread.join(20)
