"""Blocking work beside an event loop, in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["in_thread"]

T = TypeVar("T")


async def in_thread(do: Callable[..., T], *args: Any) -> T:
    """
    Run something that blocks in a thread of its own, and wait for it in the loop.

    Unlike an executor's threads, this works to the interpreter's very end, when pools that were left open are closed.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[T] = loop.create_future()

    def settle(value: Any, error: BaseException | None) -> None:
        if ended.done():
            return
        if error is not None:
            ended.set_exception(error)
        else:
            ended.set_result(value)

    def run() -> None:
        value, failure = None, None
        try:
            value = do(*args)
        except BaseException as error:
            failure = error
        # A loop that was closed meanwhile has nothing left that waits for it.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, value, failure)

    try:
        threading.Thread(target=run, name="skyward-blocking", daemon=True).start()
    except RuntimeError:
        # Python 3.12 starts no thread while the interpreter ends; blocking the loop does no harm then.
        return do(*args)
    return await ended
