"""A pool opened and closed for an async block, in threads that its interrupts do not reach."""

from __future__ import annotations

import asyncio
from typing import Protocol


class Openable(Protocol):
    """A pool, as far as it is opened and closed."""

    def open(self) -> object:
        """Open it."""

    def break_off(self) -> None:
        """Stop its opening."""

    def close(self, error: BaseException | None) -> None:
        """Close it."""

    def skip_handlers(self) -> None:
        """Close it without waiting for handlers."""


async def opened(pool: Openable) -> None:
    """
    Open a pool; a task that is cancelled meanwhile breaks that off, and waits until everything is terminated.

    Args:
        pool: The pool.
    """
    opening = asyncio.create_task(asyncio.to_thread(pool.open))
    try:
        await asyncio.shield(opening)
    except asyncio.CancelledError as error:
        pool.break_off()
        await asyncio.wait([opening])
        opening.exception()
        await asyncio.to_thread(pool.close, error)
        raise


async def closed(pool: Openable, error: BaseException | None) -> None:
    """
    Close a pool; a task that is cancelled meanwhile waits for the machines, and not for handlers.

    Args:
        pool: The pool.
        error: What the block was left by.
    """
    closing = asyncio.create_task(asyncio.to_thread(pool.close, error))
    try:
        await asyncio.shield(closing)
    except asyncio.CancelledError as cancelled:
        pool.skip_handlers()
        await asyncio.wait([closing])
        if (failed := closing.exception()) is not None:
            cancelled.add_note(str(failed))
        raise
