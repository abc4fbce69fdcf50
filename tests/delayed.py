"""A line to a host that takes its time: what crosses it is late by half a round trip each way, and counted."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self


class Delayed:
    """
    Pass the bytes of TCP connections on to a host, late but in order, in a thread of its own.

    The time that a connection takes to be made is part of it, though a client is let in at once: what it says first
    arrives when it would, had it waited for that.

    Args:
        address: The host's address, at which this listens as well.
        port: The host's port.
        trip: Seconds of a round trip.
    """

    def __init__(self, address: str, port: int, trip: float = 0.0) -> None:
        self.trip = trip
        self.port = 0
        self.connections = 0
        self.sent = 0
        self._target = (address, port)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="delayed", daemon=True)
        self._tasks: set[asyncio.Task[None]] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(10)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _open(self) -> None:
        self._server = await asyncio.start_server(self._pass, self._target[0], 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        there: asyncio.StreamWriter | None = None
        try:
            # The first packet of TCP and its answer cross before a client says anything, which comes with the third.
            await asyncio.sleep(1.5 * self.trip)
            back, there = await asyncio.open_connection(*self._target)
            await asyncio.gather(self._late(reader, there, self._count, at_once=True), self._late(back, writer))
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            for end in (writer, there):
                if end is not None:
                    with contextlib.suppress(OSError):
                        end.close()

    def _count(self, size: int) -> None:
        self.sent += size

    async def _late(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        seen: Callable[[int], None] = lambda _: None,
        *,
        at_once: bool = False,
    ) -> None:
        """Write what is read half a round trip later, each piece by its own clock."""
        loop = asyncio.get_running_loop()
        waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def read() -> None:
            data = b"more"
            wait = 0.0 if at_once else self.trip / 2
            while data:
                try:
                    data = await reader.read(1 << 18)
                except OSError:
                    data = b""
                seen(len(data))
                waiting.put_nowait((loop.time() + wait, data))
                wait = self.trip / 2

        reading = asyncio.ensure_future(read())
        try:
            while (piece := await waiting.get())[1]:
                await asyncio.sleep(piece[0] - loop.time())
                writer.write(piece[1])
                await writer.drain()
            await asyncio.sleep(piece[0] - loop.time())
            writer.write_eof()
        finally:
            reading.cancel()
