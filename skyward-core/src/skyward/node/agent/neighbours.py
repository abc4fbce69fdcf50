"""Whether the other nodes of a pool can be reached from here, and this one by them."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import socket
from collections.abc import Callable, Coroutine
from typing import Any

from skyward.link.segment import Segment

_log = logging.getLogger(__name__)

_PAUSE = 0.2
"""Seconds between two looks for a name."""


class Neighbours:
    """
    Answer the client's questions about the network between nodes.

    Args:
        loop: The agent's loop.
        buffer: Finds a buffer that is kept here.
        answer: Takes each answer.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        buffer: Callable[[bytes], Segment | None],
        answer: Callable[[dict[str, Any]], None],
    ) -> None:
        self._loop = loop
        self._buffer = buffer
        self._answer = answer
        self._tasks: set[asyncio.Task[None]] = set()

    def ask(self, question: dict[str, Any]) -> None:
        """
        Begin to answer a question.

        `listen` asks for a port that takes connections for so many seconds; `reach` asks which of a list of hosts and
        ports can be connected to `within` so many seconds, and is answered with a reason for each that cannot;
        `checksum` asks for the SHA-256 of a buffer that a task put, null if it is not here.

        Args:
            question: The question, with its `number`, which its answer repeats.
        """
        number = int(question["number"])
        if "checksum" in question:
            self._begin(self._checksum(number, bytes.fromhex(question["checksum"])))
        elif "listen" in question:
            self._begin(self._listen(number, float(question["listen"])))
        else:
            places = [(str(host), int(port)) for host, port in question["reach"]]
            self._begin(self._reach(number, places, float(question["within"])))

    def close(self) -> None:
        """Stop to answer, and to listen."""
        for task in self._tasks:
            task.cancel()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            # The client waits no longer than it says.
            _log.warning("neighbours.unanswered reason=%s: %s", type(error).__name__, error)

    async def _listen(self, number: int, seconds: float) -> None:
        door = socket.socket()
        door.bind(("", 0))
        # The other end has seen all there is to see.
        async with await self._loop.create_server(_ProbeListener, sock=door):
            self._answer({"number": number, "port": door.getsockname()[1]})
            await asyncio.sleep(seconds)

    async def _checksum(self, number: int, name: bytes) -> None:
        segment = self._buffer(name)
        found = None if segment is None else await asyncio.to_thread(_sha256, segment)
        self._answer({"number": number, "checksum": found})

    async def _reach(self, number: int, places: list[tuple[str, int]], within: float) -> None:
        why = await asyncio.gather(*(_why_not(host, port, within) for host, port in places))
        self._answer({"number": number, "unreached": why})


def _sha256(segment: Segment) -> str:
    with segment.map() as content:
        return hashlib.sha256(content).hexdigest()


class _ProbeListener(asyncio.Protocol):
    """A connection that is closed at once."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


async def _why_not(host: str, port: int, within: float) -> str:
    """Return why a place cannot be reached; nothing if it can."""
    why = f"no answer within {within:g} s"
    try:
        async with asyncio.timeout(within):
            while True:
                try:
                    _, writer = await asyncio.open_connection(host, port)
                    break
                except socket.gaierror as error:
                    # The name of a machine that has just come may not be known everywhere yet.
                    why = str(error)
                    await asyncio.sleep(_PAUSE)
    except TimeoutError:
        return why
    except OSError as error:
        # What asyncio says names the place, and not the reason.
        return os.strerror(error.errno) if error.errno is not None else str(error)
    writer.close()
    return ""
