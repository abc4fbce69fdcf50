"""Two connections as one: what each side says, its end, and that it broke off, passed on with bounded buffers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import struct
from collections.abc import Callable
from typing import Any

__all__ = ["READ", "Stream", "begin_join", "join", "reset", "reset_cancelled"]

_log = logging.getLogger(__name__)

READ = 256 << 10
"""Bytes that a joined connection is read by."""

Stream = tuple[Any, Any]
"""A reader and a writer with the methods of asyncio's streams."""

_RESET_AT_CLOSE = struct.pack("ii", 1, 0)


def _nothing() -> None:
    return


async def join(one: Stream, other: Stream, began: Callable[[], None] = _nothing) -> None:
    """
    Pass bytes both ways until both sides have ended.

    Args:
        one: A connection.
        other: The one that it is joined with.
        began: Called when the first one says something for the first time.
    """
    ways = [
        asyncio.ensure_future(_pass_on(one[0], other[1], began)),
        asyncio.ensure_future(_pass_on(other[0], one[1], _nothing)),
    ]
    try:
        await asyncio.wait(ways)
    except BaseException:
        for way in ways:
            way.cancel()
        reset(one[1])
        reset(other[1])
        raise
    for writer in (one[1], other[1]):
        writer.close()


def begin_join(one: Stream, other: Stream, began: Callable[[], None] = _nothing) -> asyncio.Task[None]:
    """
    Return the task that joins two connections; both are reset also if it is cancelled before it has begun.

    Args:
        one: A connection.
        other: The one that it is joined with.
        began: Called when the first one says something for the first time.
    """
    task = asyncio.get_running_loop().create_task(join(one, other, began))
    task.add_done_callback(lambda task: reset_cancelled(task, one, other))
    return task


def reset_cancelled(task: asyncio.Task[None], *connections: Stream) -> None:
    """
    Reset connections if the task that had them was cancelled, which may be before it has begun.

    Args:
        task: The task; it is over.
        connections: The connections.
    """
    if task.cancelled():
        for _, writer in connections:
            reset(writer)


def reset(writer: Any) -> None:
    """
    Reset a connection, so that its end is not taken for a good one.

    Args:
        writer: Its writer, of asyncio or asyncssh.
    """
    if not isinstance(writer, asyncio.StreamWriter):
        writer.channel.abort()
        return
    with contextlib.suppress(OSError):
        sock: socket.socket = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_CLOSE)
    writer.transport.abort()


async def _pass_on(reader: Any, writer: Any, began: Callable[[], None]) -> None:
    """Pass on what one side says, its end, and that it broke off."""
    try:
        while data := await reader.read(READ):
            began()
            try:
                writer.write(data)
                await writer.drain()
            except Exception:
                # It takes nothing more, and may still have something to say.
                return
    except Exception as error:
        _log.debug("joined.broken reason=%s", error)
        reset(writer)
        return
    with contextlib.suppress(OSError):
        writer.write_eof()
