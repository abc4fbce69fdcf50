"""Results that a node has stored on its disk: fetched when its agent is gone, as after a reboot."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shlex
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, Any

from skyward.errors import ProtocolError
from skyward.link.descriptors import handed_out
from skyward.link.frames import Frame
from skyward.link.segment import in_memory
from skyward.link.stored import Stored, StoredParser

if TYPE_CHECKING:
    from asyncssh import SSHClientConnection

_log = logging.getLogger(__name__)

WITHIN = 60.0
"""Seconds that fetching may take; calls whose results are not there by then are tried again."""

MOST_BYTES = 5 << 28
"""Bytes that are fetched; more than a node stores."""


async def rescue(
    connection: SSHClientConnection,
    node: str,
    on_frame: Callable[[Frame, tuple[int, ...]], None],
    on_announced: Callable[[Frame], bool],
) -> None:
    """
    Fetch the results that a node has stored; as many as come in time, and without complaint.

    Args:
        connection: The machine.
        node: Absolute path of the node's directory.
        on_frame: Called with each frame and its descriptors, which it takes over.
        on_announced: Says of a frame with buffers whether it is wanted.
    """
    import asyncssh

    count = 0
    try:
        async with asyncio.timeout(WITHIN):
            async for stored in _stored(connection, node, on_announced):
                fds = tuple(map(in_memory, stored.buffers))
                with handed_out(fds):
                    on_frame(stored.frame, fds)
                count += 1
    except TimeoutError:
        _log.warning("results.not_fetched node=%s fetched=%d: not within %g s", node, count, WITHIN)
    except (ProtocolError, asyncssh.Error, OSError) as error:
        _log.warning("results.not_fetched node=%s fetched=%d: %s", node, count, error)
    else:
        _log.info("results.fetched node=%s count=%d", node, count)


async def fetch(
    connection: SSHClientConnection,
    node: str,
    on_frame: Callable[[Frame, tuple[int, ...]], None],
    on_announced: Callable[[Frame], bool],
    then: Callable[[], None],
) -> None:
    """
    Fetch the results that a node has stored, and continue whatever comes of that.

    Args:
        connection: The machine.
        node: Absolute path of the node's directory.
        on_frame: Called with each frame and its descriptors, which it takes over.
        on_announced: Says of a frame with buffers whether it is wanted.
        then: Called at the end.
    """
    try:
        await rescue(connection, node, on_frame, on_announced)
    except Exception:
        # The node is lost in any case, and its calls are tried again.
        _log.exception("results.not_fetched node=%s", node)
    finally:
        then()


async def _stored(
    connection: SSHClientConnection, node: str, on_announced: Callable[[Frame], bool]
) -> AsyncGenerator[Stored, None]:
    def wanted(frame: Frame) -> bool:
        # The client may have it, and its acknowledgement be lost.
        with contextlib.suppress(ProtocolError):
            return on_announced(frame)
        return False

    # Names that begin with a dot are not complete. Not every image has find.
    command = f'cd {shlex.quote(f"{node}/results")} 2>/dev/null && for file in *; do cat "$file"; done 2>/dev/null'
    process: Any = await connection.create_process("exec sh -c " + shlex.quote(command), encoding=None)
    try:
        parser, size = StoredParser(MOST_BYTES, wanted), 0
        while data := await process.stdout.read(256 << 10):
            size += len(data)
            if size > MOST_BYTES:
                raise ProtocolError(f"A node has stored more than {MOST_BYTES} bytes of results.")
            for stored in parser.feed(data):
                yield stored
    finally:
        process.close()
