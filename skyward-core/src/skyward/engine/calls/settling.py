"""Wait for what is under way in a pool that is being left."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from skyward.engine.calls.call import Call
    from skyward.engine.calls.dispatch import Dispatch

STALLED_AFTER = 1.0
"""Seconds after which a stream that is not read is stopped, once the pool is being left and nothing else runs."""

UNWINDING = 5.0
"""Seconds for which tasks that were cancelled are waited for."""


async def settled(dispatch: Dispatch) -> None:
    """Wait until no call is under way; streams that are not read any more are stopped."""
    progress = asyncio.Event()
    dispatch.on_progress = progress.set
    while dispatch.running or dispatch.queued or dispatch.waiting:
        progress.clear()
        try:
            await asyncio.wait_for(progress.wait(), STALLED_AFTER)
        except TimeoutError:
            dispatch.cancel(stalled_streams(dispatch.calls))


async def finished(tasks: Collection[asyncio.Task[None]], within: float) -> None:
    """
    Wait until no task is left; those that take too long are cancelled, until they have unwound.

    Args:
        tasks: They take themselves out when they are done.
        within: Seconds after which they are cancelled.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within
    while tasks and (left := deadline - loop.time()) > 0:
        await asyncio.wait(set(tasks), timeout=left)
    last = loop.time() + UNWINDING
    while tasks and loop.time() < last:
        # Each time gets out of one thing that is waited for.
        for task in set(tasks):
            task.cancel()
        await asyncio.wait(set(tasks), timeout=0.1)


def stalled_streams(calls: Collection[Call]) -> list[Call]:
    """List the streams whose items were not taken since this was last asked, if nothing else runs."""
    running = [call for call in calls if call.on is not None]
    stalled = [call for call in running if call.streams and call.sink.stalled()]
    return stalled if len(stalled) == len(running) else []
