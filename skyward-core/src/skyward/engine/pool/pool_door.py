"""
A door of each open pool for other programs of this user, such as `sky stacks`: a Unix socket in the state directory.

`engine.pool.asked_pools` says what is asked there, and asks.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from skyward import private
from skyward.engine.guardian.state_folder import STATE_HINT
from skyward.engine.pool.asked_pools import ANSWER_TIMEOUT, door_folder, short_path
from skyward.engine.pool.pool_facts import node_address, pool_facts
from skyward.engine.pool.pool_stacks import pool_stacks
from skyward.errors import SkywardError

if TYPE_CHECKING:
    from skyward.engine.pool.running import Running

__all__ = ["answering"]

_log = logging.getLogger(__name__)

_QUESTION = 4096


@contextlib.contextmanager
def answering(running: Running) -> Iterator[None]:
    """
    Answer other programs of this user; where that cannot be done, they do not find the pool.

    Args:
        running: The pool.
    """
    door = _Door(running)
    try:
        running.engine.run(door.open())
    except (OSError, SkywardError) as error:
        _log.info("door.closed pool=%s reason=%s", running.name, error)
    try:
        yield
    finally:
        running.engine.run(door.close())


class _Door:
    """Listen for questions; lives in the engine's loop."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._path = door_folder() / f"{running.provisioning.pool_id}.sock"
        self._server: asyncio.AbstractServer | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        private.directory(self._path.parent, hint=STATE_HINT)
        # A client before, which was killed, may have left its own.
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()
        sock = socket.socket(socket.AF_UNIX)
        try:
            with short_path(self._path) as short:
                sock.bind(short)
            self._server = await asyncio.start_unix_server(self._accepted, sock=sock, limit=_QUESTION)
        except BaseException:
            sock.close()
            raise

    async def close(self) -> None:
        if self._server is None:
            return
        self._server.close()
        for task in self._tasks:
            task.cancel()
        with contextlib.suppress(OSError):
            self._path.unlink()

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._answer(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        name = self._running.name
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT):
                question = json.loads(await reader.readline())
                answer = {"pool": name}
                if question["pool"] in (None, name, self._running.provisioning.pool_id):
                    answer |= await self._said(question.get("about", "stacks"), question["node"])
                writer.write(json.dumps(answer).encode() + b"\n")
                await writer.drain()
        except SkywardError as error:
            writer.write(json.dumps({"pool": name, "text": str(error), "refused": True}).encode() + b"\n")
        except (OSError, TimeoutError, ValueError, KeyError, TypeError, AttributeError) as error:
            _log.info("door.unanswered pool=%s reason=%s", name, error)
        finally:
            writer.close()

    async def _said(self, about: str, node: int | None) -> dict[str, Any]:
        """Return what is asked for, of all nodes or of one."""
        if about == "address":
            return node_address(self._running, self._running.check_node("head" if node is None else node, "node") or 0)
        node = self._running.check_node(node, "node")
        if about == "facts":
            return pool_facts(self._running, node)
        stacks = await pool_stacks(self._running.instances.shells, self._running.dispatch, node)
        return {"text": str(stacks)}
