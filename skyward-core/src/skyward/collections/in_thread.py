"""
The asynchronous side: each method runs in a thread.

The store's library has an asyncio client, but it takes longer for a command than a thread does, needs connections of
its own for each event loop, and would have every rule of this room written a second time.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

__all__ = ["GivenUp", "in_thread", "in_waiting_thread"]

P = ParamSpec("P")
R = TypeVar("R")


class GivenUp(Exception):
    """A wait whose caller was cancelled."""


async def in_thread(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call what takes one round trip; a caller that is cancelled does not undo it."""
    return await asyncio.to_thread(function, *args, **kwargs)


async def in_waiting_thread(
    function: Callable[[threading.Event], R], undo: Callable[[R], object] = lambda result: None
) -> R:
    """
    Call what may wait for long, in a thread of its own: threads of the event loop are few, and may all be waited for.

    Args:
        function: Gets an event that is set when the caller was cancelled; then it ends within a second, by
            raising `GivenUp` or with what it got after all.
        undo: Called with that, so that nothing is lost with a caller.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[R] = loop.create_future()
    given_up = threading.Event()

    def finish(result: R | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]  # there is one where there is no error

    def work() -> None:
        result: Any = None
        error: BaseException | None = None
        try:
            result = function(given_up)
        except BaseException as raised:
            error = raised
        try:
            loop.call_soon_threadsafe(finish, result, error)
        except RuntimeError:
            # The loop is closed.
            if error is None:
                undo(result)

    threading.Thread(target=work, name="skyward-collection-wait", daemon=True).start()
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        given_up.set()
        while not future.done():
            try:
                await asyncio.wait([future])
            except asyncio.CancelledError:
                # Again: what it got is still to be undone.
                continue
        # An error has no caller any more.
        if future.exception() is None:
            await asyncio.to_thread(undo, future.result())
        raise
