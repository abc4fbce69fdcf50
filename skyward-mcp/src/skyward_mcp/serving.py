"""A server over standard input and output that ends what it has rented, however it is ended."""

from __future__ import annotations

import logging
import signal
from typing import TYPE_CHECKING

import anyio

from skyward_mcp.closable_input import closable_input
from skyward_mcp.tools import server_of

if TYPE_CHECKING:
    from skyward_mcp.session import Session

__all__ = ["serve"]


def serve(session: Session) -> None:
    """
    Answer until standard input is closed, or a signal comes; then end all pools.

    Args:
        session: What is started.
    """
    anyio.run(_served, session)


async def _served(session: Session) -> None:
    close, server = closable_input(), server_of(session)
    # Clients keep what is written to standard error as the server's log: each event of each pool is too much there.
    for handler in logging.getLogger().handlers:
        handler.setLevel(logging.WARNING)
    # To the end of all pools: a second signal is not to break that off.
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:

        async def end_at_signal() -> None:
            async for _ in signals:
                close()

        async with anyio.create_task_group() as group:
            group.start_soon(end_at_signal)
            try:
                await server.run_stdio_async()
            finally:
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(session.close)
            group.cancel_scope.cancel()
