"""A pool opened and closed for an async block, in threads that its interrupts do not reach."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skyward.pool import Pool


async def opened(pool: Pool) -> None:
    """
    Open a pool; a task that is cancelled meanwhile breaks that off, and waits until everything is given back.

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


async def closed(pool: Pool, error: BaseException | None) -> None:
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
